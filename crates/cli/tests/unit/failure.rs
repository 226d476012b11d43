//! Tests of `src/failure.rs`.

use super::*;

#[test]
fn message_is_one_line() {
    let text = "error: no such verb\n\n  tip: say lock\n\nUsage: zkr VERB\n";
    assert_eq!(one_line(text), "no such verb tip: say lock Usage: zkr VERB");
}
