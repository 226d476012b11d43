//! Pauses that double.

use super::*;

#[tokio::test(start_paused = true)]
async fn backoff_is_new_until_its_first_wait_however_short_its_waits_are() {
    for longest in [FIRST_WAIT / 2, FIRST_WAIT, FIRST_WAIT * 8] {
        let mut backoff = Backoff::up_to(longest);
        assert!(backoff.is_new(), "{longest:?}");
        backoff.wait().await;
        assert!(!backoff.is_new(), "{longest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn waits_that_are_left_out_take_no_time() {
    let began = tokio::time::Instant::now();
    let mut backoff = Backoff::default().skip_first(2);
    for waited in [Duration::ZERO, Duration::ZERO, FIRST_WAIT, FIRST_WAIT * 3] {
        backoff.wait().await;
        assert_eq!(began.elapsed(), waited);
    }
}
