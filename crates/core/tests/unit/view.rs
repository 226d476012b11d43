//! The loss of a hold while the machine sleeps.

use tokio::time::{Instant, sleep};

use super::*;
use crate::live::scripted::{LEASE, Scripted};

/// Nobody but the task that awaits the loss looks at the lease.
#[tokio::test(start_paused = true)]
async fn loss_during_a_sleep_of_the_machine_is_noticed_soon_after_it() {
    let (live, script) = Scripted::open(Duration::ZERO);
    let state = GrantState {
        live: live.clone(),
        lapses: 0,
        fate: GrantFate::default(),
        until: None,
        loss: FirstLoss::default(),
    };
    let lost = tokio::spawn(async move { state.lost().await });
    sleep(Duration::from_millis(1)).await;
    assert!(!lost.is_finished(), "it is held");
    script.sleep(LEASE);
    let woken = Instant::now();
    assert_eq!(lost.await.expect("no panic"), LossReason::LeaseElapsed);
    assert!(woken.elapsed() <= live.probe_interval);
}
