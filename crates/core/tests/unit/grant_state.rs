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
        lapses: Lapses(0),
        fate: GrantFate::default(),
        deadline: None,
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

/// The reason of the loss is not known yet, and no task of the session runs.
#[tokio::test(start_paused = true)]
async fn loss_without_a_reason_ends_with_the_lease_though_the_time_limit_has_passed() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let state = GrantState {
        live: live.clone(),
        lapses: Lapses(0),
        fate: GrantFate::default(),
        deadline: Some(Duration::from_secs(1)),
        loss: FirstLoss::default(),
    };
    state.fate.set_and_report(Fate::Gone, live.now());
    let lost = tokio::spawn(async move { state.lost().await });
    sleep(LEASE + live.probe_interval).await;
    assert!(lost.is_finished());
    assert_eq!(lost.await.expect("no panic"), LossReason::LeaseElapsed);
}
