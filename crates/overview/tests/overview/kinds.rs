//! What is recognised, who holds, and what is marked.

use std::time::Duration;

use futures_util::future::join_all;
use zookeeper_recipes_assignment::{Assignment, Partitions};
use zookeeper_recipes_core::CreateMode;
use zookeeper_recipes_group::Group;
use zookeeper_recipes_lock::OncePerSlot;
use zookeeper_recipes_overview::{ContenderState, Mark, Overview, QueueKind};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::simulated_session;

use crate::support::{
    CURATOR, GO, KAZOO, client, create, everyone, look, queue, rows, until_queued, viewer,
};

/// A look at these directories, and at contenders that queue by these prefixes with this data.
async fn looked(directories: &[(&str, &str)], contenders: &[(String, &str)]) -> Overview {
    let simulation = Simulation::default();
    let one = client(&simulation, "one").await;
    for (directory, data) in directories {
        create(&simulation, directory, data);
    }
    for (prefix, data) in contenders {
        queue(&one, prefix, data).await;
    }
    look(&viewer(&simulation).await).await
}

fn shown(overview: &Overview, path: &str, kind: QueueKind) -> Vec<String> {
    let queue = overview.queue(path).expect("it is shown");
    assert_eq!(queue.kind(), kind);
    rows(queue)
}

