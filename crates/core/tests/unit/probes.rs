//! The probes of a session, and what their answers change.

use tokio::time::timeout;

use super::*;
use crate::live::scripted::{DISCONNECTED, LEASE, Scripted, TIMEOUT, connected};
use crate::server::options::DEFAULT_MAXBUFFER;

async fn run(prober: &mut Prober, time: Duration) {
    let works = async {
        loop {
            prober.handle_next().await;
        }
    };
    // `works` never ends, so the timeout is the expected result.
    let _: Result<(), _> = timeout(time, works).await;
}

#[tokio::test(start_paused = true)]
async fn probe_counts_from_its_sending() {
    let (live, _script) = Scripted::open(Duration::from_millis(2_400));
    let mut prober = Prober::new(&OpenSession::new(live.clone(), DEFAULT_MAXBUFFER));
    run(&mut prober, TIMEOUT * 2).await;
    // The last answered probe was sent at 17 s. It confirms the probes answered by 14.75 s.
    let valid_until = live.now() + live.remaining();
    assert_eq!(valid_until, Duration::from_secs(12) + LEASE);
}

#[tokio::test(start_paused = true)]
async fn probe_that_queues_behind_own_requests_suspends_nobody() {
    // The time a server takes for some thousands of requests sent before the probe.
    for (queued, status) in [(2_400, Status::Connected), (3_600, Status::Suspended)] {
        let (live, _script) = Scripted::open(Duration::from_millis(queued));
        let mut prober = Prober::new(&OpenSession::new(live.clone(), DEFAULT_MAXBUFFER));
        run(&mut prober, TIMEOUT / 4 - Duration::from_millis(200)).await;
        assert_eq!(live.status(), Status::Connected);
        run(&mut prober, 2 * live.probe_interval).await;
        assert_eq!(live.status(), status, "{queued} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn reconnect_is_probed_at_once_however_long_the_silence_was() {
    let (live, script) = Scripted::open(TIMEOUT);
    let mut prober = Prober::new(&OpenSession::new(live.clone(), DEFAULT_MAXBUFFER));
    prober.handle_state(connected(0));
    // No answer comes meanwhile, and as many probes are sent as may be.
    run(&mut prober, live.probe_interval * 11 / 2).await;
    assert!(!script.has_sent(live.now()));
    prober.handle_state(connected(1));
    assert!(script.has_sent(live.now()));
}

#[tokio::test(start_paused = true)]
async fn hold_is_in_doubt_until_the_session_is_proven() {
    let (live, script) = Scripted::open(Duration::from_millis(100));
    let server = script.server();
    let mut prober = Prober::new(&OpenSession::new(live.clone(), DEFAULT_MAXBUFFER));
    live.note_commit(script.exchange(live.now()));
    prober.handle_state(DISCONNECTED);
    script.reconnect();
    live.adopt_connection(&server);
    live.note_answer(script.exchange(live.now()));
    prober.after_answer();
    assert_eq!(live.status(), Status::Suspended);
    live.note_commit(script.exchange(live.now()));
    prober.after_answer();
    assert_eq!(live.status(), Status::Connected);
}

#[tokio::test(start_paused = true)]
async fn hold_is_in_doubt_after_a_break_that_passed_unseen() {
    let (live, script) = Scripted::open(Duration::from_millis(100));
    let mut prober = Prober::new(&OpenSession::new(live.clone(), DEFAULT_MAXBUFFER));
    prober.handle_state(connected(0));
    assert_eq!(live.status(), Status::Connected);
    script.reconnect();
    prober.handle_state(connected(1));
    assert_eq!(live.status(), Status::Suspended);
}

#[tokio::test(start_paused = true)]
async fn hold_is_in_doubt_after_a_break_before_the_first_look() {
    let (live, script) = Scripted::open(Duration::from_millis(100));
    let mut prober = Prober::new(&OpenSession::new(live.clone(), DEFAULT_MAXBUFFER));
    script.reconnect();
    prober.handle_state(connected(1));
    assert_eq!(live.status(), Status::Suspended);
}

/// The answer has come before the break, and is looked at after it.
#[tokio::test(start_paused = true)]
async fn answer_over_a_broken_connection_is_no_contact() {
    let (live, script) = Scripted::open(Duration::from_millis(100));
    let mut prober = Prober::new(&OpenSession::new(live.clone(), DEFAULT_MAXBUFFER));
    run(&mut prober, Duration::from_millis(50)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    script.disconnect();
    prober.handle_state(DISCONNECTED);
    run(&mut prober, live.probe_interval).await;
    assert_eq!(live.status(), Status::Suspended);
}

/// The outcome of the proof of the connection before comes with the news of the reconnect.
#[tokio::test(start_paused = true)]
async fn reconnect_is_proven_at_once_though_an_earlier_proof_had_no_outcome() {
    let answers_after = Duration::from_millis(100);
    let (live, script) = Scripted::open(answers_after);
    let mut prober = Prober::new(&OpenSession::new(live.clone(), DEFAULT_MAXBUFFER));
    prober.handle_state(DISCONNECTED);
    script.reconnect();
    prober.handle_state(connected(1));
    run(&mut prober, answers_after / 2).await;
    assert_eq!(script.proofs().len(), 1);
    tokio::time::sleep(answers_after).await;
    script.reconnect();
    prober.handle_state(connected(2));
    run(&mut prober, answers_after * 3 / 2).await;
    assert_eq!(live.status(), Status::Connected);
}
