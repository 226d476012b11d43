//! What a process knows of who leads, on a simulated ensemble.

use tokio::time::Instant;
use zookeeper_recipes_core::NodePath;
use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Permission};
use zookeeper_recipes_election::Recipe;

use crate::*;

/// Much longer than a session lives.
const LONG: Duration = Duration::from_secs(60);

async fn lead(session: &Session, id: &str) -> Leadership {
    election(session, id).acquire().await.expect("it is free")
}

/// Waits until a leader with this id leads, or nobody.
async fn until(watched: &mut watch::Receiver<LeaderState>, id: Option<&str>) {
    let is_so = |state: &LeaderState| match (state, id) {
        (LeaderState::Leader(leader), Some(id)) => leader.id == id,
        (state, None) => *state == LeaderState::Nobody,
        _ => false,
    };
    let shown = timeout(LONG, watched.wait_for(is_so)).await;
    assert!(shown.expect("shown in time").is_ok(), "the watch continues");
}

/// Waits until no watch is left on the server.
async fn until_nothing_is_watched(simulation: &Simulation) {
    let gone = async {
        while simulation.counters().watches() > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, gone).await.expect("the watch is removed");
}

#[tokio::test(start_paused = true)]
async fn leader_is_an_error_in_time_while_no_server_answers() {
    let simulation = simulation();
    let process = simulation.process("cut off");
    let session = open(&process).await;
    let election = election(&session, "one");
    assert_eq!(election.leader().await.expect("it may read"), None);

    process.partition(LONG);
    let began = Instant::now();
    let error = election.leader().await.expect_err("no server answers");
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error}");
    assert!(error.is_retryable());
    assert_eq!(began.elapsed(), TIMEOUT);

    sleep(LONG).await;
    assert_eq!(election.leader().await.expect("it may read"), None);
}

#[tokio::test(start_paused = true)]
async fn watched_leader_is_kept_up_to_date_until_the_last_receiver_is_dropped() {
    let simulation = simulation();
    let watching = open(&simulation.process("watching")).await;
    let mut leader = election(&watching, "nobody").watch_leader();
    until(&mut leader, None).await;

    let leading = open(&simulation.process("leading")).await;
    for id in ["one", "two"] {
        let leadership = lead(&leading, id).await;
        until(&mut leader, Some(id)).await;
        let token = leader.borrow().leader().map(|leader| leader.fencing_token);
        assert_eq!(token, Some(leadership.fencing_token()));
        leadership.release().await.expect("it leads");
        until(&mut leader, None).await;
        // The leader removes the empty container, which changes nothing for the watch.
        while simulation.administrator().children("/") != ["zookeeper"] {
            sleep(TIMEOUT).await;
        }
        assert!(!leader.has_changed().expect("the session is open"));
    }

    let last = leader.clone();
    assert_eq!(simulation.counters().watches(), 1);
    drop(leader);
    sleep(TIMEOUT).await;
    assert_eq!(simulation.counters().watches(), 1);
    drop(last);
    until_nothing_is_watched(&simulation).await;
}

#[tokio::test(start_paused = true)]
async fn foreign_children_are_no_candidates_and_foreign_ids_are_readable() {
    const IDENTITY: &str = "/leader/_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10";
    let simulation = simulation();
    let administrator = simulation.administrator();
    for path in ["/leader", "/leader/0", "/leader/config"] {
        let created = administrator.create(path, b"", CreateMode::Persistent);
        created.expect("it is new");
    }
    let foreign = open(&simulation.process("foreign")).await;
    let path = NodePath::new("/leader").expect("a good path");
    let server = foreign.server(&path).await.expect("it is open");
    let queue = async |prefix: &str, data: &[u8]| {
        let mode = CreateMode::EphemeralSequential;
        let path = format!("{IDENTITY}-{prefix}-");
        let acl = [Acl::new(Permission::ALL, AuthId::anyone())];
        let created = server.create(&path, data, mode, &acl).await;
        created.expect("it queues").path
    };
    queue("seat", b"").await;
    let watching = open(&simulation.process("watching")).await;
    let election = election(&watching, "naïve");
    assert_eq!(election.leader().await.expect("it may read"), None);
    let mut watched = election.watch_leader();
    until(&mut watched, None).await;

    let latch = queue("latch", b"\xffnode").await;
    until(&mut watched, Some("\u{fffd}node")).await;
    let since = |watched: &watch::Receiver<LeaderState>| {
        watched.borrow().leader().map(|leader| leader.since)
    };
    let before = since(&watched);
    let renamed = administrator.set_data(&latch, b"renamed");
    renamed.expect("it exists");
    until(&mut watched, Some("renamed")).await;
    assert_eq!(since(&watched), before, "the same one leads");
    administrator.delete(&latch).expect("it exists");
    until(&mut watched, None).await;
}

