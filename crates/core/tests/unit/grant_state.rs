//! How a grant ends: which loss counts, when it was, and what notices it.

use tokio::time::{Instant, sleep};

use tracing::Span;

use super::*;
use crate::events::hold::{HoldRecord, HoldStart};
use crate::hold_state::FencingToken;
use crate::live::scripted::{LEASE, Scripted, source};
use crate::server::error::SessionEnd;

const SECOND: Duration = Duration::from_secs(1);

/// A grant before the first lapse.
fn granted(live: &Arc<LiveSession>, deadline: Option<Duration>) -> GrantState {
    GrantState {
        live: live.clone(),
        lapses: Lapses(0),
        fate: GrantFate::default(),
        deadline,
        loss: FirstLoss::default(),
    }
}

/// Nobody but the task that awaits the loss looks at the lease.
#[tokio::test(start_paused = true)]
async fn loss_during_a_sleep_of_the_machine_is_noticed_soon_after_it() {
    let (live, script) = Scripted::open(Duration::ZERO);
    let state = granted(&live, None);
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
    let state = granted(&live, Some(SECOND));
    state.fate.set_and_report(Fate::Gone, live.now());
    let lost = tokio::spawn(async move { state.lost().await });
    sleep(LEASE + live.probe_interval).await;
    assert!(lost.is_finished());
    assert_eq!(lost.await.expect("no panic"), LossReason::LeaseElapsed);
}

const LOSSES: [LossReason; 6] = [
    LossReason::Session(SessionEnd::Expired),
    LossReason::LeaseElapsed,
    LossReason::Deleted,
    LossReason::DeletedOrSessionOver,
    LossReason::Written,
    LossReason::TimeLimit,
];

#[test]
fn first_fate_counts_and_what_explains_a_deletion() {
    for loss in LOSSES {
        let fate = GrantFate::default();
        assert!(fate.set(Fate::Lost(loss)));
        let later = LOSSES
            .map(Fate::Lost)
            .into_iter()
            .chain([Fate::Gone, Fate::Intact]);
        for later in later {
            assert!(!fate.set(later), "{later:?} after {loss}");
        }
        assert_eq!(fate.get(), Fate::Lost(loss));

        let fate = GrantFate::default();
        assert!(fate.set(Fate::Gone));
        assert!(!fate.set(Fate::Gone));
        // The znode went before the time was up.
        let explains = loss != LossReason::TimeLimit;
        assert_eq!(fate.set(Fate::Lost(loss)), explains, "{loss}");
    }
}

#[test]
fn znode_is_known_to_be_deleted_by_others_after_such_a_fate_only() {
    assert!(Fate::Gone.is_deleted());
    assert!(!Fate::Intact.is_deleted());
    for loss in LOSSES {
        let by_others = [LossReason::Deleted, LossReason::DeletedOrSessionOver].contains(&loss);
        assert_eq!(Fate::Lost(loss).is_deleted(), by_others, "{loss}");
    }
}

#[tokio::test(start_paused = true)]
async fn loss_is_dated_by_what_ended_the_hold() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let state = granted(&live, Some(2 * SECOND));
    sleep(SECOND).await;
    let now = live.now();
    // A loss is not in the future.
    assert_eq!(state.lost_at(LossReason::TimeLimit), now);
    sleep(2 * SECOND).await;
    assert_eq!(state.lost_at(LossReason::TimeLimit), 2 * SECOND);
    assert_eq!(state.lost_at(LossReason::Deleted), live.now());
    assert_eq!(
        granted(&live, None).lost_at(LossReason::TimeLimit),
        live.now()
    );
    sleep(LEASE).await;
    let lapsed = HoldState::Lost(LossReason::LeaseElapsed);
    assert_eq!(granted(&live, None).state(), lapsed);
    assert_eq!(state.lost_at(LossReason::LeaseElapsed), live.lapsed_at());
    assert!(live.lapsed_at() < live.now());
}

#[tokio::test(start_paused = true)]
async fn hold_that_is_lost_already_keeps_its_reason() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let state = granted(&live, None);
    state
        .fate
        .set_and_report(Fate::Lost(LossReason::Written), live.now());
    assert_eq!(state.lost_for(LossReason::Deleted), LossReason::Written);
    let state = granted(&live, None);
    assert_eq!(state.lost_for(LossReason::Deleted), LossReason::Deleted);
    assert_eq!(state.lost_for(LossReason::Written), LossReason::Deleted);
}

fn record() -> HoldRecord {
    let start = HoldStart {
        token: FencingToken::from(1),
        path: "/locks/a",
        now: Duration::ZERO,
    };
    HoldRecord::begin(source(), &Span::none(), start, Duration::ZERO)
}

#[test]
fn time_limit_of_a_hold_that_has_ended_ends_nothing() {
    let record = record();
    let fate = GrantFate::default();
    assert!(!fate.end_by_time_limit(SECOND), "nobody holds");
    assert_eq!(fate.get(), Fate::Intact);
    assert!(record.loss().get().is_none());
    fate.set_record(Some(record.shared()));
    assert!(fate.end_by_time_limit(SECOND));
    assert_eq!(fate.get(), Fate::Lost(LossReason::TimeLimit));
    assert_eq!(record.loss().get().map(|loss| loss.at), Some(SECOND));
    assert!(!fate.end_by_time_limit(SECOND), "once");
}
