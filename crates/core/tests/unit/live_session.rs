//! The session as this process knows it: what renews its lease, and what a hold may go by.

use super::*;
use crate::live::scripted::*;

const LAPSED: HoldState = HoldState::Lost(LossReason::LeaseElapsed);

fn valid_until(live: &LiveSession) -> Duration {
    live.now() + live.remaining()
}

/// Renews the lease by two requests that are answered at once, the wait apart.
async fn renew(live: &LiveSession, script: &Scripted) {
    for _ in 0..2 {
        sleep(3 * SECOND).await;
        live.note_answer(script.exchange(live.now()));
    }
}

/// The caller may try again at once, and must not get the same session.
#[tokio::test(start_paused = true)]
async fn session_that_a_request_found_over_has_ended() {
    for (over, ends) in [(0, true), (1, false)] {
        let (live, _script) = Scripted::open(Duration::ZERO);
        let end = ServerError::SessionOver(SessionEnd::Expired);
        let session = SessionId(live.id.0 + over);
        let work = async { Err::<(), _>(Error::at("/lock", session, end)) };
        let failed = live.until_over("/lock", pin!(work)).await;
        assert!(matches!(failed, Err(Error::SessionOver { .. })));
        assert_eq!(live.has_ended(), ends);
    }
}

/// Another thread may end the session between the two looks of one poll.
#[tokio::test(start_paused = true)]
async fn contender_that_goes_with_its_session_reports_the_end_of_the_session() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let work = async {
        live.set_status(Status::Ended(SessionEnd::Expired));
        Err::<(), _>(Error::ContenderDeleted {
            path: "/lock/1".to_owned(),
            session: live.id,
        })
    };
    let failed = live.until_over("/lock", pin!(work)).await;
    let reason = SessionEnd::Expired;
    assert!(matches!(failed, Err(Error::SessionOver { reason: it, .. }) if it == reason));
}

#[tokio::test(start_paused = true)]
async fn sync_before_a_grant_counts_from_its_sending() {
    let (live, script) = Scripted::open(SECOND);
    sleep(TIMEOUT).await;
    let renewed = live.until_may_grant("/", &mut None).await;
    renewed.expect("the server answers");
    assert!(script.has_sent(valid_until(&live) - LEASE));
}

#[tokio::test(start_paused = true)]
async fn write_counts_from_its_sending() {
    let (live, script) = Scripted::open(SECOND);
    sleep(SECOND).await;
    let sent = live.now();
    sleep(2 * SECOND).await;
    live.note_commit(script.exchange(sent));
    sleep(3 * SECOND).await;
    live.note_answer(script.exchange(live.now()));
    assert_eq!(valid_until(&live), SECOND + LEASE);
}

#[tokio::test(start_paused = true)]
async fn answer_over_a_connection_that_nobody_has_looked_at_counts_for_nothing() {
    let (live, script) = Scripted::open(SECOND);
    script.reconnect();
    renew(&live, &script).await;
    assert_eq!(valid_until(&live), LEASE);
    live.adopt_connection(&script.server());
    assert_eq!(valid_until(&live), LEASE);
}

#[tokio::test(start_paused = true)]
async fn write_proves_no_connection_but_its_own() {
    let (live, script) = Scripted::open(SECOND);
    script.reconnect();
    live.adopt_connection(&script.server());
    script.reconnect();
    live.note_commit(script.exchange(live.now()));
    assert_eq!(live.grant_epoch(), None);
}

