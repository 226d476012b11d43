//! What a queue's list says of its contenders: who they are, since when, and whether they hold.

use std::process::Command;
use std::time::UNIX_EPOCH;

use crate::support::*;

const PATH: &str = "/locks/a";

async fn session(simulation: &Simulation, owner: &str) -> Session {
    let options = ConnectOptions::new().owner(owner);
    open(simulation.ensemble(owner), options).await
}

/// A session below the znode `/app`, which is its chroot.
async fn below_a_chroot(simulation: &Simulation) -> Session {
    make(simulation, "/app");
    let process = simulation.process("a").with_chroot("/app");
    open(process.ensemble(), ConnectOptions::new()).await
}

async fn entries(recipe: &dyn Recipe) -> Vec<QueueEntry> {
    recipe.contenders().await.expect("it can be read")
}

/// `service@host:pid` of a session with this owner.
fn owner(service: &str, session: &Session) -> Option<String> {
    let text = session.owner();
    let (before, process) = text.rsplit_once(':').expect("a process");
    assert_eq!(process, std::process::id().to_string());
    let named = Command::new("uname").arg("-n").output().expect("it runs");
    let host = String::from_utf8(named.stdout).expect("a name");
    assert_eq!(before, format!("{service}@{}", host.trim_end()));
    Some(text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn list_says_who_holds_and_who_waits_since_when() {
    let simulation = Simulation::default();
    let billing = session(&simulation, "billing").await;
    let ledger = session(&simulation, "ledger").await;
    let queue = lock(&billing, PATH);
    let other = lock(&ledger, PATH);
    let hold = queue.acquire().await.expect("nobody is before it");
    let waiting = spawned(&other);
    tokio::time::sleep(Duration::from_secs(1)).await;

    let listed = entries(&queue).await;
    let seen = listed
        .iter()
        .map(|entry| (entry.owner.clone(), entry.holds));
    let [first, second] = [owner("billing", &billing), owner("ledger", &ledger)];
    assert_eq!(seen.collect::<Vec<_>>(), [(first, true), (second, false)]);
    let tree = simulation.administrator().tree();
    for entry in &listed {
        let path = format!("{PATH}/{}", entry.name);
        let znode = tree.iter().find(|znode| znode.path == path);
        let created = znode.expect("it exists").stat.ctime;
        let created = u64::try_from(created).expect("it is not negative");
        assert_eq!(entry.created, UNIX_EPOCH + Duration::from_millis(created));
        assert!(entry.created > UNIX_EPOCH);
    }

    hold.release().await.expect("it is held");
    let next = waiting.await.expect("no panic").expect("it is its turn");
    let listed = entries(&queue).await;
    assert_eq!(listed.len(), 1);
    assert!(listed[0].holds);
    assert_eq!(listed[0].owner, owner("ledger", &ledger));
    next.release().await.expect("it is held");
}

#[tokio::test(start_paused = true)]
async fn data_that_is_set_replaces_the_owner() {
    let simulation = Simulation::default();
    let session = session(&simulation, "billing").await;
    for (data, owner) in [
        (&b"node-7"[..], Some("node-7")),
        (b"", None),
        (b"\0\xff", None),
        (b"two\nlines", None),
        (b"\x7f\x00\x00\x01", None),
        ("Zoë 7".as_bytes(), Some("Zoë 7")),
    ] {
        let options = QueueOptions::new().data(data);
        let queue = queue_with(&session, PATH, options);
        let hold = queue.acquire().await.expect("nobody is before it");
        let listed = entries(&queue).await;
        assert_eq!(listed[0].data, data);
        assert_eq!(listed[0].owner.as_deref(), owner);
        hold.release().await.expect("it is held");
    }
}

#[tokio::test(start_paused = true)]
async fn lock_of_one_znode_names_its_owner_without_the_identity() {
    let simulation = Simulation::default();
    let session = session(&simulation, "billing").await;
    let named = SingleNodeOptions::new().data("node-7");
    for (options, expected) in [
        (SingleNodeOptions::new(), owner("billing", &session)),
        (named, Some("node-7".to_owned())),
        (SingleNodeOptions::new().data(""), None),
    ] {
        let lock = SingleNodeLock::with_options(&session, "/lock", options).expect("a good path");
        let hold = lock.acquire().await.expect("it is free");
        let listed = entries(&lock).await;
        assert_eq!(listed[0].owner, expected);
        assert!(listed[0].holds);
        hold.release().await.expect("it is held");
    }
    // A znode that another client has made.
    let made = simulation
        .administrator()
        .create("/lock", b"10.0.0.7", CreateMode::Persistent);
    made.expect("it is free");
    let lock = single_node(&session, "/lock");
    assert_eq!(entries(&lock).await[0].owner.as_deref(), Some("10.0.0.7"));
}

#[tokio::test(start_paused = true)]
async fn missing_chroot_is_no_empty_queue() {
    let simulation = Simulation::default();
    let session = below_a_chroot(&simulation).await;
    let recipes: [Arc<dyn Recipe>; 2] = [
        Arc::new(lock(&session, PATH)),
        Arc::new(single_node(&session, PATH)),
    ];
    for recipe in &recipes {
        assert_eq!(entries(&**recipe).await, []);
    }
    delete(&simulation, "/app");
    for recipe in &recipes {
        // The answer is lost, and asked for again.
        let faults = simulation.faults();
        faults.inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Get));
        let error = recipe.contenders().await.expect_err("the chroot is gone");
        let named = matches!(&error, Error::MissingChroot { chroot } if chroot == "/app");
        assert!(named, "{error}");
    }
}

/// The directory of the queue is missing. The session ends before it has read its chroot.
#[tokio::test(start_paused = true)]
async fn list_of_a_session_that_ends_meanwhile_is_no_empty_queue() {
    let simulation = Simulation::default();
    let administrator = simulation.administrator();
    let session = below_a_chroot(&simulation).await;
    let queue = lock(&session, PATH);
    let late = Fault::new(FaultKind::RequestLate(Duration::from_secs(1)));
    simulation.faults().inject(late.on(RequestKind::Get));
    let expire = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        administrator.expire(session.id().expect("it is open"));
    };
    let (listed, ()) = tokio::join!(queue.contenders(), expire);
    assert_eq!(simulation.faults().waiting(), 0, "it was met");
    let error = listed.expect_err("the session is over");
    assert!(matches!(error, Error::SessionOver { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn owner_that_cannot_be_printed_is_refused_before_anything_is_sent() {
    let simulation = Simulation::default();
    let long = "a".repeat(201);
    for owner in ["", "two\nlines", "\u{7}", long.as_str()] {
        let options = ConnectOptions::new().owner(owner);
        let refused = Session::open(simulation.ensemble("a"), options).await;
        let error = refused.expect_err("it is refused");
        assert!(matches!(error, Error::InvalidInput(_)), "{error}");
        assert!(error.to_string().contains("owner"), "{error}");
    }
    let longest = session(&simulation, &long[1..]).await;
    assert!(longest.owner().starts_with(&long[1..]));
    let program = simulated_session(&simulation, "a").await;
    assert!(program.owner().starts_with("core-"), "{}", program.owner());
}
