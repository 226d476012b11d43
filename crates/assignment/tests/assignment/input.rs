//! What is refused, and how.

use zookeeper_recipes_core::{Acl, AuthId, Permission, Refusal};

use crate::support::*;

async fn work(owned: Partition) -> Result<(), Infallible> {
    owned.draining().await;
    Ok(())
}

/// The error of a worker that cannot run.
async fn refused(assignment: Assignment) -> String {
    let ran = timeout(LONG, assignment.run(pending(), work)).await;
    let error = ran.expect("in time").expect_err("it cannot run");
    assert!(matches!(error, Error::InvalidInput(_)), "{error}");
    error.to_string()
}

#[tokio::test(start_paused = true)]
async fn mistakes_are_refused_at_once() {
    let fleet = Fleet::of(1);
    let session = fleet.session("a").await;
    let new = |path: &str, partitions, worker: &str, options| {
        let made = Assignment::with_options(&session, path, partitions, worker, options);
        made.expect_err("a mistake").to_string()
    };
    let one = || Partitions::numbered(1);
    let options = AssignmentOptions::new;
    let mistakes = [
        new("app", one(), "a", options()),
        new(PATH, Partitions::numbered(0), "a", options()),
        new(PATH, Partitions::named(["x", "x"]), "a", options()),
        new(PATH, Partitions::named(["x/y"]), "a", options()),
        new(PATH, Partitions::numbered(100_001), "a", options()),
        new(PATH, one(), "", options()),
        new(PATH, one(), "a/b", options()),
        new(PATH, one(), "a#1", options()),
        new(PATH, one(), &"w".repeat(201), options()),
        new(PATH, one(), "a", options().capacity(0)),
        new(PATH, one(), "a", options().max_moves(0)),
        new(PATH, one(), "a", options().address("a\nb")),
        new(PATH, one(), "a", options().zone("")),
        new(PATH, one(), "a", options().acl([])),
    ];
    let expected = [
        "absolute",
        "too few",
        "two partitions",
        "segment",
        "100000",
        "name",
        "single segment",
        "'#'",
        "longer",
        "capacity",
        "max moves",
        "no line",
        "zone",
        "empty",
    ];
    for (mistake, expected) in mistakes.iter().zip(expected) {
        assert!(mistake.contains(expected), "{mistake} lacks {expected}");
    }
    assert_eq!(
        fleet.simulation.administrator().children("/"),
        ["zookeeper"]
    );
}

