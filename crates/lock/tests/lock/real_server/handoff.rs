//! Holding without a read: only if it is certain that no other contender holds.

use std::future::Future;

use tokio::task::JoinHandle;
use zookeeper_client::{Acl, AuthId, Client, Permission};
use zookeeper_recipes_lock::common::{self, LossReason};
use zookeeper_recipes_lock::{ConnectOptions, Error, ExclusiveLock, Hold, LockOptions, Session};
use zookeeper_recipes_suite::{
    QUIET, administrator, eventually, in_time, proxy, server, server_with, session,
};
use zookeeper_recipes_testkit::proxy::{Counters, Operation, Proxy};
use zookeeper_recipes_testkit::{Server, ServerOptions};

use super::support::{SESSION_TIMEOUT, assert_nothing_left};

const PATH: &str = "/locks/handoff";

/// What ZooKeeper's documentation gives as the digest of "super:admin".
const SUPER_DIGEST: &str = "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=";

fn lock(session: &Session) -> ExclusiveLock {
    ExclusiveLock::new(session, PATH).expect("a good path")
}

async fn server_with_property(name: &str, value: &str) -> Server {
    server_with(ServerOptions::new().system_property(name, value)).await
}

/// Waits until two sessions watch a znode. One is its owner's, which watches it after it has waited
/// or held for a while.
async fn watched(server: &Server, path: &str) {
    eventually("it is watched", || async {
        let watches = server.watches().await.expect("the server answers");
        watches
            .get(path)
            .is_some_and(|sessions| sessions.len() == 2)
    })
    .await;
}

/// One that waits, with its requests counted.
struct Waiter {
    proxy: Proxy,
    waiting: JoinHandle<Result<Hold, Error>>,
}

impl Waiter {
    /// Waits for the owner of the znode at this path, which nobody else does.
    async fn behind(path: &str, server: &Server, options: LockOptions) -> Waiter {
        let proxy = proxy(server).await;
        let session = session(&proxy, QUIET).await;
        let lock = ExclusiveLock::with_options(&session, PATH, options).expect("a good path");
        let waiting = tokio::spawn(async move { lock.acquire().await });
        watched(server, path).await;
        Waiter { proxy, waiting }
    }

    /// Lets the waiter in, and returns what that has cost it.
    async fn let_in_by(&mut self, release: impl Future<Output = ()>) -> (Hold, Counters) {
        let before = self.proxy.counters();
        release.await;
        let hold = in_time("in the end", &mut self.waiting)
            .await
            .expect("no panic")
            .expect("it is acquired");
        (hold, self.proxy.counters().since(&before))
    }
}

/// How often one that came third lists the queue when it is its turn. The first release does not wake
/// it.
async fn lists_at_a_handoff(server: &Server, options: LockOptions) -> u64 {
    let session = session(server, SESSION_TIMEOUT).await;
    let lock = ExclusiveLock::with_options(&session, PATH, options.clone()).expect("a good path");
    let first = lock.acquire().await.expect("it is acquired");
    let mut second = Waiter::behind(first.node_path(), server, options.clone()).await;
    let second_path = {
        let queue = lock.contenders().await.expect("a look");
        format!("{PATH}/{}", queue[1].name)
    };
    let mut third = Waiter::behind(&second_path, server, options).await;
    let release = async { first.release().await.expect("it is released") };
    let before = third.proxy.counters();
    let (second, _) = second.let_in_by(release).await;
    let woken = third.proxy.counters().since(&before).notifications();
    assert_eq!(woken, 0, "a release wakes the next waiter alone");
    let release = async { second.release().await.expect("it is released") };
    let (hold, counted) = third.let_in_by(release).await;
    hold.release().await.expect("it is released");
    counted.of(Operation::GetChildren).requests
}

