//! Looks at trees that change, that may not be read, or that have unusual paths.

use std::time::Duration;

use tokio::time::sleep;
use zookeeper_recipes_core::{
    Acl, AuthId, ConnectOptions, CreateMode, Permission, Refusal, Session,
};
use zookeeper_recipes_overview::{Error, LiveOverview, Mark, Overview};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation};
use zookeeper_recipes_suite::{LOCK, RWLOCK, WRITER, downgrade, in_time, simulated_session};

use crate::support::{CURATOR, VIEWER, client, create, everyone, look, queue, rows, viewer};

#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_is_counted_and_named() {
    let simulation = Simulation::default();
    let nobody = [Acl::new(
        Permission::ALL,
        AuthId::digest("somebody", "else"),
    )];
    let administrator = simulation.administrator();
    for path in ["/secret", "/lock"] {
        create(&simulation, path, "");
    }
    let one = client(&simulation, "one").await;
    queue(&one, &format!("/secret/{CURATOR}lock-"), "unseen").await;
    administrator
        .set_acl("/secret", &nobody)
        .expect("it is there");
    let first = queue(&one, &format!("/lock/{CURATOR}lock-"), "unseen").await;
    queue(&one, &format!("/lock/{CURATOR}lock-"), "seen").await;
    administrator.set_acl(&first, &nobody).expect("it is there");

    let viewer = viewer(&simulation).await;
    let overview = look(&viewer).await;
    let [unread] = overview.unread() else {
        panic!("{:?}", overview.unread())
    };
    assert_eq!(
        (&*unread.path, &unread.refusal),
        ("/secret", &Refusal::NoAuth)
    );
    let [lock] = overview.queues() else {
        panic!("{:?}", overview.queues())
    };
    assert_eq!((lock.len(), lock.holders()), (2, Some(1)));
    assert_eq!(rows(lock), ["seen lock waits for [0]"]);
    assert_eq!(lock.marks(), [Mark::Unread(1)]);

    let secret = Overview::below(&viewer, "/secret").await.expect("a look");
    assert!(secret.exists() && secret.queues().is_empty());
    assert_eq!(secret.unread().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn paths_are_those_below_the_chroot_and_may_be_any_text() {
    let simulation = Simulation::default();
    let names = [
        "/app",
        "/app/заказ",
        "/app/заказ/ü ☃",
        "/outside",
        "/app/zookeeper",
    ];
    for path in names {
        create(&simulation, path, "");
    }
    let one = client(&simulation, "one").await;
    for directory in ["/app/заказ/ü ☃", "/outside", "/app"] {
        queue(&one, &format!("{directory}/{CURATOR}lock-"), "ключ").await;
    }
    let process = simulation.process(VIEWER).with_chroot("/app");
    let session = Session::open(process.ensemble(), ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    let overview = look(&session).await;
    let paths: Vec<_> = overview.queues().iter().map(|it| it.path()).collect();
    assert_eq!(paths, ["/", "/заказ/ü ☃"]);
    for queue in overview.queues() {
        assert_eq!(rows(queue), ["ключ lock holds"]);
    }
    let below = Overview::below(&session, "/заказ").await.expect("a look");
    assert_eq!(below.queues().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn path_that_does_not_exist_is_empty_and_a_bad_one_is_an_error() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let missing = Overview::below(&viewer, "/missing").await.expect("a look");
    assert!(!missing.exists() && missing.queues().is_empty());
    assert!(look(&viewer).await.exists());
    for bad in ["", "locks", "/locks/", "/zookeeper"] {
        let looked = Overview::below(&viewer, bad).await;
        assert!(
            matches!(looked, Err(Error::InvalidInput(_))),
            "{bad}: {looked:?}"
        );
    }
    let other = viewer.clone();
    viewer.close().await;
    let looked = Overview::below(&other, "/").await;
    assert!(
        matches!(looked, Err(Error::NoSession { ref path, .. }) if path == "/"),
        "{looked:?}"
    );
}

/// A look whose read of the contenders comes a second after their names: this happens in between.
async fn look_around(simulation: &Simulation, between: impl Future<Output = ()>) -> Overview {
    let viewer = viewer(simulation).await;
    let late = Fault::new(FaultKind::RequestLate(Duration::from_secs(1)));
    let faults = simulation.faults();
    faults.inject(late.of_process(VIEWER).on(RequestKind::GetEach));
    let looking = tokio::spawn(async move { look(&viewer).await });
    while faults.waiting() > 0 {
        sleep(Duration::from_millis(10)).await;
    }
    between.await;
    looking.await.expect("no panic")
}

/// The holder is gone when its znode is read: the next one holds.
#[tokio::test(start_paused = true)]
async fn contender_that_leaves_between_the_list_and_the_read_is_left_out() {
    let simulation = Simulation::default();
    create(&simulation, "/lock", "");
    let one = client(&simulation, "one").await;
    let first = queue(&one, &format!("/lock/{CURATOR}lock-"), "first").await;
    queue(&one, &format!("/lock/{CURATOR}lock-"), "second").await;
    let leaves = async {
        let deleted = simulation.administrator().delete(&first);
        deleted.expect("it is there");
    };
    let overview = look_around(&simulation, leaves).await;
    assert_eq!(rows(&overview.queues()[0]), ["second lock holds"]);
}

/// The members of a directory are read if it has no contenders.
#[tokio::test(start_paused = true)]
async fn members_are_shown_whose_last_contender_leaves_between_the_list_and_the_read() {
    let simulation = Simulation::default();
    create(&simulation, "/mixed", "");
    let one = client(&simulation, "one").await;
    let created = one.create("/mixed/a", b"a", CreateMode::Ephemeral, &everyone());
    created.await.expect("it is new");
    let last = queue(&one, &format!("/mixed/{CURATOR}lock-"), "last").await;
    let leaves = async { one.delete(&last).await.expect("it is there") };
    let overview = look_around(&simulation, leaves).await;
    let shown: Vec<_> = overview.queues().iter().map(|it| rows(it)).collect();
    assert_eq!(shown, [["a name holds"]]);
}

/// The members are read after the contenders have left, also if the queue was listed twice.
#[tokio::test(start_paused = true)]
async fn members_are_known_beside_a_queue_that_a_writer_leaves_between_the_list_and_the_read() {
    let simulation = Simulation::default();
    create(&simulation, "/mixed", "");
    let one = client(&simulation, "one").await;
    let created = one.create("/mixed/a", b"a", CreateMode::Ephemeral, &everyone());
    created.await.expect("it is new");
    let writer = queue(&one, &format!("/mixed/{CURATOR}__WRIT__"), "writer").await;
    let next = queue(&one, &format!("/mixed/{CURATOR}__WRIT__"), "next").await;
    let viewer = viewer(&simulation).await;
    let late = Fault::new(FaultKind::RequestLate(Duration::from_secs(1))).of_process(VIEWER);
    simulation.faults().inject(late.on(RequestKind::GetEach));
    let watching = Overview::watch(&viewer, "/", Duration::from_secs(1));
    let leaves = async {
        sleep(Duration::from_millis(500)).await;
        one.delete(&writer).await.expect("it is there");
    };
    let (live, ()) = tokio::join!(watching, leaves);
    let mut live = live.expect("a look");
    assert_eq!(
        rows(&live.borrow().overview.queues()[0]),
        ["next write holds"]
    );
    one.delete(&next).await.expect("it is there");
    let is_shown = |it: &LiveOverview| {
        let mut queues = it.overview.queues().iter();
        queues.any(|it| rows(it) == ["a name holds"])
    };
    in_time("the member is shown", live.wait_for(is_shown))
        .await
        .expect("open");
}

/// A read lock takes the place of a write lock: the list has not shown its znode.
#[tokio::test(start_paused = true)]
async fn writer_that_becomes_a_reader_between_the_list_and_the_read_still_bars_the_next_one() {
    let simulation = Simulation::default();
    let one = simulated_session(&simulation, "one").await;
    let written = RWLOCK
        .at(&one, "/rw", WRITER)
        .acquire()
        .await
        .expect("free");
    let next = client(&simulation, "next").await;
    queue(&next, &format!("/rw/{CURATOR}__WRIT__"), "next").await;
    let how = RWLOCK.downgrade.expect("a writer can become a reader");
    let downgraded = async { downgrade(written, how).await.expect("it is held") };
    let mut read = None;
    let between = async { read = Some(downgraded.await) };
    let overview = look_around(&simulation, between).await;
    let rows = rows(&overview.queues()[0]);
    assert!(rows[0].ends_with(" read holds"), "{rows:?}");
    assert_eq!(rows[1..], ["next write waits for [0]"]);
    drop(read);
}

/// A znode of a megabyte, many times over, does not fit into one reply.
#[tokio::test(start_paused = true)]
async fn contenders_with_much_data_are_read_in_parts() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    create(&simulation, "/lock", "");
    let one = client(&simulation, "one").await;
    let data = "x".repeat(1_000_000);
    for _ in 0..80 {
        queue(&one, &format!("/lock/{CURATOR}lock-"), &data).await;
    }
    let overview = look(&viewer).await;
    let lock = &overview.queues()[0];
    assert_eq!(lock.contenders().count(), 80);
    assert!(lock.contenders().all(|it| *it.owner == *"x".repeat(60)));
}

#[tokio::test(start_paused = true)]
async fn look_writes_nothing_and_leaves_no_watch_and_may_be_dropped() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let _hold = LOCK.at(&viewer, "/lock", 1).acquire().await.expect("free");
    sleep(Duration::from_secs(5)).await;
    let before = simulation.counters();
    look(&viewer).await;
    for polls in 1..20 {
        let looking = Overview::below(&viewer, "/");
        zookeeper_recipes_suite::dropped_after(Some(polls), looking, &mut 0).await;
    }
    let after = simulation.counters();
    assert_eq!(after.transactions(), before.transactions());
    assert_eq!(after.watches(), before.watches());
}

#[tokio::test(start_paused = true)]
async fn ephemeral_znode_beside_contenders_is_foreign_and_no_group() {
    let simulation = Simulation::default();
    let one = client(&simulation, "one").await;
    create(&simulation, "/lock", "");
    queue(&one, &format!("/lock/{CURATOR}lock-"), "a").await;
    let note = one.create("/lock/note", b"", CreateMode::Ephemeral, &everyone());
    note.await.expect("it is new");
    let overview = look(&viewer(&simulation).await).await;
    let [lock] = overview.queues() else {
        panic!("{:?}", overview.queues())
    };
    assert_eq!((lock.len(), lock.foreign()), (1, &["note".to_owned()][..]));
}