fn missing(refused: &Error) -> (&str, Permission) {
    match refused {
        Error::Refused {
            path,
            refusal: Refusal::NoPermission(permission),
            ..
        } => (path, *permission),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn missing_permission_is_named_with_the_directory_that_does_not_grant_it() {
    let fleet = Fleet::of(1);
    let administrator = fleet.simulation.administrator();
    fleet.create(&["/app"], b"");
    let only = |granted| [Acl::new(granted, AuthId::anyone())];
    let set = |path: &str, granted| {
        let set = administrator.set_acl(path, &only(granted));
        set.expect("it exists");
    };
    set("/app", Permission::READ);
    let session = fleet.session("a").await;
    let worker = fleet.assignment(&session, "a");
    let refused = timeout(LONG, worker.run(pending(), work)).await;
    let refused = refused.expect("in time");
    let refused = refused.expect_err("it may create no directory");
    assert_eq!(missing(&refused), ("/app", Permission::CREATE));
    let operator = AssignmentOperator::new(&session, PATH).expect("a good path");
    let one = Partitions::numbered(1);
    let refused = operator
        .set_partitions(one.clone())
        .await
        .expect_err("nor may an operator");
    assert_eq!(missing(&refused), ("/app", Permission::CREATE));

    set("/app", Permission::ALL);
    operator.set_partitions(one).await.expect("it may now");
    operator.freeze().await.expect("it may now");
    let orders = "/app/queues/orders";
    set(orders, Permission::READ | Permission::WRITE);
    let refused = operator.thaw().await.expect_err("it may delete nothing");
    assert_eq!(missing(&refused), (orders, Permission::DELETE));
    set(orders, Permission::ALL);
    let frozen = "/app/queues/orders/freeze";
    set(frozen, Permission::READ);
    let refused = operator.freeze().await.expect_err("nor may it write");
    assert_eq!(missing(&refused), (frozen, Permission::WRITE));
}

#[tokio::test(start_paused = true)]
async fn id_that_another_process_has_is_refused() {
    let mut fleet = Fleet::of(2);
    fleet.start_all(&["a"]).await;
    let session = fleet.session("other").await;
    let error = refused(fleet.assignment(&session, "a")).await;
    assert!(error.contains("is the id of another process"), "{error}");
    assert!(error.contains(&format!("{PATH}/workers")), "{error}");
}

#[tokio::test(start_paused = true)]
async fn worker_waits_for_its_dead_predecessor_while_leaders_change() {
    let simulation = Simulation::with(|options| options.servers = 3);
    let mut fleet = Fleet::new(simulation, 2);
    fleet.start_all(&["a"]).await;
    let workers = format!("{PATH}/workers/a");
    let standing = |fleet: &Fleet| {
        let tree = fleet.simulation.administrator().tree();
        let found = tree.into_iter().find(|node| node.path == workers);
        found.map(|node| node.stat.czxid)
    };
    let before = standing(&fleet);
    fleet.kill("a");
    fleet.start("a").await;
    let session = fleet.session("other").await;
    let pause = session.timeout().expect("it is open") * 3 / 4;
    // Each new leader gives the session of the dead process its whole timeout again.
    for leader in [1, 2, 0, 1, 2, 0, 1, 2, 0] {
        fleet.simulation.faults().elect(leader, Duration::ZERO);
        sleep(pause).await;
        assert_eq!(
            standing(&fleet),
            before,
            "the servers have its session still"
        );
        fleet.check();
    }
    fleet.balanced(&["a"]).await;
    assert_ne!(standing(&fleet), before);
}

#[tokio::test(start_paused = true)]
async fn recorded_partitions_count_and_those_of_a_later_worker_do_not() {
    let mut fleet = Fleet::of(4);
    fleet.start_all(&["a"]).await;
    fleet.partitions = Partitions::named(["other"]);
    fleet.start("b").await;
    fleet.partitions = Partitions::numbered(4);
    fleet.balanced(&["a", "b"]).await;
}

#[tokio::test(start_paused = true)]
async fn records_of_another_version_are_refused_by_a_worker_that_starts() {
    let fleet = Fleet::of(2);
    let administrator = fleet.simulation.administrator();
    fleet.create(&["/app", PATH, "/app/queues/plan"], b"");
    let path = "/app/queues/plan/a";
    fleet.create(&[path], b"zookeeper-recipes plan 2 1\n");
    let session = fleet.session("a").await;
    let error = refused(fleet.assignment(&session, "a")).await;
    let names = |part| error.contains(path) && error.contains(part);
    assert!(names("the version 2"), "{error}");

    let path = "/app/queues/partitions";
    administrator
        .set_data(path, b"zookeeper-recipes partitions 3 x 0\n")
        .expect("it exists");
    let error = refused(fleet.assignment(&session, "b")).await;
    let names = |part| error.contains(path) && error.contains(part);
    assert!(names("the version 3"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn plan_that_somebody_has_overwritten_is_written_again_for_a_worker_that_starts() {
    let mut fleet = Fleet::of(2);
    let paths = ["/app", PATH, "/app/queues/plan", "/app/queues/plan/a"];
    fleet.create(&paths, b"somebody was here");
    fleet.start_all(&["a"]).await;
}

#[tokio::test(start_paused = true)]
async fn worker_keeps_what_it_owns_while_its_plan_is_missing_or_unreadable() {
    let mut fleet = Fleet::of(4);
    fleet.start_all(&["a"]).await;
    let grants = fleet.judge.grants();
    let administrator = fleet.simulation.administrator();
    let path = "/app/queues/plan/a";
    let newer = b"zookeeper-recipes plan 2 1\n".as_slice();
    for data in [newer, b"", b"\xff", b"none of it"] {
        administrator.set_data(path, data).expect("it exists");
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(fleet.judge.counts()["a"], 4);
    }
    administrator.delete(path).expect("it exists");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(fleet.judge.counts()["a"], 4);
    assert_eq!(fleet.judge.grants(), grants);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_partitions_are_owned_by_records_in_pieces() {
    let mut fleet = Fleet::of(5_000);
    fleet.partitions = Partitions::named((0..5_000).map(|it| format!("tenant-number-{it:05}")));
    let operator = fleet.operator().await;
    let mut routing = operator.routing().await.expect("open");
    fleet.start("a").await;
    let all = timeout(LONG, routing.wait_for(|routing| routing.len() == 5_000)).await;
    drop(all.expect("in time").expect("open"));
    let administrator = fleet.simulation.administrator();
    for (directory, least) in [("plan", 3), ("owned", 3), ("partitions", 3)] {
        let pieces = administrator.children(&format!("{PATH}/{directory}"));
        assert!(pieces.len() >= least, "{directory}: {pieces:?}");
    }
    fleet.start("b").await;
    fleet
        .until("moved", |judge| judge.counts().get("b") >= Some(&200))
        .await;
}

/// A line that names no partition, in the record of the partitions.
const BAD: &[u8] = b"zookeeper-recipes partitions 1 x- 0\n1 - 0\n1 - tenant/7\n";

#[tokio::test(start_paused = true)]
async fn record_with_a_name_that_no_znode_can_have_is_refused_by_path_and_line() {
    let mut fleet = Fleet::of(4);
    fleet.start_all(&["a"]).await;
    let grants = fleet.judge.grants();
    let (administrator, path) = (fleet.simulation.administrator(), "/app/queues/partitions");
    administrator.set_data(path, BAD).expect("it exists");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(fleet.judge.grants(), grants, "it keeps what it owns");
    let session = fleet.session("b").await;
    let error = refused(fleet.assignment(&session, "b")).await;
    let names_it = error.contains(path) && error.contains("3: \"tenant/7\" cannot be");
    assert!(names_it, "{error}");
    let operator = AssignmentOperator::new(&session, PATH).expect("a good path");
    let error = operator.status().await.expect_err("it cannot be read");
    assert!(error.to_string().contains("tenant/7"), "{error}");
    // The record can be mended.
    let mended = operator.set_partitions(Partitions::numbered(4)).await;
    mended.expect("it is written");
    fleet.end("a").await;
}

#[tokio::test(start_paused = true)]
async fn plan_with_a_name_that_no_znode_can_have_takes_no_time_and_no_partition() {
    let mut fleet = Fleet::of(4);
    fleet.start_all(&["a"]).await;
    let grants = fleet.judge.grants();
    let administrator = fleet.simulation.administrator();
    let plan = b"zookeeper-recipes plan 1 1 \nown 0\nown 1\nown 2\nown 3\nown tenant/7\n";
    administrator
        .set_data("/app/queues/plan/a", plan)
        .expect("it exists");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(fleet.judge.grants(), grants, "it keeps what it owns");
    fleet.end("a").await;
}

#[tokio::test(start_paused = true)]
async fn order_at_a_path_that_is_no_assignment_is_refused_and_leaves_nothing_behind() {
    let fleet = Fleet::of(2);
    let operator = fleet.operator().await;
    for refused in [
        operator.drain("a").await,
        operator.undrain("a").await,
        operator.pin("0", "a").await,
        operator.freeze().await,
    ] {
        let error = refused.expect_err("there is no assignment");
        assert!(error.to_string().contains("is no assignment"), "{error}");
    }
    let children = fleet.simulation.administrator().children("/");
    assert_eq!(children, ["zookeeper"]);
}

#[tokio::test(start_paused = true)]
async fn orders_for_workers_that_are_not_there_are_shown() {
    let fleet = Fleet::of(2);
    let operator = fleet.operator().await;
    let two = Partitions::numbered(2);
    operator.set_partitions(two).await.expect("open");
    operator.drain("gone").await.expect("open");
    operator.pin("0", "away").await.expect("open");
    let status = operator.status().await.expect("read");
    let workers = status.workers.iter();
    let shown: Vec<_> = workers
        .map(|it| (&*it.id, it.is_there, it.drained))
        .collect();
    assert_eq!(shown, [("away", false, false), ("gone", false, true)]);
}

#[tokio::test(start_paused = true)]
async fn persistent_znode_at_the_name_of_a_worker_is_an_error() {
    let fleet = Fleet::of(2);
    let directories = ["/app", PATH, "/app/queues/workers", "/app/queues/owned"];
    fleet.create(&directories, b"");
    let session = fleet.session("a").await;
    for path in ["/app/queues/workers/a", "/app/queues/owned/b"] {
        fleet.create(&[path], b"");
        let worker = path.rsplit('/').next().expect("a name");
        let error = refused(fleet.assignment(&session, worker)).await;
        assert!(error.contains("persistent znode"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn worker_that_runs_twice_in_a_session_is_refused_at_once() {
    let fleet = Fleet::of(2);
    let session = fleet.session("a").await;
    let (first, second) = (
        fleet.assignment(&session, "a"),
        fleet.assignment(&session, "a"),
    );
    let first = first.run(pending(), work);
    let twice = async {
        let began = tokio::time::Instant::now();
        let error = refused(second.clone()).await;
        assert!(error.contains("runs already in this session"), "{error}");
        assert_eq!(began.elapsed(), Duration::ZERO);
    };
    tokio::select! {
        biased;
        ended = first => panic!("{ended:?}"),
        () = twice => {}
    }
    // The first has been dropped.
    let again = timeout(LONG, second.run(async {}, work)).await;
    again.expect("in time").expect("it runs");
}

/// As a person may write it by mistake.
#[tokio::test(start_paused = true)]
async fn record_that_names_missing_parts_is_an_error_and_can_be_replaced() {
    let mut fleet = Fleet::of(2);
    fleet.start_all(&["a"]).await;
    let administrator = fleet.simulation.administrator();
    let record = b"zookeeper-recipes partitions 1 by-hand 7\n1 - 0\n";
    let path = format!("{PATH}/partitions");
    administrator.set_data(&path, record).expect("it is there");
    let session = fleet.session("b").await;
    let error = refused(fleet.assignment(&session, "b")).await;
    assert!(error.contains("a part that is missing"), "{error}");
    let operator = AssignmentOperator::new(&session, PATH).expect("a good path");
    let replaced = timeout(LONG, operator.set_partitions(Partitions::numbered(3))).await;
    replaced.expect("in time").expect("replaced");
    fleet
        .until("owned", |judge| judge.owners().len() == 3)
        .await;
}
