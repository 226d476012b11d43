//! Connections over TLS that open no session, each with its cause.

use std::time::Duration;

use futures_util::future::join_all;
use zookeeper_recipes_connection::{Host, Network, Tcp};
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_suite::tls::{After, Authority, Front, Issued, Tap, trusting};

use crate::{options, refusal};

#[tokio::test(flavor = "multi_thread")]
async fn client_without_a_good_certificate_gets_the_reason() {
    let server = EmbeddedServer::start().expect("it starts");
    let (authority, clients) = (Authority::new("root"), Authority::new("clients"));
    let shown = authority.issue(&["localhost"]).server(Some(&clients));
    let front = Front::new(server.port(), shown).await;
    let showing = |own: Issued| {
        trusting(&authority).client_certificate(own.certificate.as_bytes(), own.key.as_bytes())
    };
    let stranger = Authority::new("strangers").issue(&["service"]);
    let unaccepted = "does not accept the client's certificate";
    let rows = [
        (trusting(&authority), "requires a client certificate"),
        (showing(clients.issue_expired(&["service"])), unaccepted),
        (showing(stranger), unaccepted),
    ];
    // Side by side, because each refusal takes the connection timeout.
    join_all(rows.map(async |(tls, problem)| {
        let text = refusal(&front.at("localhost"), options(tls)).await;
        assert!(text.contains("TLS: ") && text.contains(problem), "{text}");
    }))
    .await;
    assert_eq!(server.administrator().sessions(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_handshake_is_sent_to_a_port_without_tls() {
    let server = EmbeddedServer::start().expect("it starts");
    let authority = Authority::new("root");
    let secret = "a-password-of-the-test";
    let ways = [
        After::Silence,
        After::Close,
        After::Answer(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        After::Answer(b"\x00\x00\x00\x25\x00\x00\x00\x00"),
        After::Forward(server.port()),
    ];
    join_all(ways.map(async |after| {
        let tap = Tap::new(after).await;
        let options = options(trusting(&authority)).auth("digest", format!("service:{secret}"));
        let address = format!("localhost:{}", tap.port);
        let text = refusal(&address, options).await;
        // The address of the name stands between the two.
        let named = text.contains(&address) && text.contains(": TLS: ");
        assert!(named, "{after:?}: {text}");
        assert!(text.contains("speak TLS"), "{after:?}: {text}");
        let heard = tap.heard();
        assert!(!heard.is_empty());
        tap.assert_only_handshakes();
        let has = |text: &str| {
            heard
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        assert!(!has(secret) && !has("digest") && !has("service"));
    }))
    .await;
    assert_eq!(server.administrator().sessions(), []);
}

/// The caller gives up after the whole time, and has to know the cause by then.
#[tokio::test(start_paused = true)]
async fn handshake_without_an_answer_ends_after_nine_tenths_of_the_time() {
    let tap = Tap::new(After::Silence).await;
    let (name, port) = ("localhost".to_owned(), tap.port);
    let tcp = Tcp::new().encrypted(trusting(&Authority::new("root")));
    let tcp = tcp.expect("good options");
    let began = tokio::time::Instant::now();
    let address = ([127, 0, 0, 1], port).into();
    let host = Host { name, port };
    let opened = tcp.connect(&host, address, Duration::from_secs(100)).await;
    let error = opened.map(drop).expect_err("no answer");
    assert!(error.to_string().contains("speak TLS"), "{error}");
    assert_eq!(began.elapsed().as_secs(), 90);
}
