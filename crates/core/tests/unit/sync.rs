//! The output of a future that is ready.

use tokio::sync::oneshot;

use super::*;

#[tokio::test]
async fn future_that_is_ready_is_seen_by_a_task_that_has_used_up_its_turn() {
    let ready = || {
        let (sender, receiver) = oneshot::channel();
        sender.send(()).expect("there is a receiver");
        receiver
    };
    while ready().now_or_never().is_some() {}
    assert!(ready_now(ready()).is_some());
}
