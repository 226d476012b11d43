//! Sessions that end soon after they were opened, on a simulated ensemble.

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(4);
const MINUTE: Duration = Duration::from_secs(60);
/// The longest pause between two sessions.
const LONGEST: Duration = Duration::from_secs(5);
/// The longest first pause, and an opening.
const SOON: Duration = Duration::from_millis(100);

/// Ends the session of this handle.
type End = fn(&Simulation, &Session);

const ENDS: [End; 2] = [
    |simulation, session| {
        let id = session.id().expect("open");
        simulation.administrator().expire(id);
    },
    // A reconnect is answered with another session.
    |simulation, session| {
        let (faults, id) = (simulation.faults(), session.id().expect("open"));
        faults.forget(id);
        faults.disconnect(id);
    },
];

fn simulation(seed: u64) -> Simulation {
    simulation!(seed, session_timeout: TIMEOUT, forgets_sessions: true)
}

/// Waits for another session than this one.
async fn next(session: &Session, before: SessionState) -> Duration {
    let began = Instant::now();
    while !session.is_connected() || session.state() == before {
        sleep(Duration::from_millis(1)).await;
        assert!(began.elapsed() < MINUTE, "{:?}", session.state());
    }
    began.elapsed()
}

/// When the sessions after the first were up, within a minute, if each ends at once.
async fn openings(simulation: &Simulation, session: &Session, end: End) -> Vec<Duration> {
    let (began, mut openings) = (Instant::now(), Vec::new());
    while began.elapsed() < MINUTE {
        let before = session.state();
        end(simulation, session);
        next(session, before).await;
        openings.push(began.elapsed());
    }
    openings
}

#[tokio::test(start_paused = true)]
async fn sessions_that_end_soon_are_followed_ever_more_rarely() {
    for (seed, end) in (0..).zip(ENDS.into_iter().cycle().take(10)) {
        let simulation = simulation(seed);
        let session = simulated_session(&simulation, "one").await;
        let openings = openings(&simulation, &session, end).await;
        let number = openings.len();
        assert!((10..80).contains(&number), "seed {seed}: {number} sessions");
        assert!(openings[0] < SOON, "seed {seed}: {openings:?}");
        let pauses = openings.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(pauses.max() < Some(LONGEST + SOON), "{openings:?}");
        // A session that lasts for its timeout is a reason to begin anew.
        sleep(TIMEOUT + SOON).await;
        let before = session.state();
        end(&simulation, &session);
        let took = next(&session, before).await;
        assert!(took < SOON, "seed {seed}: {took:?}");
    }
}

/// Nobody waits for a pause.
#[tokio::test(start_paused = true)]
async fn session_is_closed_at_once_in_the_pause_before_the_next_one() {
    let simulation = simulation(7);
    let session = simulated_session(&simulation, "one").await;
    openings(&simulation, &session, ENDS[0]).await;
    ENDS[0](&simulation, &session);
    until(|| session.state() == SessionState::Opening).await;
    let began = Instant::now();
    session.close().await;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}
