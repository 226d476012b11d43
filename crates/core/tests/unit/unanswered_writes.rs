//! The count of the writes that the server has not answered.

use super::*;

#[test]
fn hold_closes_once_each_write_is_answered_and_no_write_begins_then() {
    let writes = UnansweredWrites::default();
    assert!(writes.begin() && writes.begin());
    writes.answered();
    assert!(!writes.close(), "one has no answer");
    assert!(writes.begin(), "it is not closed");
    writes.answered();
    writes.answered();
    assert!(writes.close());
    assert!(!writes.begin());
    assert!(!writes.close(), "it is handed on once");
}
