//! Credentials go to the server that was asked for, over the connection that was asked for, and
//! nowhere else.

use std::fmt;
use std::io::Read;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use zookeeper_recipes_core::{
    Acl, AuthId, ConnectOptions, Error, Permission, Session, SessionEnd, TlsOptions,
};
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions};
use zookeeper_recipes_suite::{
    Address, LATE, TICK, TestServer, eventually, in_time, on_both_servers, proxy,
};

on_both_servers!(
    server_without_tls_is_an_error_if_tls_is_asked_for,
    no_credentials_are_shown_whatever_happens,
);

/// A certificate whose key nobody has.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIUbU68YWxAH9Rdcg/Zqu9GDgQ3PqwwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGYSB0ZXN0MCAXDTI2MTEyMzA2MTMyMloYDzIxMjYxMDMwMDYx
MzIyWjARMQ8wDQYDVQQDDAZhIHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQPv3hkP/PIr+IWvmy6+86HBTyLmz4boBP0NuFMYiXJ1JAuPjURC4g+XqY3sb17
4+576k/Bxhuv79feNHSIH+bVo1MwUTAdBgNVHQ4EFgQUaMl9Jeha5U/3InplEJdH
cLiHeyYwHwYDVR0jBBgwFoAUaMl9Jeha5U/3InplEJdHcLiHeyYwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiA+Abx2rpeZmpk+vbQZrBw6YgxiNhxS
pYcU0HNC80dQlAIhANfZzp/IwuSHOzb7dkETWj3wKK79KcLN0+OxjgHI72Zv
-----END CERTIFICATE-----";
/// The first bytes of a TLS connection.
const TLS_HANDSHAKE: &[u8] = &[22, 3];
const SECRET: &str = "correct-horse";
const SESSION: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(3);

fn options() -> ConnectOptions {
    ConnectOptions::new()
        .session_timeout(SESSION)
        .connection_timeout(PATIENCE)
        .auth("digest", format!("me:{SECRET}"))
}

/// Trusts an authority that has signed no server's certificate.
fn encrypted() -> ConnectOptions {
    options().tls(TlsOptions::new().roots(AUTHORITY.as_bytes()))
}

fn contains(bytes: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    bytes.windows(text.len()).any(|window| window == text)
}

/// Records what each connection to it sends, and answers nothing.
fn tap() -> (String, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (noted, mut stream) = (noted.clone(), stream.expect("a connection"));
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // An error ends the connection like its end.
                let _ = stream.read_to_end(&mut bytes);
                noted.lock().expect("no panic").push(bytes);
            });
        }
    });
    (address, heard)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_handshake_of_tls_is_sent_in_plaintext() {
    let (address, heard) = tap();
    for connect_string in [address.clone(), format!("tcp+tls://{address}")] {
        let options = encrypted();
        let opened = Session::connect_with(&connect_string, options).await;
        assert!(matches!(opened, Err(Error::Connect { .. })), "{opened:?}");
    }
    // The client's connections have ended, and the thread notes them.
    let sent = || heard.lock().expect("no panic").clone();
    let has_sent = async || sent().iter().filter(|bytes| !bytes.is_empty()).count() >= 2;
    eventually("both have sent something", has_sent).await;
    // The thread that looks for obstacles sends nothing.
    for bytes in sent().iter().filter(|bytes| !bytes.is_empty()) {
        assert!(bytes.starts_with(TLS_HANDSHAKE), "{bytes:?}");
        for plain in [SECRET, "digest", "me:"] {
            assert!(!contains(bytes, plain), "{plain} in {bytes:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_not_sent_before_the_session_stands() {
    let (address, heard) = tap();
    let opened = Session::connect_with(&address, options()).await;
    assert!(matches!(opened, Err(Error::Connect { .. })), "{opened:?}");
    let is_wrong = |bytes: &[u8]| bytes.starts_with(TLS_HANDSHAKE) || contains(bytes, SECRET);
    let sent = || heard.lock().expect("no panic").clone();
    let has_asked = async || sent().iter().any(|bytes| !bytes.is_empty());
    eventually("the session has been asked for", has_asked).await;
    assert!(!sent().iter().any(|bytes| is_wrong(bytes)), "{:?}", sent());
}

#[tokio::test]
async fn scheme_that_contradicts_the_options_is_refused_at_once() {
    let (address, heard) = tap();
    for (connect_string, options) in [
        (format!("tcp://{address}"), encrypted()),
        (format!("{address},tcp://{address}"), encrypted()),
        (format!("tcp+tls://{address}"), options()),
        (format!("tcp://{address},tcp+tls://{address}"), options()),
    ] {
        let refused = Session::connect_with(&connect_string, options.clone()).await;
        let is_refused = matches!(refused, Err(Error::InvalidInput(_)));
        assert!(is_refused, "{connect_string}: {refused:?}");
        let refused = Session::connect_in_background(&connect_string, options);
        assert!(refused.is_err(), "{connect_string}: {refused:?}");
    }
    assert!(heard.lock().expect("no panic").is_empty());
}

async fn server_without_tls_is_an_error_if_tls_is_asked_for(server: TestServer) {
    let options = encrypted();
    let address = server.address();
    let opened = Session::connect_with(&address, options);
    let opened = in_time("the connect", opened).await;
    assert!(matches!(opened, Err(Error::Connect { .. })), "{opened:?}");
}

/// Everything that is logged, at all levels and by all crates.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = self.0.lock().expect("no panic");
        *text += &format!("{field}={value:?} ");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
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
    assert!(log.contains("message="), "the log is recorded");
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
        .expect("the proxy goes on");
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
    let (nobody, _) = tap();
    let refused = Session::connect_with(&nobody, options()).await;
    seen += &shown(&refused.expect_err("nobody answers"));
    seen
}
