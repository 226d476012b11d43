//! Which worker owns what, while workers come, leave and die.

use zookeeper_recipes_simulation::Limits;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn routing_shows_the_owner_with_its_address_and_its_token() {
    let mut fleet = Fleet::of(4);
    let session = fleet.session("client").await;
    let client = AssignmentOperator::new(&session, PATH).expect("a good path");
    let mut routing = client.routing().await.expect("open");
    assert!(routing.borrow().is_empty());
    fleet.start_all(&["a", "b"]).await;
    let owners = fleet.judge.owners();
    let shown = routing.wait_for(|routing| {
        let shown = routing
            .iter()
            .map(|(id, owner)| (id.to_owned(), owner.worker.clone()));
        shown.eq(owners.clone())
    });
    let shown = timeout(LONG, shown).await.expect("in time").expect("open");
    let owner = &shown["0"];
    assert_eq!(owner.address, format!("{}:8080", owner.worker));
    let lock = fleet.simulation.administrator();
    let lock = lock.tree().into_iter().find(|node| {
        let is_lock = node.path.starts_with(&format!("{PATH}/locks/0/"));
        is_lock && node.stat.czxid == owner.fencing_token.get()
    });
    assert!(lock.is_some(), "the token is that of the lock");
}

#[tokio::test(start_paused = true)]
async fn partitions_of_a_worker_that_dies_are_owned_again_within_the_stated_bound() {
    let mut fleet = Fleet::of(12);
    for worker in ["a", "b", "c"] {
        fleet.start(worker).await;
        sleep(Duration::from_secs(1)).await;
    }
    fleet.balanced(&["a", "b", "c"]).await;
    // The first leads.
    for (dead, living) in [("a", ["b", "c"].as_slice()), ("b", &["c"])] {
        fleet.kill(dead);
        let began = Instant::now();
        fleet.balanced(living).await;
        // The session timeout, a tick of the servers, and time for a plan.
        let bound = Duration::from_secs(6 + 2 + 1);
        assert!(began.elapsed() < bound, "{:?}", began.elapsed());
    }
}

/// Waits until the routing shows the owners.
async fn shown(fleet: &Fleet) {
    let operator = fleet.operator().await;
    let routing = operator.routing().await.expect("open");
    let shown = |judge: &Judge| {
        let routing = routing.borrow();
        let shown = routing
            .iter()
            .map(|(id, owner)| (id.to_owned(), owner.worker.clone()));
        shown.eq(judge.owners())
    };
    fleet.until("shown", shown).await;
}

#[tokio::test(start_paused = true)]
async fn record_is_never_deleted_if_a_server_refuses_its_write_for_a_moment() {
    let mut fleet = Fleet::of(2);
    fleet.start_all(&["a"]).await;
    let record = "/app/queues/owned/a";
    let faults = fleet.simulation.faults();
    let throttled = Fault::new(FaultKind::Throttled).on(RequestKind::Transact);
    faults.inject(throttled.under(record));
    fleet.start("b").await;
    fleet.balanced(&["a", "b"]).await;
    shown(&fleet).await;
    assert_eq!(faults.waiting(), 0, "the write was refused");
    // A deletion can meet the next create, and then deletes what it has created.
    let history = fleet.simulation.history();
    let is_deletion =
        |it: &Committed| matches!(&it.change, Change::Deleted { path } if path == record);
    assert!(!history.iter().any(is_deletion));
}

#[tokio::test(start_paused = true)]
async fn record_that_somebody_deletes_is_there_again_after_the_next_change() {
    let mut fleet = Fleet::of(4);
    fleet.start_all(&["a"]).await;
    let administrator = fleet.simulation.administrator();
    administrator
        .delete("/app/queues/owned/a")
        .expect("it is there");
    fleet.start("b").await;
    fleet.balanced(&["a", "b"]).await;
    shown(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn session_that_expires_is_followed_by_one_that_owns_again() {
    let mut fleet = Fleet::of(6);
    fleet.start_all(&["a", "b"]).await;
    let sessions = fleet.simulation.administrator().sessions();
    for session in sessions {
        fleet.simulation.administrator().expire(session);
        sleep(Duration::from_secs(2)).await;
        fleet.balanced(&["a", "b"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_ephemeral_is_left_after_the_end() {
    let mut fleet = Fleet::of(6);
    fleet.start_all(&["a", "b"]).await;
    fleet.end("a").await;
    fleet.balanced(&["b"]).await;
    fleet.end("b").await;
    assert!(fleet.judge.owners().is_empty());
    let tree = fleet.simulation.administrator().tree();
    let ephemeral = tree.iter().find(|node| node.stat.ephemeral_owner != 0);
    assert!(ephemeral.is_none(), "{ephemeral:?}");
    assert_eq!(fleet.simulation.counters().watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn work_that_returns_early_is_begun_again_after_a_pause() {
    let mut fleet = Fleet::of(2);
    let judge = fleet.judge.clone();
    fleet
        .start_with("a", move |owned: Partition| {
            judge.granted("a", &owned);
            async {}
        })
        .await;
    let began = Instant::now();
    fleet
        .until("begun again", |judge| {
            judge.grants().values().all(|it| *it > 8) && judge.grants().len() == 2
        })
        .await;
    // Eight pauses that double from 20 ms, less at most a half.
    let least: Duration = (0..8).map(|it| Duration::from_millis(10 << it)).sum();
    assert!(began.elapsed() > least, "{:?}", began.elapsed());
}

/// The worker enters 64 locks at once. Each entry has a create and a list. The other requests are
/// those of the session, the election and the plans.
#[tokio::test(start_paused = true)]
async fn start_with_many_partitions_sends_a_bounded_number_of_requests_at_once() {
    let mut limits = Limits::default();
    limits.outstanding = 2 * 64 + 50;
    let options = SimulationOptions {
        limits,
        ..SimulationOptions::default()
    };
    let mut fleet = Fleet::new(Simulation::new(options), 500);
    let simulation = fleet.simulation.clone();
    fleet.start("a").await;
    tokio::select! {
        biased;
        exceeded = simulation.exceeds_its_limits() => panic!("{exceeded}"),
        () = fleet.balanced(&["a"]) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn worker_that_owns_more_than_one_session_can_hold_opens_further_sessions() {
    const MANY: usize = 30_000;
    let mut fleet = Fleet::of(MANY);
    let judge = fleet.judge.clone();
    let work = move |owned: Partition| {
        judge.granted("a", &owned);
        async move { owned.draining().await }
    };
    fleet.start_with("a", work).await;
    let began = Instant::now();
    while fleet.judge.owners().len() < MANY {
        assert!(began.elapsed() < LONG, "{:?}", fleet.judge.counts());
        sleep(Duration::from_secs(1)).await;
    }
    let administrator = fleet.simulation.administrator();
    let mut lists: BTreeMap<i64, usize> = BTreeMap::new();
    for node in administrator.tree() {
        // As the server writes it: the length, and the path.
        *lists.entry(node.stat.ephemeral_owner).or_default() += 4 + node.path.len();
    }
    lists.remove(&0);
    assert!(lists.len() > 2, "{lists:?}");
    assert!(
        lists.values().all(|bytes| *bytes <= 1024 * 1024),
        "{lists:?}"
    );
    fleet.end("a").await;
    assert!(administrator.sessions().is_empty());
}
