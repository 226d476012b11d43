//! The creates that a session has abandoned.

use super::*;
use crate::live::scripted::*;

#[tokio::test(start_paused = true)]
async fn attempt_waits_for_no_create_that_is_abandoned_later() {
    let (live, _) = Scripted::open(Duration::ZERO);
    let abandoned = Arc::default();
    let first = AbandonedCreate::new(&abandoned);
    let mut waiting = pin!(abandoned.until_answered(&live));
    assert!(waiting.as_mut().now_or_never().is_none());
    let _later = AbandonedCreate::new(&abandoned);
    drop(first);
    assert!(waiting.now_or_never().is_some());
}
