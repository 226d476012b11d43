//! Sessions that are opened in the background.

use crate::support::*;

/// A session of a process that no server answers for half a minute.
fn open_late(simulation: &Simulation) -> Session {
    let process = simulation.process("p");
    process.partition(30 * SECOND);
    let session = Session::open_in_background(process.ensemble(), ConnectOptions::new());
    session.expect("good options")
}

#[tokio::test(start_paused = true)]
async fn session_opened_in_the_background_is_there_once_a_server_answers() {
    let session = open_late(&Simulation::default());
    assert_eq!(session.state(), SessionState::Opening);
    assert!(!session.is_connected());
    let queue = lock(&session, "/queue");
    let refused = queue.acquire_timeout(Duration::from_secs(5)).await;
    let refused = refused.expect_err("no server answers");
    assert!(refused.is_timeout(), "{refused}");
    let hold = queue.acquire_timeout(Duration::from_secs(60)).await;
    assert!(hold.expect("a server answers by now").is_held());
    assert!(session.is_connected());
}

#[tokio::test(start_paused = true)]
async fn session_closed_before_it_is_open_is_over() {
    let session = open_late(&Simulation::default());
    let waiting = session.clone();
    let waiting = tokio::spawn(async move { waiting.wait_connected().await });
    session.close().await;
    let outcome = waiting.await.expect("no panic");
    assert_fails!(outcome, Error::NoSession);
}

#[tokio::test(start_paused = true)]
async fn session_whose_options_do_not_fit_the_servers_is_over_and_not_opening_for_ever() {
    let simulation = Simulation::default();
    // This is longer than half of any timeout that these servers grant.
    let options = ConnectOptions::new().tick(Duration::from_secs(3_600));
    let session = Session::open_in_background(simulation.ensemble("p"), options);
    let session = session.expect("the servers decide");
    let over = SessionEnd::InvalidOptions;
    let waited = timeout(PATIENCE, session.wait_connected()).await;
    let waited = waited.expect("it ends");
    let is_over = matches!(&waited, Err(Error::NoSession { reason, .. }) if *reason == over);
    assert!(is_over, "{waited:?}");
    assert_eq!(session.state(), SessionState::Ended(over));
    let queue = lock(&session, "/queue");
    let refused = queue.acquire().await.expect_err("no session");
    assert!(!refused.is_retryable(), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn durations_of_any_length_are_refused_or_work() {
    let simulation = Simulation::default();
    for long in [
        Duration::MAX,
        Duration::MAX / 2,
        Duration::from_secs(1 << 40),
    ] {
        let new = ConnectOptions::new;
        for options in [new().tick(long), new().session_timeout(long)] {
            let opened = Session::open(simulation.ensemble("p"), options.clone()).await;
            assert_fails!(opened, Error::InvalidInput);
            let opened = Session::open_in_background(simulation.ensemble("p"), options);
            assert!(opened.is_err(), "{opened:?}");
        }
        let options = new().connection_timeout(long);
        let opened = Session::open(simulation.ensemble("p"), options).await;
        opened.expect("a session opens");
    }
    // The longest that the options allow reach the lease.
    let longest = Duration::from_millis(i32::MAX as u64);
    let options = ConnectOptions::new().tick(longest).session_timeout(longest);
    let opened = Session::open(simulation.ensemble("p"), options).await;
    assert_fails!(opened, Error::InvalidInput);
}

#[tokio::test(start_paused = true)]
async fn try_fails_at_once_while_no_session_is_open_and_after_the_timeout_if_no_server_answers() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "p").await;
    let queue = lock(&session, "/lock");
    let timeout = session.timeout().expect("it is open");
    simulation.process("p").partition(3 * timeout);
    let began = Instant::now();
    let tried = queue.try_acquire().await;
    assert_fails!(tried, Error::Disconnected);
    assert!(began.elapsed() <= timeout);
    let again = Instant::now();
    let tried = queue.try_acquire().await;
    assert_fails!(tried, Error::Disconnected);
    assert_eq!(again.elapsed(), Duration::ZERO);
}