#[tokio::test(start_paused = true)]
async fn contenders_of_each_client_are_recognised_and_the_rule_says_who_holds() {
    let directories = [("/lock", ""), ("/rw", ""), ("/leader", "")];
    let contenders = [
        (format!("/lock/{KAZOO}__lock__"), "kazoo"),
        (format!("/lock/{GO}lock-"), "go"),
        (format!("/lock/{CURATOR}lock-"), "curator"),
        (format!("/rw/{CURATOR}__READ__"), "a"),
        (format!("/rw/{KAZOO}__rlock__"), "b"),
        (format!("/rw/{KAZOO}__lock__"), "c"),
        (format!("/rw/{CURATOR}__READ__"), "d"),
        (format!("/leader/{CURATOR}latch-"), "node-1"),
        (format!("/leader/{CURATOR}standby-latch-"), "node-2"),
    ];
    let overview = looked(&directories, &contenders).await;
    let paths: Vec<_> = overview.queues().iter().map(|it| it.path()).collect();
    assert_eq!(paths, ["/leader", "/lock", "/rw"]);
    let lock = [
        "kazoo lock holds",
        "go lock waits for [0]",
        "curator lock waits for [1]",
    ];
    assert_eq!(shown(&overview, "/lock", QueueKind::Lock), lock);
    let rw = [
        "a read holds",
        "b read holds",
        "c write waits for [1]",
        "d read waits for [2]",
    ];
    assert_eq!(shown(&overview, "/rw", QueueKind::ReadWriteLock), rw);
    let leader = ["node-1 lead holds", "node-2 standby waits for [0]"];
    assert_eq!(shown(&overview, "/leader", QueueKind::Election), leader);
    // kazoo's contenders may not count the others, so that two may hold.
    let marks = |path| overview.queue(path).expect("it is shown").marks();
    for (path, may_pass) in [("/lock", true), ("/rw", true), ("/leader", false)] {
        let is_marked = marks(path).contains(&Mark::KazooBesideOthers);
        assert_eq!(is_marked, may_pass, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn kazoo_alone_is_not_marked_nor_are_clients_that_see_each_other() {
    let contenders = [
        (format!("/kazoo/{KAZOO}__lock__"), "a"),
        (format!("/kazoo/{KAZOO}__rlock__"), "b"),
        (format!("/others/{GO}lock-"), "c"),
        (format!("/others/{CURATOR}lock-"), "d"),
    ];
    let overview = looked(&[("/kazoo", ""), ("/others", "")], &contenders).await;
    for queue in overview.queues() {
        assert!(
            !queue.marks().contains(&Mark::KazooBesideOthers),
            "{queue:?}"
        );
    }
}

/// A candidate lets the named successor lead first. A standby candidate lets each other candidate lead first.
#[tokio::test(start_paused = true)]
async fn candidate_that_has_to_step_back_is_not_said_to_lead_nor_is_its_successor() {
    let simulation = Simulation::default();
    let one = client(&simulation, "one").await;
    create(&simulation, "/named", "");
    create(&simulation, "/standby", "");
    let latch = format!("{CURATOR}latch-");
    queue(&one, &format!("/named/{latch}"), "first").await;
    let next = queue(&one, &format!("/named/{latch}"), "next").await;
    queue(&one, &format!("/standby/{CURATOR}standby-latch-"), "first").await;
    queue(&one, &format!("/standby/{latch}"), "next").await;
    let viewer = viewer(&simulation).await;
    let mut live = Overview::watch(&viewer, "/", Duration::from_secs(1))
        .await
        .expect("a look");
    let named = |live: &Overview| rows(live.queue("/named").expect("it is shown"));
    let expected = ["first lead holds", "next lead waits for [0]"];
    assert_eq!(named(&live.borrow().overview), expected);
    let name = next.rsplit('/').next().expect("a name");
    let data = format!("zookeeper-recipes election\nsuccessor {name}\nproclaimed 7\ntext");
    let set = simulation
        .administrator()
        .set_data("/named", data.as_bytes());
    set.expect("it is there");
    let expected = ["first lead unknown", "next lead waits for [0]"];
    let changed = live.wait_for(|live| named(&live.overview) == expected);
    drop(changed.await.expect("it is open"));
    let overview = look(&viewer).await;
    assert_eq!(named(&overview), expected);
    let standby = overview.queue("/standby").expect("it is shown");
    assert_eq!(
        rows(standby),
        ["first standby unknown", "next lead waits for [0]"]
    );
    assert_eq!((standby.holders(), standby.marks().len()), (None, 1));
}

#[tokio::test(start_paused = true)]
async fn semaphore_without_a_recorded_number_is_said_to_be_unknown() {
    let directories = [
        ("/permits", "3"),
        ("/no number", ""),
        ("/leases", ""),
        ("/kazoo", "2"),
    ];
    let contenders = [
        (format!("/permits/{CURATOR}permit-2-"), "two"),
        (format!("/permits/{CURATOR}permit-1-"), "one"),
        (format!("/permits/{CURATOR}permit-1-"), "late"),
        (format!("/no number/{CURATOR}permit-1-"), "who knows"),
        (format!("/leases/{CURATOR}lease-"), "a"),
    ];
    let overview = looked(&directories, &contenders).await;
    let permits = [
        "two 2 permits holds",
        "one 1 permit holds",
        "late 1 permit waits for [0, 1]",
    ];
    assert_eq!(shown(&overview, "/permits", QueueKind::Semaphore), permits);
    let unknown = shown(&overview, "/no number", QueueKind::Semaphore);
    assert_eq!(unknown, ["who knows 1 permit unknown"]);
    let leases = shown(&overview, "/leases", QueueKind::CuratorSemaphore);
    assert_eq!(leases, ["a lease unknown"]);
    for path in ["/leases", "/no number"] {
        let queue = overview.queue(path).expect("it is shown");
        let seen = (queue.holders(), queue.marks());
        assert_eq!(seen, (None, vec![Mark::NoNumber]), "{path}");
    }
    assert!(overview.queue("/kazoo").is_none(), "nobody has a lease");
}

/// The second one wants more than there are. It may hold from before, or not know yet that it waits
/// in vain.
#[tokio::test(start_paused = true)]
async fn waiter_from_before_the_number_was_lowered_is_not_said_to_hold() {
    let simulation = Simulation::default();
    let one = client(&simulation, "one").await;
    create(&simulation, "/permits", "4");
    for weight in [1, 4] {
        queue(&one, &format!("/permits/{CURATOR}permit-{weight}-"), "a").await;
    }
    let lowered = simulation.administrator().set_data("/permits", b"2");
    lowered.expect("it is there");
    let overview = look(&viewer(&simulation).await).await;
    let permits = shown(&overview, "/permits", QueueKind::Semaphore);
    assert_eq!(permits, ["a 1 permit holds", "a 4 permits unknown"]);
    let queue = overview.queue("/permits").expect("it is shown");
    assert!(queue.marks().contains(&Mark::NumberChanged));
}

#[tokio::test(start_paused = true)]
async fn leases_of_kazoo_are_held_and_a_number_alone_makes_no_semaphore() {
    let simulation = Simulation::default();
    let one = client(&simulation, "one").await;
    for (directory, names) in [
        ("/kazoo", [KAZOO, &KAZOO.replace('0', "f")]),
        ("/group", [KAZOO, "b"]),
    ] {
        create(&simulation, directory, "2");
        for name in names {
            let path = format!("{directory}/{name}");
            let created = one.create(&path, b"owner", CreateMode::Ephemeral, &everyone());
            created.await.expect("it is new");
        }
    }
    let overview = look(&viewer(&simulation).await).await;
    let leases = shown(&overview, "/kazoo", QueueKind::KazooSemaphore);
    assert_eq!(leases, ["owner lease holds"; 2]);
    let members = shown(&overview, "/group", QueueKind::Group);
    assert_eq!(members, ["owner name holds"; 2]);
}

#[tokio::test(start_paused = true)]
async fn jobs_groups_and_assignments_are_recognised() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "worker").await;
    let group = Group::new(&session, "/app/members").expect("a good path");
    let member = group
        .join("node-7", "10.0.0.7:8080")
        .await
        .expect("it is free");
    let options = zookeeper_recipes_lock::OncePerSlotOptions::new();
    let clock = simulation.clone();
    let options = options.clock(move || clock.system_time());
    let day = Duration::from_secs(24 * 60 * 60);
    let job = OncePerSlot::with_options(&session, "/jobs/report", day, options);
    let job = job.expect("a good path");
    let claim = job
        .begin()
        .await
        .expect("it is free")
        .own()
        .expect("the slot is free");
    let partitions = Partitions::numbered(3);
    let assignment = Assignment::new(&session, "/app/shards", partitions, "node-7");
    let assignment = assignment.expect("a good path");
    let work = |_| async { std::future::pending::<Result<(), std::io::Error>>().await };
    let working = tokio::spawn(async move { assignment.run(std::future::pending(), work).await });
    for partition in 0..3 {
        let path = format!("/app/shards/locks/{partition}");
        until_queued(&simulation, &path, 1).await;
    }
    let overview = look(&viewer(&simulation).await).await;
    let of_kind = |kind| {
        let queues = overview.queues().iter().filter(move |it| it.kind() == kind);
        queues.map(|it| it.path().to_owned()).collect::<Vec<_>>()
    };
    let groups = ["/app/members", "/app/shards/owned", "/app/shards/workers"];
    assert_eq!(of_kind(QueueKind::Group), groups);
    assert_eq!(of_kind(QueueKind::OncePerSlot), ["/jobs/report"]);
    assert_eq!(of_kind(QueueKind::Election), ["/app/shards/leader"]);
    let locks = [0, 1, 2].map(|number| format!("/app/shards/locks/{number}"));
    assert_eq!(of_kind(QueueKind::Partition), locks);
    let members = overview.queue("/app/members").expect("it is shown");
    let [found] = &members.contenders().collect::<Vec<_>>()[..] else {
        panic!("{members:?}")
    };
    assert_eq!((&*found.name, &*found.owner), ("node-7", "10.0.0.7:8080"));
    assert_eq!(found.state, ContenderState::Holds);
    assert_eq!(Some(found.session_id), session.id());
    let job = overview.queue("/jobs/report").and_then(|it| it.job());
    assert_eq!(job.map(|job| job.every), Some(day));
    drop((member, claim));
    working.abort();
}

#[tokio::test(start_paused = true)]
async fn what_is_unusual_is_marked() {
    let simulation = Simulation::default();
    let one = client(&simulation, "one").await;
    for path in ["/mixed", "/used", "/tidy", "/left"] {
        create(&simulation, path, "");
    }
    create(&simulation, "/mixed/note", "");
    queue(&one, &format!("/mixed/{CURATOR}lock-"), "a").await;
    queue(&one, &format!("/mixed/{CURATOR}latch-"), "b").await;
    let lock = format!("/used/{CURATOR}lock-");
    let administrator = simulation.administrator();
    let used = administrator.set_create_counter("/used", i32::MAX / 100 * 95);
    used.expect("it is there");
    queue(&one, &lock, "a").await;
    queue(&one, &format!("/tidy/{CURATOR}lock-"), "a").await;
    create(
        &simulation,
        &format!("/left/{CURATOR}lock-0000000000"),
        "somebody",
    );

    let overview = look(&viewer(&simulation).await).await;
    let marks = |path: &str| overview.queue(path).expect("it is shown").marks();
    let session_id = one.id;
    let shared = Mark::SharedSession {
        session_id,
        places: 2,
    };
    assert_eq!(marks("/mixed"), [Mark::Mixed, Mark::Foreign(1), shared]);
    let mixed = overview.queue("/mixed").expect("it is shown");
    assert_eq!(
        rows(mixed),
        ["a lock holds", "b lead holds"],
        "they do not see each other"
    );
    assert_eq!(mixed.holders(), Some(2));
    assert_eq!(marks("/used"), [Mark::NumbersUsed(94)]);
    assert_eq!(marks("/tidy"), []);
    assert_eq!(marks("/left"), [Mark::Persistent(1)]);
    let left = overview.queue("/left").expect("it is shown");
    assert!(left.contenders().all(|it| it.is_persistent()));
}

#[tokio::test(start_paused = true)]
async fn contenders_without_numbers_left_are_in_the_order_of_their_creation() {
    let simulation = Simulation::default();
    let one = client(&simulation, "one").await;
    create(&simulation, "/lock", "");
    let administrator = simulation.administrator();
    let set = administrator.set_create_counter("/lock", i32::MAX - 1);
    set.expect("it is there");
    let owners = ["first", "second", "third", "fourth"];
    for (place, owner) in owners.into_iter().enumerate() {
        // The order of the names is the other one.
        let identity = 9 - place;
        queue(
            &one,
            &format!("/lock/{identity}{}__lock__", &KAZOO[1..]),
            owner,
        )
        .await;
    }
    let overview = look(&viewer(&simulation).await).await;
    let lock = overview.queue("/lock").expect("it is shown");
    let seen: Vec<_> = lock.contenders().map(|it| it.owner.to_string()).collect();
    assert_eq!(seen, owners);
    assert!(lock.marks().contains(&Mark::NumbersUsed(100)));
}

#[tokio::test(start_paused = true)]
async fn session_with_too_many_znodes_is_near_its_limit() {
    let simulation = Simulation::default();
    let one = client(&simulation, "one").await;
    let viewer = viewer(&simulation).await;
    let directory = format!("/{}", "x".repeat(900));
    create(&simulation, &directory, "");
    let is_near = async |number: usize| {
        let prefix = format!("{directory}/{CURATOR}lock-");
        let creates = (0..number).map(|_| queue(&one, &prefix, ""));
        join_all(creates.collect::<Vec<_>>()).await;
        let overview = look(&viewer).await;
        let [found] = &overview.sessions()[..] else {
            panic!("{:?}", overview.sessions())
        };
        assert_eq!(found.session_id, one.id);
        assert_eq!((found.holds, found.waits + 1), (1, found.znodes));
        found.is_near_its_limit()
    };
    assert!(!is_near(500).await);
    assert!(is_near(100).await);
}
