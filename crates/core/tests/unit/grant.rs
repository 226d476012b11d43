//! How a grant ends: which end counts, when it was, and what notices it.

use tokio::sync::Semaphore;

use super::*;
use crate::hold::HoldView;
use crate::hold::own_znode::SessionZnodes;
use crate::live::live_session::Status;
use crate::live::scripted::*;
use crate::server::error::SessionEnd;
use crate::server::options::DEFAULT_MAXBUFFER;

/// A grant before the first lapse.
fn granted(live: &Arc<LiveSession>, deadline: Option<Duration>) -> Grant {
    let znode = SessionZnodes::new(live, DEFAULT_MAXBUFFER).contender(name("/locks/a"));
    let terms = terms(0, deadline);
    let record = record(&terms);
    Grant::new(znode, terms, record)
}

/// Nobody but the task that awaits the loss looks at the lease.
#[tokio::test(start_paused = true)]
async fn loss_during_a_sleep_of_the_machine_is_noticed_soon_after_it() {
    let (live, script) = Scripted::open(Duration::ZERO);
    let grant = granted(&live, None);
    let ended = tokio::spawn(async move { grant.until_ended().await });
    sleep(Duration::from_millis(1)).await;
    assert!(!ended.is_finished(), "it is held");
    script.sleep(LEASE);
    let woken = Instant::now();
    let lapsed = Ended::Lost(LossReason::LeaseElapsed);
    assert_eq!(ended.await.expect("no panic"), lapsed);
    assert!(woken.elapsed() <= live.probe_interval);
}

#[tokio::test(start_paused = true)]
async fn first_end_counts() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let losses = [
        LossReason::Session(SessionEnd::Expired),
        LossReason::LeaseElapsed,
        LossReason::Deleted,
        LossReason::Written,
        LossReason::TimeLimit,
    ];
    for first in losses {
        for later in losses {
            let grant = granted(&live, None);
            assert_eq!(grant.lose(first), Ended::Lost(first));
            assert_eq!(grant.lose(later), Ended::Lost(first));
            assert_eq!(grant.give_up(), Ended::Lost(first));
            assert_eq!(grant.state(), HoldState::Lost(first));
        }
        let grant = granted(&live, None);
        assert_eq!(grant.give_up(), Ended::Released);
        assert_eq!(grant.lose(first), Ended::Released);
        assert_eq!(grant.ended(), Some(Ended::Released));
    }
}

/// The clock, or the session, knows of it, and nobody has looked.
#[tokio::test(start_paused = true)]
async fn earlier_loss_counts_though_nobody_has_noticed_it() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let limited = granted(&live, Some(SECOND));
    sleep(2 * SECOND).await;
    assert_eq!(
        limited.lose(LossReason::Deleted),
        Ended::Lost(LossReason::TimeLimit)
    );
    let over = granted(&live, None);
    live.set_status(Status::Ended(SessionEnd::Expired));
    let expired = LossReason::Session(SessionEnd::Expired);
    assert_eq!(over.lose(LossReason::Written), Ended::Lost(expired));

    let (live, _script) = Scripted::open(Duration::ZERO);
    let late = granted(&live, None);
    sleep(LEASE).await;
    live.set_status(Status::Ended(SessionEnd::Expired));
    assert_eq!(
        late.lose(LossReason::Written),
        Ended::Lost(LossReason::LeaseElapsed)
    );
}

#[tokio::test(start_paused = true)]
async fn loss_is_dated_by_what_ended_the_hold() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let grant = granted(&live, Some(2 * SECOND));
    sleep(SECOND).await;
    let now = live.now();
    // A loss is not in the future.
    assert_eq!(grant.lost_at(LossReason::TimeLimit), now);
    sleep(2 * SECOND).await;
    assert_eq!(grant.lost_at(LossReason::TimeLimit), 2 * SECOND);
    assert_eq!(grant.lost_at(LossReason::Deleted), live.now());
    let unlimited = granted(&live, None);
    assert_eq!(unlimited.lost_at(LossReason::TimeLimit), live.now());
    sleep(LEASE).await;
    let lapsed = HoldState::Lost(LossReason::LeaseElapsed);
    assert_eq!(unlimited.state(), lapsed);
    assert_eq!(grant.lost_at(LossReason::LeaseElapsed), live.lapsed_at());
    assert!(live.lapsed_at() < live.now());
}

/// A thread may pause between the begin of the hold and the gift of its turn.
#[tokio::test(start_paused = true)]
async fn turn_of_a_hold_that_is_lost_at_once_passes_on() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let turns = Arc::new(Semaphore::new(1));
    let turn = || turns.clone().try_acquire_owned().expect("it is free");
    let lost = granted(&live, None);
    lost.lose(LossReason::Deleted);
    lost.keep_turn(turn());
    assert_eq!(turns.available_permits(), 1);
    let held = granted(&live, None);
    held.keep_turn(turn());
    assert_eq!(turns.available_permits(), 0);
    held.lose(LossReason::Deleted);
    assert_eq!(turns.available_permits(), 1);
}

#[tokio::test(start_paused = true)]
async fn loss_is_kept_until_the_owner_gives_the_hold_up() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let grant = Arc::new(granted(&live, None));
    let view = HoldView::new(grant.clone());
    assert_eq!(view.kept_after_loss(), None);
    grant.lose(LossReason::Written);
    sleep(SECOND).await;
    assert_eq!(view.kept_after_loss(), Some(SECOND));
    grant.give_up();
    assert_eq!(view.kept_after_loss(), None);
}