#[tokio::test(start_paused = true)]
async fn watched_leader_is_kept_up_to_date_in_the_next_session_and_ends_with_the_last() {
    let simulation = simulation();
    let watching = open(&simulation.process("watching")).await;
    let leading = open(&simulation.process("leading")).await;
    let first = lead(&leading, "one").await;
    let mut leader = election(&watching, "nobody").watch_leader();
    until(&mut leader, Some("one")).await;

    let expired = watching.id().expect("it is open");
    simulation.administrator().expire(expired);
    first.release().await.expect("it leads");
    let second = lead(&leading, "two").await;
    until(&mut leader, Some("two")).await;
    assert_ne!(watching.id(), Some(expired));

    watching.close().await;
    let ended = timeout(TIMEOUT, async { while leader.changed().await.is_ok() {} }).await;
    ended.expect("the task ends with the session");
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn watched_leader_is_unknown_until_a_server_answers() {
    let simulation = simulation();
    let leading = open(&simulation.process("leading")).await;
    let leadership = lead(&leading, "one").await;

    let process = simulation.process("early");
    process.partition(LONG);
    let options = ConnectOptions::new().session_timeout(TIMEOUT);
    let early = Session::open_in_background(process.ensemble(), options);
    let early = election(&early.expect("good options"), "two");
    let mut leader = early.watch_leader();
    sleep(LONG / 2).await;
    assert_eq!(*leader.borrow(), LeaderState::Unknown);
    assert!(leader.borrow().leader().is_none());
    until(&mut leader, Some("one")).await;
    drop(leadership);
}

#[tokio::test(start_paused = true)]
async fn candidate_knows_without_a_request_that_it_leads_and_that_it_leads_no_more() {
    let simulation = simulation();
    let process = simulation.process("one");
    let one = election(&open(&process).await, "one");
    let clone = one.clone();
    let other = election(&open(&simulation.process("other")).await, "other");
    assert!(!one.is_leader());

    let leadership = one.acquire().await.expect("it is free");
    let requests = simulation.counters().requests_of("one");
    assert!(one.is_leader() && clone.is_leader() && !other.is_leader());
    assert_eq!(simulation.counters().requests_of("one"), requests);
    leadership.release().await.expect("it leads");
    assert!(!one.is_leader() && !clone.is_leader());

    // Also of what is acquired as any recipe is, and of a try.
    let any: &dyn Recipe = &clone;
    let hold = any.acquire().await.expect("it is free");
    assert!(one.is_leader());
    hold.release().await.expect("it leads");
    let tried = one.try_acquire().await.expect("it may try");
    let tried = tried.expect("it is free");
    assert!(clone.is_leader());

    // Cut off, it says no before the other leads.
    let waiting = tokio::spawn(async move { other.acquire().await.map(|hold| (other, hold)) });
    sleep(Duration::from_secs(1)).await;
    process.partition(LONG);
    let (other, _second) = timeout(LONG, waiting)
        .await
        .expect("the other leads in time")
        .expect("it does not panic")
        .expect("its session lives");
    assert!(other.is_leader() && !one.is_leader());
    drop(tried);
}

/// A candidate so far away that it gets no lease is first in the queue, again and again.
#[tokio::test(start_paused = true)]
async fn candidate_that_gets_no_lease_lets_another_lead() {
    let simulation = simulation();
    let process = simulation.process("far");
    let far = election(&open(&process).await, "far");
    process.lengthen_path(Duration::from_millis(1_250), LONG * 60);
    // The lease of the opening lapses.
    sleep(TIMEOUT * 2).await;
    let campaign = tokio::spawn(async move {
        let work = async |_| Ok::<(), std::io::Error>(());
        far.run(std::future::pending(), work).await
    });
    while simulation.administrator().children("/leader").is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    let near = election(&open(&simulation.process("near")).await, "near");
    for _ in 0..3 {
        let elected = timeout(TIMEOUT * 7, near.acquire()).await;
        let leadership = elected.expect("in time").expect("it leads");
        leadership.release().await.expect("it leads");
        // The other campaigns again.
        sleep(TIMEOUT).await;
    }
    assert!(!campaign.is_finished(), "it campaigns again");
}
