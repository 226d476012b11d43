//! Encrypted connections: asked for in full, or refused.

use futures_util::future::join_all;
use zookeeper_recipes_suite::tls::{After, Authority, Files, Front, Tap};

use crate::support::{Ended, Stage, contains, ended, restrict, run, start_in};

fn options(files: &Files) -> [String; 7] {
    let names = [
        "--tls", "--ca", "ca.pem", "--cert", "cert.pem", "--key", "key.pem",
    ];
    names.map(|name| match name.ends_with("pem") {
        true => files.path().join(name).display().to_string(),
        false => name.to_owned(),
    })
}

async fn run_with(connect: &str, verb: &[&str], options: &[String]) -> Ended {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    run(connect, [&verb[..1], &options, &verb[1..]].concat()).await
}

/// A server that requires certificates of its authority, and the files of a client.
async fn guarded(stage: &Stage) -> (Front, Files, Authority) {
    let authority = Authority::new("root");
    let shown = authority.issue(&["localhost"]).server(Some(&authority));
    let front = Front::new(stage.server.port(), shown).await;
    let files = Files::new(&authority, &authority.issue(&["zkr"]));
    restrict(files.path().join("key.pem"), 0o600);
    (front, files, authority)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_verb_works_over_tls_with_a_client_certificate() {
    let stage = Stage::new();
    let (front, files, _) = guarded(&stage).await;
    let (address, options) = (front.at("localhost"), options(&files));
    let locked = run_with(&address, &["lock", "/lock", "--", "echo", "held"], &options).await;
    locked.printed("held\n");
    locked.quiet(0);
    let before = front.clients().len();
    let examined = run_with(&address, &["doctor", "/lock"], &options).await;
    examined.coded(0);
    let version = format!("{address}: version");
    examined.shows(["encrypted, with a client certificate", &version]);
    assert_eq!(
        front.clients().len(),
        before + 6,
        "a session, two for the limits, and three words of four letters"
    );
    let _holder = stage.holder("/lock").await;
    let who = run_with(&address, &["who", "/lock"], &options).await;
    who.shows(["127.0.0.1:"]);
    assert!(front.clients().iter().all(Option::is_some));
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_tls_come_from_the_environment() {
    let stage = Stage::new();
    let (front, files, _) = guarded(&stage).await;
    let [_, _, ca, _, cert, _, key] = options(&files);
    let variables = [
        ("ZKR_TLS", "true"),
        ("ZKR_CA", &*ca),
        ("ZKR_CERT", &*cert),
        ("ZKR_KEY", &*key),
    ];
    let locked = start_in(variables, &front.at("localhost"), "lock /lock -- true");
    ended(locked).await.quiet(0);
    assert_eq!(front.clients().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn contradictions_are_refused_before_anything_is_sent() {
    let tap = Tap::new(After::Silence).await;
    let (authority, address) = (Authority::new("root"), format!("localhost:{}", tap.port));
    let files = Files::new(&authority, &authority.issue(&["zkr"]));
    let [tls, ca, ca_file, cert, cert_file, key, key_file] = options(&files);
    let encrypted = format!("tcp+tls://{address}");
    let plain = format!("tcp://{address}");
    let unknown = "/no/such/file".to_owned();
    for (connect, options, named) in [
        (&address, vec![&ca, &ca_file], "--tls"),
        (&address, vec![&cert, &cert_file, &key, &key_file], "--tls"),
        (&address, vec![&tls, &cert, &cert_file], "--key"),
        (&address, vec![&tls, &key, &key_file], "--cert"),
        (&address, vec![&tls, &ca, &unknown], "/no/such/file"),
        (&address, vec![&tls, &ca, &key_file], "key.pem"),
        (
            &address,
            vec![&tls, &cert, &cert_file, &key, &cert_file],
            "cert.pem",
        ),
        (&encrypted, vec![], "--tls"),
        (&plain, vec![&tls], "tcp://"),
    ] {
        let options: Vec<String> = options.into_iter().cloned().collect();
        let refused = run_with(connect, &["doctor"], &options).await;
        let line = refused.stderr.lines().last().unwrap_or_default();
        assert_eq!(refused.code, Some(64), "{refused:?}");
        assert!(line.contains(named), "{options:?}: {line}");
    }
    assert_eq!(tap.heard(), b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_certificate_is_named_by_each_verb() {
    let stage = Stage::new();
    let (_, files, authority) = guarded(&stage).await;
    let (stranger, options) = (Authority::new("stranger"), options(&files));
    for (shown, problem) in [
        (authority.issue(&["other.example"]), "is for other names"),
        (authority.issue_expired(&["localhost"]), "has expired"),
        (stranger.issue(&["localhost"]), "no trusted root has issued"),
    ] {
        let front = Front::new(stage.server.port(), shown.server(None)).await;
        let address = front.at("localhost");
        let refused = ["who", "doctor"].map(async |verb| {
            let verb = [verb, "/lock", "--connect-timeout", "3s"];
            let refused = run_with(&address, &verb, &options).await;
            refused.refused(69, [&*address, problem]);
        });
        join_all(refused).await;
    }
}

/// Other members serve the session meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_the_member_whose_certificate_is_wrong() {
    let stage = Stage::new();
    let (front, files, authority) = guarded(&stage).await;
    let expired = authority.issue_expired(&["localhost"]).server(None);
    let other = Front::new(stage.server.port(), expired).await;
    let both = format!("{},{}", front.at("localhost"), other.at("localhost"));
    let examined = run_with(&both, &["doctor"], &options(&files)).await;
    assert_eq!(examined.code, Some(0), "{examined:?}");
    let named = format!("{} cannot be reached: TLS: ", other.at("localhost"));
    let line = examined.stdout.lines().find(|line| line.contains(&named));
    contains(line.expect("the member is named"), ["has expired"]);
}

/// The credentials and the words of four letters would be plain.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_sends_nothing_but_a_handshake_to_a_port_without_tls() {
    let stage = Stage::new();
    let tap = Tap::new(After::Forward(stage.server.port())).await;
    let address = format!("localhost:{}", tap.port);
    let credentials = [("ZKR_CREDENTIALS", "digest:service:secret")];
    let arguments = "doctor /lock --tls --connect-timeout 2s";
    let doctor = ended(start_in(credentials, &address, arguments)).await;
    doctor.refused(69, ["speak TLS"]);
    assert!(!tap.heard().is_empty());
    tap.assert_only_handshakes();
    assert_eq!(stage.server.administrator().sessions(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_that_others_can_read_gets_a_warning() {
    let stage = Stage::new();
    let (front, files, _) = guarded(&stage).await;
    let key = files.path().join("key.pem");
    restrict(&key, 0o644);
    let address = front.at("localhost");
    let warned = run_with(&address, &["who", "/lock"], &options(&files)).await;
    warned.coded(0);
    contains(&warned.stderr, ["key.pem", "0644"]);
}
