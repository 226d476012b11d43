//! An acquisition that the server refuses, on a simulated ensemble.

use std::time::Duration;

use tokio::time::sleep;
use tracing::Level;
use zookeeper_recipes_core::ensemble::{Acl, AuthId, Permission};
use zookeeper_recipes_core::{
    CreateMode, Error, Hold, NodePath, Queue, QueueOptions, Recipe, Refusal, ServerError, Session,
};
use zookeeper_recipes_lock::SingleNodeLock;
use zookeeper_recipes_protocol::ErrorCode;
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation};
use zookeeper_recipes_suite::log::Log;
use zookeeper_recipes_suite::simulated_session;

use crate::support::{FIRST, assert_fails, lock, lock_of, open};

#[tokio::test(start_paused = true)]
async fn refused_acquisition_asks_for_nothing_more_and_warns_of_nothing() {
    let simulation = Simulation::default();
    let closed = [Acl::new(Permission::ADMIN, AuthId::anyone())];
    let administrator = simulation.administrator();
    let created = administrator.create_with_acl("/closed", b"", CreateMode::Persistent, &closed);
    created.expect("an empty tree takes it");
    let queue = lock_of(&simulation, "one", "/closed").await;

    let log = Log::up_to(Level::WARN);
    let _subscribed = tracing::subscriber::set_default(log.clone());
    let refused = queue.acquire().await;
    assert_fails!(refused, Error::Refused);
    let asked_for = |simulation: &Simulation| {
        let counters = simulation.counters();
        (
            counters.requests(RequestKind::List),
            counters.requests(RequestKind::Delete),
        )
    };
    let before = asked_for(&simulation);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(asked_for(&simulation), before);
    assert!(log.lines().is_empty(), "{:?}", log.lines());
}

