//! Candidates that come while a watch of the leader begins, on a simulated ensemble.

use zookeeper_recipes_core::CreateMode;
use zookeeper_recipes_simulation::SimulationOptions;

use crate::*;

#[tokio::test(start_paused = true)]
async fn watch_begins_with_no_leader_that_was_replaced_before() {
    for seed in 0..50 {
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers: 3,
            session_timeout: Duration::from_secs(30),
            follower_lag: Duration::from_millis(100)..=Duration::from_millis(1_500),
            ..SimulationOptions::default()
        });
        let watching = simulated_session(&simulation, "watching").await;
        let first = election_in(&simulation, "first").await;
        let first = first.acquire().await.expect("nobody else wants it");
        first.release().await.expect("it leads");
        let second = election_in(&simulation, "second").await;
        let second = second.acquire().await.expect("nobody else wants it");
        let mut watched = election(&watching, "nobody").watch_leader();
        watched.changed().await.expect("the session is open");
        let shown = watched.borrow().leader().map(|it| it.fencing_token);
        assert_eq!(shown, Some(second.fencing_token()), "seed {seed}");
    }
}

/// A server of local sessions opens one before it has caught up with its leader.
#[tokio::test(start_paused = true)]
async fn watch_catches_up_in_each_session_before_it_reads() {
    let simulation = Simulation::default();
    let watching = simulated_session(&simulation, "watching").await;
    let first = election_in(&simulation, "first").await;
    let _first = first.acquire().await.expect("nobody else wants it");
    let mut watched = election(&watching, "nobody").watch_leader();
    watched.changed().await.expect("the session is open");
    let late = Fault::new(FaultKind::ReplyLate(Duration::from_millis(1)));
    let late = late.of_process("watching").on(RequestKind::Sync);
    simulation.faults().inject(late.under("/leader"));
    let expired = watching.id().expect("it is open");
    simulation.administrator().expire(expired);
    sleep(Duration::from_secs(60)).await;
    assert_ne!(watching.id(), Some(expired));
    assert_eq!(simulation.faults().waiting(), 0, "it has sent no sync");
}

/// A candidate comes at any moment of the first reads of a watch.
async fn assert_a_candidate_that_comes_is_shown(directory_exists: bool) {
    for step in 0..200 {
        let simulation = Simulation::with(|it| it.seed = step);
        let candidate = election(&simulated_session(&simulation, "candidate").await, "one");
        if directory_exists {
            let before = candidate.acquire().await.expect("nobody else wants it");
            before.release().await.expect("it leads");
        }

        let watching = simulated_session(&simulation, "watching").await;
        let mut watched = election(&watching, "nobody").watch_leader();
        sleep(Duration::from_micros(100 * step)).await;
        let leadership = candidate.acquire().await.expect("nobody else wants it");
        let shown = watched.wait_for(|state| state.leader().is_some_and(|it| it.id == "one"));
        let shown = timeout(Duration::from_secs(10), shown).await;
        assert!(shown.is_ok_and(|shown| shown.is_ok()), "step {step}");
        drop(leadership);
    }
}

#[tokio::test(start_paused = true)]
async fn candidate_that_comes_as_a_watch_begins_is_shown() {
    assert_a_candidate_that_comes_is_shown(true).await;
}

#[tokio::test(start_paused = true)]
async fn first_candidate_of_a_directory_that_comes_as_a_watch_begins_is_shown() {
    assert_a_candidate_that_comes_is_shown(false).await;
}

#[tokio::test(start_paused = true)]
async fn watch_shows_the_leader_that_a_backup_has_restored_though_nothing_changes_later() {
    let simulation = Simulation::with(|it| it.servers = 3);
    let one = election_in(&simulation, "one").await;
    let mut watched = election_in(&simulation, "watching").await.watch_leader();
    let mut shows = async |id: Option<&str>| {
        let shown = watched.wait_for(|state| {
            *state != LeaderState::Unknown && state.leader().map(|it| &*it.id) == id
        });
        let shown = timeout(Duration::from_secs(10), shown).await;
        assert!(shown.is_ok_and(|shown| shown.is_ok()), "{id:?}");
    };
    let leadership = one.acquire().await.expect("nobody else wants it");
    shows(Some("one")).await;
    let backup = simulation.faults().back_up();
    leadership.release().await.expect("it leads");
    shows(None).await;
    simulation.faults().restore(&backup, Duration::from_secs(1));
    sleep(Duration::from_secs(2)).await;
    // The servers admit the clients once they have committed something in the new epoch.
    let administrator = simulation.administrator();
    let created = administrator.create("/later", b"", CreateMode::Persistent);
    created.expect("a leader");
    shows(Some("one")).await;
}
