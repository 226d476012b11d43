//! Credentials go to the server that was asked for, over the connection that was asked for, and
//! nowhere else.

use std::fmt;
use std::sync::Mutex;

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use zookeeper_recipes_suite::tls::{After, Tap};

use crate::support::*;

on_both_servers!(apache at night:
    no_credentials_are_shown_whatever_happens);

const SECRET: &str = "correct-horse";
const SESSION: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(3);

fn options() -> ConnectOptions {
    ConnectOptions::new()
        .session_timeout(SESSION)
        .connection_timeout(PATIENCE)
        .auth("digest", format!("me:{SECRET}"))
}

/// Everything that is logged, at all levels and by all crates.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn add(&self, logged: &impl fmt::Debug) {
        *self.0.lock().expect("no panic") += &format!("{logged:?} ");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.add(span);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.add(values);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.add(event);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The text of an error as people and as programs read it, with its causes.
fn shown(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(shown).unwrap_or_default();
    format!("{error} {error:?} {cause}")
}

async fn no_credentials_are_shown_whatever_happens(server: TestServer) {
    let proxy = proxy(&server).await;
    let address = proxy.connect_string();
    // The tasks of a runtime with one thread log in this thread.
    let log = tokio::task::spawn_blocking(move || {
        let log = Log::default();
        let _subscribed = tracing::subscriber::set_default(log.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let seen = runtime.block_on(use_credentials(&address, || proxy.cut()));
        let text = log.0.lock().expect("no panic").clone();
        (text, seen)
    });
    let (log, seen) = log.await.expect("no panic");
    assert!(log.contains("message: "), "the log is recorded");
    for text in [log, seen] {
        let at = text.find(SECRET);
        let near = at.map(|at| &text[at.saturating_sub(200)..at]);
        assert_eq!(near, None, "the secret is shown after this");
    }
}

/// Succeeds and fails with credentials, and returns all that is shown.
async fn use_credentials(address: &str, cut: impl Fn()) -> String {
    let mut seen = format!("{:?}", options());
    let session = Session::connect_with(address, options().tick(TICK)).await;
    let session = session.expect("a session opens");
    let acl = [
        Acl::new(Permission::ALL, AuthId::authed()),
        Acl::new(
            Permission::READ,
            AuthId::new("digest", &format!("you:{SECRET}")),
        ),
    ];
    let lock_options = LockOptions::new().acl(acl.clone());
    seen += &format!("{acl:?} {lock_options:?}");
    let lock = ExclusiveLock::with_options(&session, "/lock", lock_options).expect("good");
    let hold = lock.acquire().await.expect("it is free");
    seen += &format!("{session:?} {lock:?} {hold:?} {:?}", session.ensemble());
    seen += &format!("{:?}", lock.contenders().await);
    cut();
    in_time("a reconnect", session.wait_connected())
        .await
        .expect("the proxy still serves");
    hold.release().await.expect("it is deleted");
    session.close().await;

    let unknown = options().auth("no-such-scheme", SECRET);
    let refused = Session::connect_with(address, unknown.clone()).await;
    seen += &shown(&refused.expect_err("the server knows no such scheme"));
    let refused = Session::connect_in_background(address, unknown).expect("good options");
    let over = tokio::time::timeout(LATE, refused.wait_connected()).await;
    let over = over.expect("in time").expect_err("it is refused for good");
    let reason = SessionEnd::AuthenticationFailed;
    assert!(matches!(over, Error::NoSession { reason: found, .. } if found == reason));
    seen += &shown(&over);
    let malformed = options().auth("digest", SECRET);
    let refused = Session::connect_with(address, malformed).await;
    seen += &shown(&refused.expect_err("no user"));
    let credentials = format!("me:{SECRET}@{address}");
    let refused = Session::connect_with(&credentials, options()).await;
    seen += &shown(&refused.expect_err("no place for credentials"));
    let tap = Tap::new(After::Silence).await;
    let silent = format!("localhost:{}", tap.port);
    let refused = Session::connect_with(&silent, options()).await;
    seen += &shown(&refused.expect_err("nobody answers"));
    seen
}
