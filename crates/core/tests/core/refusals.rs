//! An acquisition that the server refuses, on a simulated ensemble.

use tracing::Level;
use zookeeper_recipes_suite::log::Log;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn refused_acquisition_asks_for_nothing_more_and_warns_of_nothing() {
    let simulation = Simulation::default();
    make_granting(&simulation, "/closed", Permission::ADMIN);
    let queue = lock_of(&simulation, "one", "/closed").await;

    let log = Log::up_to(Level::WARN);
    let _subscribed = tracing::subscriber::set_default(log.clone());
    let refused = queue.acquire().await;
    assert_fails!(refused, Error::Refused);
    let asked_for = || sent(&simulation, [RequestKind::List, RequestKind::Delete]);
    let before = asked_for();
    sleep(5 * SECOND).await;
    assert_eq!(asked_for(), before);
    assert!(log.lines().is_empty(), "{:?}", log.lines());
}

/// The parent's access control list permits to create a child. That of the child does not exist.
#[tokio::test(start_paused = true)]
async fn znode_without_permission_is_named_and_not_the_one_to_create() {
    let simulation = Simulation::default();
    make(&simulation, "/p");
    make_granting(&simulation, "/p/locks", Permission::READ);
    let session = simulated_session(&simulation, "one").await;
    let attempts: [(&str, Box<dyn Recipe>); 4] = [
        ("a contender", Box::new(lock(&session, "/p/locks"))),
        ("its directory", Box::new(lock(&session, "/p/locks/b"))),
        (
            "the parent of that",
            Box::new(lock(&session, "/p/locks/b/c")),
        ),
        (
            "a single znode",
            Box::new(single_node(&session, "/p/locks/b")),
        ),
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
    grant(&simulation, "/", Permission::READ);
    let session = simulated_session(&simulation, "one").await;
    let lock = single_node(&session, "/lock");
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

async fn held(simulation: &Simulation) -> Hold {
    hold(&lock_of(simulation, "one", "/locks/a").await).await
}

#[tokio::test(start_paused = true)]
async fn guarded_write_without_permission_names_the_znode_that_does_not_grant_it() {
    let simulation = Simulation::default();
    make_granting(&simulation, "/open", Permission::ALL);
    make_granting(&simulation, "/closed", Permission::READ);
    make_granting(&simulation, "/closed/child", Permission::ALL);
    make_granting(&simulation, "/secret", Permission::WRITE);
    let hold = held(&simulation).await;
    let write = || hold.transaction().set_data("/open", b"");
    let mode = CreateMode::Persistent;
    let create = write().create("/closed/new", b"", mode);
    for (written, path, permission) in [
        (create, "/closed", Permission::CREATE),
        (
            write().delete("/closed/child"),
            "/closed",
            Permission::DELETE,
        ),
        (
            write().set_data("/closed", b""),
            "/closed",
            Permission::WRITE,
        ),
        (write().check("/secret"), "/secret", Permission::READ),
    ] {
        let refused = written.commit().await.expect_err("no permission");
        assert_eq!(missing(&refused), (path, permission), "{refused}");
    }
    write().commit().await.expect("the hold lasts");
}

#[tokio::test(start_paused = true)]
async fn replacement_without_permission_names_the_directory() {
    let (create, delete) = (Permission::CREATE, Permission::DELETE);
    for (needed, other) in [(create, delete), (delete, create)] {
        let simulation = Simulation::default();
        let hold = held(&simulation).await;
        grant(&simulation, "/locks/a", Permission::READ | other);
        let refused = hold.replace("lock-", "new-", b"", &everyone()).await;
        let refused = refused.expect_err("no permission");
        assert_eq!(missing(&refused), ("/locks/a", needed));
    }
}

#[tokio::test(start_paused = true)]
async fn list_for_the_creator_is_refused_to_a_session_without_credentials() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let acl = [Acl::new(Permission::ALL, AuthId::authed())];
    let queue = queue_with(&session, "/locks/a", QueueOptions::new().acl(acl));
    let error = queue.acquire().await.expect_err("it has no credentials");
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
    make_granting(&simulation, "/app", Permission::CREATE);
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
    inject(&simulation, FaultKind::Throttled, RequestKind::Exists);
    let looked = server.exists_and_watch("/locks").await;
    let refused = looked.map(|(stat, _)| stat).expect_err("it is throttled");
    assert!(
        matches!(refused, ServerError::Refused(Refusal::Throttled)),
        "{refused}"
    );
    let (stat, _watch) = server.exists_and_watch("/locks").await.expect("an answer");
    assert!(stat.is_none());
}
