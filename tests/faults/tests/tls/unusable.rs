//! Options of TLS that can open no connection: they are refused before one is opened.

use std::fs;
use std::sync::Arc;

use zookeeper_recipes_suite::tls::{Authority, Files, trusting};

use zookeeper_recipes_core::{
    ConnectOptions, Ensemble, InvalidInput, Session, TlsOptions, ZookeeperEnsemble,
};

/// The problem of these options, which is found before a connection is opened.
fn problem(connect_string: &str, tls: Option<TlsOptions>) -> String {
    let options = match tls {
        Some(tls) => ConnectOptions::new().tls(tls),
        None => ConnectOptions::new(),
    };
    let opened = Session::connect_in_background(connect_string, options);
    opened.expect_err("it is refused").to_string()
}

/// Refuses these options as a session does, and opens no connection.
fn accepted(connect_string: &str, tls: TlsOptions) -> Result<(), InvalidInput> {
    let ensemble = Arc::new(ZookeeperEnsemble::new(connect_string)?);
    ensemble
        .connector(&ConnectOptions::new().tls(tls))
        .map(drop)
}

#[test]
fn scheme_that_contradicts_the_options_is_refused_with_what_to_do() {
    let tls = trusting(&Authority::new("root"));
    let text = problem("tcp+tls://zk1:2281", None);
    assert!(text.contains("ConnectOptions::tls"), "{text}");
    for mixed in [
        "tcp://zk1:2181",
        "zk1:2181,tcp://zk2:2181",
        "tcp+tls://zk1,tcp://zk2",
    ] {
        let text = problem(mixed, Some(tls.clone()));
        assert!(
            text.contains("tcp:// in it, which is not encrypted"),
            "{text}"
        );
    }
    for good in [
        "zk1:2281",
        "tcp+tls://zk1",
        "zk1,tcp+tls://zk2,[::1]:1,127.0.0.1/app",
    ] {
        let made = accepted(good, tls.clone());
        assert!(made.is_ok(), "{good}: {made:?}");
    }
}

#[test]
fn host_that_no_certificate_can_be_valid_for_is_refused() {
    let tls = trusting(&Authority::new("root"));
    let text = problem("zk1:2281,zk..a:2281", Some(tls));
    assert!(
        text.contains("no certificate can be valid for the host zk..a"),
        "{text}"
    );
}

#[test]
fn file_that_cannot_be_used_is_named_with_its_problem() {
    let authority = Authority::new("root");
    let own = authority.issue(&["service"]);
    let other = authority.issue(&["service"]);
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (name, text, problem_of_it) in [
        ("ca.pem", None, "No such file"),
        ("ca.pem", Some(""), "no certificate in PEM"),
        ("ca.pem", Some("not PEM"), "no certificate in PEM"),
        ("ca.pem", Some(broken), "invalid peer certificate"),
        ("cert.pem", None, "No such file"),
        ("cert.pem", Some(own.key.as_str()), "no certificate in PEM"),
        ("cert.pem", Some(broken), "invalid peer certificate"),
        ("key.pem", None, "No such file"),
        (
            "key.pem",
            Some(own.certificate.as_str()),
            "no private key in PEM",
        ),
        ("key.pem", Some(encrypted), "without a passphrase"),
        ("key.pem", Some(other.key.as_str()), "not the certificate's"),
    ] {
        let files = Files::new(&authority, &own);
        let made = accepted("zk1", files.options());
        assert!(made.is_ok(), "{made:?}");
        match text {
            None => fs::remove_file(files.path().join(name)).expect("it is there"),
            Some(text) => drop(files.write(name, text)),
        }
        let said = problem("zk1", Some(files.options()));
        assert!(
            said.contains(name) && said.contains(problem_of_it),
            "{name}: {said}"
        );
        assert!(!said.contains("PRIVATE KEY"), "{said}");
    }
}

#[test]
fn options_do_not_show_the_key() {
    let own = Authority::new("root").issue(&["service"]);
    let tls = TlsOptions::new().client_certificate(own.certificate.as_bytes(), own.key.as_bytes());
    let shown = format!("{tls:?} {:?}", ConnectOptions::new().tls(tls.clone()));
    assert!(
        !shown.contains("PRIVATE") && !shown.contains("["),
        "{shown}"
    );
}
