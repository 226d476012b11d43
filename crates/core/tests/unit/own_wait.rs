//! When a waiter warns of itself.

use std::cell::RefCell;
use std::pin::pin;

use tokio::time::sleep;

use super::*;

#[tokio::test(start_paused = true)]
async fn waiter_warns_after_each_of_its_longest_times() {
    const LONGEST: Duration = Duration::from_secs(10);
    let warnings = RefCell::new(Vec::new());
    let mut own_wait = OwnWait::begin(LONGEST);
    // The time counts from the beginning, also over several waits.
    for waited in [6, 19] {
        let wait = pin!(sleep(Duration::from_secs(waited)));
        own_wait
            .during(wait, |since| warnings.borrow_mut().push(since))
            .await;
    }
    assert_eq!(warnings.into_inner(), [LONGEST, 2 * LONGEST]);
}