#[tokio::test(flavor = "multi_thread")]
async fn handoff_needs_a_list_only_where_no_release_is_marked() {
    let server = server().await;
    let marked = LockOptions::new();
    assert_eq!(lists_at_a_handoff(&server, marked.clone()).await, 0);
    let plain = marked.mark_release(false);
    assert_eq!(lists_at_a_handoff(&server, plain).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_its_owner_can_write_to_a_contender() {
    let server = server().await;
    let (first, stranger) = (
        session(&server, SESSION_TIMEOUT).await,
        administrator(&server).await,
    );
    let hold = lock(&first).acquire().await.expect("it is acquired");
    let written = stranger.set_data(hold.node_path(), b"revoked", None).await;
    assert!(
        matches!(written, Err(zookeeper_client::Error::NoAuth)),
        "{written:?}"
    );
    // Everything else is as by the list that was asked for.
    stranger
        .get_data(hold.node_path())
        .await
        .expect("it is read");
    assert!(hold.is_held());
    stranger
        .delete(hold.node_path(), None)
        .await
        .expect("it is deleted");
    assert_eq!(
        in_time("in the end", hold.lost()).await,
        LossReason::Deleted
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_checks_no_access_is_found_out_and_nobody_takes_a_strangers_write_for_a_release()
 {
    let server = server_with_property("zookeeper.skipACL", "yes").await;
    let (first, client) = (
        session(&server, SESSION_TIMEOUT).await,
        administrator(&server).await,
    );
    let hold = lock(&first).acquire().await.expect("it is acquired");
    let mut waiter = Waiter::behind(hold.node_path(), &server, LockOptions::new()).await;
    client
        .set_data(hold.node_path(), b"revoked", None)
        .await
        .expect("it is written");
    watched(&server, hold.node_path()).await;
    assert!(!waiter.waiting.is_finished());
    assert!(hold.is_held());
    let release = async { hold.release().await.expect("it is released") };
    let (next, _) = waiter.let_in_by(release).await;
    next.release().await.expect("it is released");
    let lists = lists_at_a_handoff(&server, LockOptions::new()).await;
    assert_eq!(lists, 1);
    assert_nothing_left(&server, PATH).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_the_scheme_or_with_another_algorithm_is_done_without() {
    for (name, value) in [
        ("zookeeper.DigestAuthenticationProvider.enabled", "false"),
        (
            "zookeeper.DigestAuthenticationProvider.digestAlg",
            "SHA-256",
        ),
    ] {
        let server = server_with_property(name, value).await;
        let lists = lists_at_a_handoff(&server, LockOptions::new()).await;
        assert_eq!(lists, 1, "{name}");
    }
}

/// It has the right to everything; what it does to a holder's znode counts as a release, and the
/// holder is notified.
#[tokio::test(flavor = "multi_thread")]
async fn holder_to_whose_znode_the_super_user_writes_is_lost_and_bars_nobody() {
    let name = "zookeeper.DigestAuthenticationProvider.superDigest";
    let server = server_with_property(name, SUPER_DIGEST).await;
    let root = Client::connector()
        .with_auth("digest", b"super:admin")
        .connect(&server.connect_string())
        .await
        .expect("a client connects");
    let (first, second) = (
        session(&server, SESSION_TIMEOUT).await,
        session(&server, SESSION_TIMEOUT).await,
    );
    let hold = lock(&first).acquire().await.expect("it is acquired");
    root.set_data(hold.node_path(), b"", None)
        .await
        .expect("it is written");
    // It learns of it also without having waited, when its session looks.
    assert_eq!(
        in_time("in the end", hold.lost()).await,
        LossReason::Written
    );
    let refused = hold.release().await.expect_err("it was lost");
    assert!(matches!(refused, Error::Lost { .. }), "{refused}");
    let next = in_time("in the end", lock(&second).acquire())
        .await
        .expect("it is acquired");
    next.release().await.expect("it is released");
    assert_nothing_left(&server, PATH).await;
}

/// Without credentials the identity "creator" names nobody. The identity that a session has made up
/// for itself must not lock all others out of the directory.
#[tokio::test(flavor = "multi_thread")]
async fn creators_list_without_credentials_is_refused_and_with_them_marks() {
    let server = server().await;
    let creator = common::AuthId::authed();
    let options = LockOptions::new().acl([common::Acl::new(common::Permission::ALL, creator)]);
    let anonymous = session(&server, SESSION_TIMEOUT).await;
    let refused = ExclusiveLock::with_options(&anonymous, PATH, options.clone())
        .expect("a good path")
        .acquire()
        .await
        .expect_err("nobody is known");
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");

    let known = || async {
        let options = ConnectOptions::new().auth("digest", "fleet:secret");
        Session::connect_with(&server.connect_string(), options)
            .await
            .expect("a session opens")
    };
    let (first, second) = (known().await, known().await);
    let lock_of =
        |session| ExclusiveLock::with_options(session, PATH, options.clone()).expect("a good path");
    let hold = lock_of(&first).acquire().await.expect("it is acquired");
    let client = Client::connector()
        .with_auth("digest", b"fleet:secret")
        .connect(&server.connect_string())
        .await
        .expect("a client connects");
    let (acl, _) = client.get_acl(hold.node_path()).await.expect("it is read");
    let writers: Vec<&Acl> = acl
        .iter()
        .filter(|entry| entry.permission().has(Permission::WRITE))
        .collect();
    assert_eq!(writers.len(), 1, "{acl:?}");
    assert_ne!(*writers[0].auth_id(), AuthId::anyone());
    let waiting = tokio::spawn({
        let lock = lock_of(&second);
        async move { lock.acquire().await }
    });
    watched(&server, hold.node_path()).await;
    hold.release().await.expect("it is released");
    let next = in_time("in the end", waiting).await.expect("no panic");
    next.expect("it is acquired")
        .release()
        .await
        .expect("it is released");
}
