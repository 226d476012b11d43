//! Connecting: what keeps a session from being opened is said, with the host.

use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use crate::support::*;

/// What keeps a session from being opened, and how long that took to be said.
async fn refused(connect_string: &str, options: ConnectOptions) -> (Error, Duration) {
    let began = Instant::now();
    let opened = Session::connect_with(connect_string, options).await;
    (opened.expect_err("no session"), began.elapsed())
}

/// The error of a session that no server opened, which says each cause once, and its text.
#[track_caller]
fn assert_not_connected(error: &Error, took: Duration, parts: &[&str]) {
    assert!(took < 6 * SECOND, "{took:?}");
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    assert_says_each_cause_once(error);
}

/// A report with the sources of an error repeats nothing.
fn assert_says_each_cause_once(error: &dyn std::error::Error) {
    if let Some(source) = error.source() {
        let (text, of_source) = (error.to_string(), source.to_string());
        assert!(!text.contains(&of_source), "{text} repeats {of_source}");
        assert_says_each_cause_once(source);
    }
}

#[test]
fn no_error_repeats_its_source() {
    let cause = || Arc::new(io::Error::other(io::Error::other("the cause")));
    let session = SessionId(1);
    let path = || "/locks/a".to_owned();
    let reason = LossReason::Session(SessionEnd::Expired);
    let invalid = NodePath::new("no slash").expect_err("no path");
    let refusals = [
        Refusal::TooLong(invalid.clone()),
        Refusal::BadArguments("the cause".to_owned()),
        Refusal::UnreadableReply("the cause".to_owned()),
        Refusal::Other("the cause".to_owned()),
    ];
    for error in [
        Error::InvalidInput(invalid),
        Error::Connect {
            address: "zk1:2181".to_owned(),
            tried_for: SECOND,
            cause: cause(),
        },
        Error::Lost {
            path: path(),
            session,
            reason,
        },
        Error::SessionOver {
            path: path(),
            session,
            reason: SessionEnd::Expired,
        },
        Error::OutcomeUnknown {
            path: path(),
            session,
            cause: cause(),
        },
    ] {
        assert_says_each_cause_once(&error);
    }
    for refusal in refusals {
        assert_says_each_cause_once(&refusal);
        assert_says_each_cause_once(&ServerError::Refused(refusal));
    }
    assert_says_each_cause_once(&ServerError::SessionOver(SessionEnd::Expired));
    assert_says_each_cause_once(&ServerError::OutcomeUnknown(cause()));
    assert_says_each_cause_once(&Ended::Lost(reason));
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_nobody_knows_is_named_once_the_connection_timeout_is_over() {
    let patience = 2 * SECOND;
    // The session timeout ends nothing before it.
    let options = ConnectOptions::new()
        .session_timeout(SECOND)
        .connection_timeout(patience);
    let (error, took) = refused("nowhere.invalid:2181", options).await;
    assert!(patience <= took, "{took:?}");
    assert_not_connected(&error, took, &["nowhere.invalid: "]);
}

#[tokio::test(flavor = "multi_thread")]
async fn port_at_which_nobody_listens_is_named_with_the_cause() {
    // The listener is dropped at once, so that nobody listens.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = port.expect("a free port").to_string();
    for connect_string in [address.clone(), format!("nowhere.invalid:1,{address}")] {
        let options = ConnectOptions::new().connection_timeout(3 * SECOND);
        let (error, took) = refused(&connect_string, options).await;
        assert_not_connected(&error, took, &[&format!("{address}: "), "refused"]);
        let named = matches!(&error, Error::Connect { address, .. } if *address == connect_string);
        assert!(named, "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn listener_that_opens_no_session_is_named() {
    for (answer, problem) in [
        (&b""[..], ""),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ""),
        (b"\xff\xff\xff\xff", ""),
        (b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let stranger = listener.try_clone().expect("another handle");
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        std::thread::spawn(move || {
            for stream in stranger.incoming() {
                counted.fetch_add(1, Ordering::Relaxed);
                let answered = stream.and_then(|mut stream| {
                    stream.write_all(answer)?;
                    Ok(stream)
                });
                if answer.is_empty() {
                    // The server says nothing, and stays.
                    std::mem::forget(answered);
                }
            }
        });
        let options = ConnectOptions::new().connection_timeout(2 * SECOND);
        let (error, took) = refused(&address, options).await;
        let listens = format!("{address}: something listens");
        assert_not_connected(&error, took, &[&listens, problem]);
        let connections = connections.load(Ordering::Relaxed);
        assert!(connections < 20, "{connections} connections");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_can_open_no_session_are_refused_at_once() {
    let short = ConnectOptions::new().session_timeout(Duration::from_millis(1));
    let secret = "no-colon";
    let [digest, sasl] = ["digest", "sasl"].map(|it| ConnectOptions::new().auth(it, secret));
    let pair = "user:password";
    let [once, twice] = ["one:secret", "two:secret"];
    let users = ConnectOptions::new().auth("sasl", once).auth("sasl", twice);
    for (options, problem) in [
        (short, "is not between 100ms and"),
        (digest, pair),
        (sasl, pair),
        (users, "given twice"),
    ] {
        // Nobody is asked: nothing could answer there.
        let (error, took) = refused("192.0.2.1:2181", options).await;
        assert!(matches!(error, Error::InvalidInput(_)), "{error}");
        assert!(took < SECOND, "{took:?}");
        let text = error.to_string();
        assert!(text.contains(problem), "{text}");
        assert!(
            ![secret, once, twice].iter().any(|it| text.contains(it)),
            "{text}"
        );
    }
}

/// No hold could be granted in such a session, and each look at it would be in vain.
#[tokio::test(start_paused = true)]
async fn session_timeout_that_no_lease_can_be_kept_with_is_named() {
    let granted = Duration::from_millis(50);
    let simulation = simulation!(max_session_timeout: Some(granted));
    let opened = Session::open(simulation.ensemble("one"), ConnectOptions::new()).await;
    let error = opened.expect_err("no session");
    assert_not_connected(&error, Duration::ZERO, &["of 50ms"]);
    tokio::time::sleep(SECOND).await;
    assert_eq!(simulation.administrator().sessions(), []);
}

/// The other hosts, which were tried before, are not the cause.
#[tokio::test(start_paused = true)]
async fn refused_credentials_are_the_cause_beside_hosts_that_are_not_reached() {
    for seed in 0..8 {
        let simulation = simulation!(seed, servers: 3);
        let faults = simulation.faults();
        (0..2).for_each(|server| faults.cut_off_from_clients(server, Way::Both));
        let options = ConnectOptions::new()
            .auth("digest", "me:secret")
            .auth("no-such-scheme", "")
            .connection_timeout(60 * SECOND);
        let opened = Session::open(simulation.ensemble("one"), options).await;
        let error = opened.expect_err("no session");
        let Error::Connect { cause, .. } = &error else {
            panic!("{error:?}");
        };
        let over = cause.source().and_then(|source| source.downcast_ref());
        let Some(ServerError::SessionOver(reason)) = over else {
            panic!("seed {seed}: {cause:?}");
        };
        assert_eq!(*reason, SessionEnd::AuthenticationFailed);
        assert_says_each_cause_once(&error);
        let cause = cause.to_string();
        let named = cause.contains("\"no-such-scheme\"") && !cause.contains("digest");
        assert!(named, "seed {seed}: {cause}");
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_for_a_moment_end_the_session_unless_they_are_retried() {
    for retries in [false, true] {
        let simulation = Simulation::default();
        let faults = simulation.faults();
        let options = ConnectOptions::new().auth("digest", "me:secret");
        let options = options.retry_refused_credentials(retries);
        let session = Session::open(simulation.ensemble("one"), options.clone()).await;
        let session = session.expect("the credentials are accepted");
        faults.refuse_credentials(true);
        faults.disconnect_from(0);
        tokio::time::sleep(12 * SECOND).await;
        let reason = SessionEnd::AuthenticationFailed;
        let is_over = session.state() == SessionState::Ended(reason);
        assert_eq!(is_over, !retries, "{:?}", session.state());
        let first = Session::open(simulation.ensemble("two"), options.clone()).await;
        assert!(first.is_err(), "wrong credentials are said at once");

        faults.refuse_credentials(false);
        let queue = lock(&session, "/locks/a");
        let held = tokio::time::timeout(10 * SECOND, queue.acquire()).await;
        let held = held.expect("in time");
        assert_eq!(held.is_ok(), retries);
        if let Ok(held) = held {
            // One refusal alone costs no hold.
            let sent = || simulation.counters().requests(RequestKind::Authenticate);
            let before = sent();
            faults.refuse_credentials(true);
            faults.disconnect_from(0);
            while sent() == before {
                tokio::time::sleep(SECOND / 1_000).await;
            }
            faults.refuse_credentials(false);
            tokio::time::sleep(12 * SECOND).await;
            assert!(held.is_held(), "{held:?}");
        }
    }
}