/// The parent's access control list permits to create a child. That of the child does not exist.
#[tokio::test(start_paused = true)]
async fn znode_without_permission_is_named_and_not_the_one_to_create() {
    let simulation = Simulation::default();
    let read_only = [Acl::new(Permission::READ, AuthId::anyone())];
    let administrator = simulation.administrator();
    let mode = CreateMode::Persistent;
    administrator.create("/p", b"", mode).expect("it is free");
    let created = administrator.create_with_acl("/p/locks", b"", mode, &read_only);
    created.expect("it is free");
    let session = simulated_session(&simulation, "one").await;
    let queue = |path| lock(&session, path);
    let single = |path| SingleNodeLock::new(&session, path).expect("a good path");
    let attempts: [(&str, Box<dyn Recipe>); 4] = [
        ("a contender", Box::new(queue("/p/locks"))),
        ("its directory", Box::new(queue("/p/locks/b"))),
        ("the parent of that", Box::new(queue("/p/locks/b/c"))),
        ("a single znode", Box::new(single("/p/locks/b"))),
    ];
    for (created, recipe) in attempts {
        let error = recipe.acquire().await.expect_err("no permission");
        let Error::Refused { path, refusal, .. } = &error else {
            panic!("{created}: {error:?}");
        };
        assert_eq!(path, "/p/locks", "{created}");
        assert_eq!(*refusal, Refusal::NoPermission(Permission::CREATE));
        let text = error.to_string();
        assert!(text.starts_with("/p/locks: no permission: "), "{text}");
        assert!(text.contains("`create`"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn root_is_named_if_it_does_not_permit_to_create() {
    let simulation = Simulation::default();
    let reads = [Acl::new(Permission::READ, AuthId::anyone())];
    let administrator = simulation.administrator();
    administrator.set_acl("/", &reads).expect("it exists");
    let session = simulated_session(&simulation, "one").await;
    let lock = SingleNodeLock::new(&session, "/lock").expect("a good path");
    let error = lock.acquire().await.expect_err("no permission");
    assert_eq!(missing(&error), ("/", Permission::CREATE));
}

/// The path and the missing permission of a refused call.
#[track_caller]
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

/// Creates a persistent znode with a list that grants these permissions to everyone.
fn create(simulation: &Simulation, path: &str, granted: Permission) {
    let acl = [Acl::new(granted, AuthId::anyone())];
    let administrator = simulation.administrator();
    let created = administrator.create_with_acl(path, b"", CreateMode::Persistent, &acl);
    created.expect("its parent exists");
}

async fn hold(simulation: &Simulation) -> (Session, Hold) {
    let session = simulated_session(simulation, "one").await;
    let queue = lock(&session, "/locks/a");
    let hold = queue.acquire().await.expect("it is free");
    (session, hold)
}

#[tokio::test(start_paused = true)]
async fn guarded_write_without_permission_names_the_znode_that_does_not_grant_it() {
    let simulation = Simulation::default();
    create(&simulation, "/open", Permission::ALL);
    create(&simulation, "/closed", Permission::READ);
    create(&simulation, "/closed/child", Permission::ALL);
    create(&simulation, "/secret", Permission::WRITE);
    let (_session, hold) = hold(&simulation).await;
    let write = || hold.transaction().set_data("/open", b"");
    let mode = CreateMode::Persistent;
    for (written, expected) in [
        (
            write().create("/closed/new", b"", mode),
            ("/closed", Permission::CREATE),
        ),
        (
            write().delete("/closed/child"),
            ("/closed", Permission::DELETE),
        ),
        (
            write().set_data("/closed", b""),
            ("/closed", Permission::WRITE),
        ),
        (write().check("/secret"), ("/secret", Permission::READ)),
    ] {
        let refused = written.commit().await.expect_err("no permission");
        assert_eq!(missing(&refused), expected, "{refused}");
    }
    write().commit().await.expect("the hold lasts");
}

#[tokio::test(start_paused = true)]
async fn replacement_without_permission_names_the_directory() {
    let (create, delete) = (Permission::CREATE, Permission::DELETE);
    for (needed, other) in [(create, delete), (delete, create)] {
        let simulation = Simulation::default();
        let (_session, hold) = hold(&simulation).await;
        let granted = [Acl::new(Permission::READ | other, AuthId::anyone())];
        let administrator = simulation.administrator();
        let set = administrator.set_acl("/locks/a", &granted);
        set.expect("it exists");
        let acl = [Acl::new(Permission::ALL, AuthId::anyone())];
        let refused = hold.replace("lock-", "new-", b"", &acl).await;
        let refused = refused.expect_err("no permission");
        assert_eq!(missing(&refused), ("/locks/a", needed));
    }
}

#[tokio::test(start_paused = true)]
async fn list_for_the_creator_is_refused_to_a_session_without_credentials() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let acl = [Acl::new(Permission::ALL, AuthId::authed())];
    let options = QueueOptions::new().acl(acl);
    let queue = Queue::with_options(&session, "/locks/a", FIRST, options);
    let error = queue.expect("a good path").acquire().await;
    let error = error.expect_err("it has no credentials");
    let Error::Refused { refusal, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*refusal, Refusal::NoCredentials);
    let text = error.to_string();
    assert!(
        text.contains("no credentials: set `ConnectOptions::auth`"),
        "{text}"
    );
    assert_eq!(simulation.counters().requests(RequestKind::Create), 0);
}

#[test]
fn ephemeral_on_a_local_session_is_refused_with_what_to_do() {
    let error = ServerError::from(ErrorCode::EphemeralOnLocalSession);
    assert!(error.is(Refusal::LocalSession), "{error:?}");
    let sentence = error.to_string();
    assert!(
        sentence.contains("localSessionsUpgradingEnabled=true"),
        "{sentence}"
    );
}

/// The session may create below the chroot, and not read it.
#[tokio::test(start_paused = true)]
async fn chroot_that_may_not_be_read_is_not_missing() {
    let simulation = Simulation::default();
    create(&simulation, "/app", Permission::CREATE);
    let process = simulation.process("one").with_chroot("/app");
    let session = open(process.ensemble(), Default::default()).await;
    let queue = lock(&session, "/lock");
    assert_eq!(queue.contenders().await.expect("a list").len(), 0);
    let process = simulation.process("two").with_chroot("/other");
    let missing = Session::open(process.ensemble(), Default::default()).await;
    let missing = missing.map(drop);
    assert_fails!(missing, Error::MissingChroot);
}

/// A waiter that took its predecessor for missing would look too early.
#[tokio::test(start_paused = true)]
async fn look_that_the_server_throttles_does_not_say_that_a_znode_is_missing() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let path = NodePath::new("/locks").expect("a good path");
    let server = session.server(&path).await.expect("it is open");
    let throttled = Fault::new(FaultKind::Throttled).on(RequestKind::Exists);
    simulation.faults().inject(throttled);
    let looked = server.exists_and_watch("/locks").await;
    let refused = looked.map(|(stat, _)| stat).expect_err("it is throttled");
    assert!(
        matches!(refused, ServerError::Refused(Refusal::Throttled)),
        "{refused}"
    );
    let (stat, _watch) = server.exists_and_watch("/locks").await.expect("an answer");
    assert!(stat.is_none());
}