/// Nobody has looked at its answer before the session has seen the next connection.
#[tokio::test(start_paused = true)]
async fn write_over_an_earlier_connection_proves_no_later_one() {
    let (live, script) = Scripted::open(SECOND);
    let earlier = script.exchange(live.now());
    script.reconnect();
    live.adopt_connection(&script.server());
    live.note_commit(earlier);
    assert_eq!(live.grant_epoch(), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_granted_if_the_process_stands_still_between_two_looks_at_the_clock() {
    let (live, script) = Scripted::open(SECOND);
    script.pause_between_looks(TIMEOUT);
    assert_eq!(live.grant_epoch(), None);
}

#[tokio::test(start_paused = true)]
async fn hold_is_lost_as_its_lease_ends_though_nobody_has_noticed() {
    let (live, _) = Scripted::open(SECOND);
    sleep(LEASE - Duration::from_millis(1)).await;
    assert_eq!(live.hold_state(LeaseEpoch(0)), HoldState::Held);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(live.hold_state(LeaseEpoch(0)), LAPSED);
}

/// Nobody has looked at the clock between the two.
#[tokio::test(start_paused = true)]
async fn lapse_before_the_end_of_the_session_is_the_reason_of_the_loss() {
    let (live, _) = Scripted::open(SECOND);
    sleep(LEASE).await;
    live.set_status(Status::Ended(SessionEnd::Expired));
    assert_eq!(live.hold_state(LeaseEpoch(0)), LAPSED);
    assert_eq!(live.lapsed_at(), LEASE);
}

#[tokio::test(start_paused = true)]
async fn first_end_of_the_session_is_the_reason_also_when_the_lease_would_have_lapsed() {
    let (live, _) = Scripted::open(SECOND);
    live.set_status(Status::Ended(SessionEnd::Expired));
    live.set_status(Status::Ended(SessionEnd::Closed));
    let expired = HoldState::Lost(LossReason::Session(SessionEnd::Expired));
    for _ in 0..2 {
        assert_eq!(live.hold_state(LeaseEpoch(0)), expired);
        sleep(LEASE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn hold_that_a_lapse_has_cost_stays_lost() {
    let (live, script) = Scripted::open(SECOND);
    sleep(LEASE).await;
    renew(&live, &script).await;
    assert_eq!(live.grant_epoch(), Some(LeaseEpoch(1)));
    assert_eq!(live.hold_state(LeaseEpoch(0)), LAPSED);
    assert_eq!(live.hold_state(LeaseEpoch(1)), HoldState::Held);
}

#[tokio::test(start_paused = true)]
async fn lapse_is_told_to_those_who_wait_for_news_of_the_session() {
    let (live, _) = Scripted::open(Duration::ZERO);
    let mut news = live.subscribe();
    news.mark_unchanged();
    live.count_lapse();
    assert!(!news.has_changed().expect("it is open"));
    sleep(LEASE).await;
    let has_changed = news.has_changed().expect("it is open");
    assert!(!has_changed, "nobody has looked");
    assert_eq!(live.count_lapse().epoch, LeaseEpoch(1));
    assert!(news.has_changed().expect("it is open"));
    news.mark_unchanged();
    live.count_lapse();
    assert!(!news.has_changed().expect("it is open"), "once");
}

/// The time between two connections does not count.
#[tokio::test(start_paused = true)]
async fn late_answers_over_two_connections_do_not_add_up() {
    let (live, script) = Scripted::open(Duration::ZERO);
    let server = script.server();
    sleep(2 * TIMEOUT).await;
    let late = async |answers: u64| {
        for _ in 0..answers {
            sleep(SECOND).await;
            live.note_answer(script.exchange(live.now() - 5 * SECOND));
            let waits = live.ask_for_lease("/lock", &mut None);
            waits.expect("the session has left no server meanwhile");
            live.leave_late_server(&server);
        }
        live.state.borrow().late.left
    };
    assert_eq!(late(7).await, 0);
    script.reconnect();
    live.adopt_connection(&server);
    assert_eq!(late(7).await, 0, "14 seconds in all");
    assert_eq!(late(7).await, 1);
}

#[tokio::test(start_paused = true)]
async fn session_whose_contender_has_its_lease_stays_at_a_server_that_is_late_afterwards() {
    let (live, script) = Scripted::open(Duration::ZERO);
    let server = script.server();
    sleep(LEASE).await;
    let asks = live.ask_for_lease("/lock", &mut None);
    asks.expect("the session has left no server");
    renew(&live, &script).await;
    assert!(live.grant_epoch().is_some());
    for _ in 0..30 {
        sleep(SECOND).await;
        live.note_answer(script.exchange(live.now() - 5 * SECOND));
        live.leave_late_server(&server);
    }
    assert_eq!(live.state.borrow().late.left, 0);
}
