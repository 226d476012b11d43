//! A process that has no file descriptor left: no connect succeeds, and each fails at once.
//!
//! One test, because the limit is that of the whole process.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{ConnectOptions, Error, HoldState, Session};
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{LATE, TestServer, eventually, proxy};

const T: Duration = Duration::from_secs(2);

/// Lets this process open no further file, until it is dropped.
struct NoDescriptors(Rlimit);

impl NoDescriptors {
    fn new() -> NoDescriptors {
        let before = getrlimit(Resource::Nofile);
        let current = Some(0);
        let maximum = before.maximum;
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("a lower limit");
        File::open("/dev/null").expect_err("no descriptor is left");
        NoDescriptors(before)
    }
}

impl Drop for NoDescriptors {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.0).expect("the limit before");
    }
}

#[test]
fn runtime_continues_and_a_new_session_opens_later() {
    let servers = tokio::runtime::Runtime::new().expect("a runtime");
    let server = servers.block_on(TestServer::embedded());
    let proxy = servers.block_on(proxy(&server));
    // The session has a thread of its own, so that a loop that never yields fails the test.
    let turns = Arc::new(AtomicU64::new(0));
    let counted = turns.clone();
    let address = proxy.connect_string();
    let (sender, session) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let options = ConnectOptions::new()
                .session_timeout(T)
                .tick(Duration::from_millis(500));
            let session = Session::connect_with(&address, options).await;
            sender.send(session).expect("the test waits");
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(10)).await;
            }
        });
    });
    let session = session.recv().expect("an outcome").expect("a session");
    let lock = ExclusiveLock::new(&session, "/lock").expect("a good path");
    servers.block_on(async {
        let hold = timeout(LATE, lock.acquire()).await.expect("in time");
        let hold = hold.expect("it is free");
        let descriptors = NoDescriptors::new();
        proxy.cut();
        let lost = timeout(T + LATE, hold.lost()).await;
        lost.expect("the hold is lost");
        // The server expires the session meanwhile.
        sleep(T * 2).await;
        let before = turns.load(Ordering::Relaxed);
        sleep(T).await;
        assert!(
            turns.load(Ordering::Relaxed) > before + 10,
            "the runtime makes no progress"
        );
        assert!(!session.is_connected());
        let options = ConnectOptions::new()
            .session_timeout(T)
            .connection_timeout(2 * T);
        let connect_string = proxy.connect_string();
        let connecting = Session::connect_with(&connect_string, options);
        let refused = timeout(2 * T + LATE, connecting).await;
        let refused = refused.expect("it ends by the connection timeout");
        assert!(matches!(refused, Err(Error::Connect { .. })), "{refused:?}");
        drop(descriptors);
        eventually("a new session opens", async || {
            session.id().is_some_and(|id| id != hold.session_id())
        })
        .await;
        let again = timeout(T + LATE, lock.acquire()).await.expect("in time");
        let again = again.expect("a new session opens");
        assert_eq!(again.state(), HoldState::Held);
        eventually("connected", async || session.is_connected()).await;
    });
}
