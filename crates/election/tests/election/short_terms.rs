//! Terms that end as soon as they began, on a simulated ensemble.

use crate::*;

#[tokio::test(start_paused = true)]
async fn work_that_returns_at_once_leads_ever_more_rarely() {
    let simulation = Simulation::default();
    let election = election_in(&simulation, "one").await;
    let mut terms = 0;
    let work = |_| {
        terms += 1;
        async { Ok::<(), std::io::Error>(()) }
    };
    let ran = election.run(sleep(Duration::from_secs(10)), work).await;
    ran.expect("it was shut down");
    // The pauses of the first second, then one a second.
    assert!((10..20).contains(&terms), "{terms} terms");
}

#[tokio::test(start_paused = true)]
async fn term_that_lasts_is_followed_by_the_next_at_once() {
    let simulation = Simulation::default();
    let election = election_in(&simulation, "one").await;
    let mut terms = 0;
    let work = |_| {
        terms += 1;
        async {
            sleep(Duration::from_secs(1)).await;
            Ok::<(), std::io::Error>(())
        }
    };
    let ran = election.run(sleep(Duration::from_secs(20)), work).await;
    ran.expect("it was shut down");
    assert!(terms >= 19, "{terms} terms");
}

/// The break is shorter than the lease.
#[tokio::test(start_paused = true)]
async fn disconnection_stops_the_cautious_and_leaves_the_others_alone() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "p").await;
    let first_session = session.id();
    let terms = async |path: &str, stop_work: StopWork| {
        let election = LeaderElection::new(&session, path, "one").expect("a good path");
        let tokens = RefCell::new(Vec::new());
        let work = async |term: Term| {
            tokens.borrow_mut().push(term.fencing_token());
            std::future::pending::<Result<(), Infallible>>().await
        };
        let shutdown = async {
            sleep(Duration::from_secs(60)).await;
            let contenders = election.contenders().await.expect("an answer");
            let listed = contenders.iter().map(|entry| entry.fencing_token);
            let newest = tokens.borrow().last().copied();
            assert!(listed.eq(newest), "{path}: {contenders:?}");
        };
        let stopping = election.clone().stop_work(stop_work);
        stopping.run(shutdown, work).await.expect("nothing fails");
        tokens.into_inner()
    };
    let interrupted = async {
        sleep(Duration::from_secs(20)).await;
        simulation.process("p").disconnect();
    };
    let (cautious, steady, ()) = tokio::join!(
        terms("/cautious", StopWork::WhenSuspended),
        terms("/steady", StopWork::WhenLost),
        interrupted,
    );
    assert!(
        matches!(*cautious, [first, second] if first < second),
        "{cautious:?}"
    );
    assert_eq!(steady.len(), 1, "{steady:?}");
    assert_eq!(session.id(), first_session);
}

/// The future of `run` is `Send`, whatever the closure captures.
#[tokio::test(start_paused = true)]
async fn run_can_be_spawned_with_work_that_captures_references_and_trait_objects() {
    let simulation = Simulation::default();
    let election = election_in(&simulation, "one").await;
    let name: &'static str = "one";
    let store: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    let running = tokio::spawn(async move {
        let work = async |term: Term| {
            store(name);
            term.ended().await;
            Ok::<(), std::io::Error>(())
        };
        election.run(sleep(Duration::from_secs(2)), work).await
    });
    let ran = running.await.expect("it does not panic");
    ran.expect("it was shut down");
}
