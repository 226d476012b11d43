//! Wrong arguments, hosts, chroots, credentials and paths: one line, a code, nothing left behind.

use std::time::Instant;

use zookeeper_client::{Acl, Acls, AuthId, Client, CreateMode, Permission};
use zookeeper_recipes_suite::{LATE, server};

use crate::support::{Stage, ended, run, start_in};

/// Arguments, and a part of the line that names what is wrong.
const WRONG_ARGUMENTS: &[(&str, &str)] = &[
    ("lock lock -- true", "lock"),
    ("lock /a//b -- true", "/a//b"),
    ("lock /lock", "COMMAND"),
    ("lock /lock true", "put -- before a command"),
    ("lock /lock --timeout soon -- true", "soon"),
    ("lock /lock --try --timeout 1s -- true", "--timeout"),
    ("lock /lock --grace 9s -- true", "--grace"),
    ("lok /lock -- true", "lok"),
    ("semaphore /s --permits 0 -- true", "permits"),
    ("semaphore /s --permits 2 --weight 0 -- true", "permits"),
    (
        "lock /lock --session-timeout 1ms -- true",
        "session timeout",
    ),
    ("lock /lock --credentials-file /no/file -- true", "/no/file"),
    ("man --session-timeout 5s", "--session-timeout"),
    ("--tick 1s completions bash", "--tick"),
    ("dev-server --connect-timeout 1s", "--connect-timeout"),
    ("completions --tls", "--tls"),
    ("man --tls", "--tls"),
    ("dev-server --tls", "--tls"),
    ("man --to /no/such/directory", "/no/such/directory"),
    ("lock /lock -c true -- true", "-c"),
    (
        "lock /lock --max-hold 0s --grace 100ms -- true",
        "must not be zero",
    ),
    (
        "lock /lock --max-hold 100ms --grace 100ms -- true",
        "--max-hold 100ms",
    ),
    ("once /job --every 0s -- true", "length of a slot"),
    ("once /job --every 7h -- true", "length of a slot"),
    ("once /job --every 36h -- true", "length of a slot"),
    ("resize /no 4", "/no"),
    ("semaphore /exports -- true", "--permits"),
    ("assignment /no", "/no"),
    (
        "leader /leader --transfer-to nobody",
        "\"nobody\" does not campaign at /leader",
    ),
    ("watch /lock", "not a terminal"),
    ("serve --listen 0.0.0.0:0", "--allow-remote"),
    ("serve --listen 0.0.0.0:0 --allow-remote", "--token-file"),
    ("serve --listen here", "--listen"),
    ("serve --listen 127.0.0.1:0 --interval 0s", "--interval"),
    ("serve --listen 127.0.0.1:0 no", "no"),
    ("serve --token-file /no/file", "/no/file"),
    ("serve --token-file /dev/null", "16 or more"),
];

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_wrong_are_named_in_one_line() {
    let stage = Stage::new();
    for (arguments, named) in WRONG_ARGUMENTS {
        stage.run(arguments).await.refused(64, [named]);
    }
    let left = stage.contenders("/");
    assert_eq!(left, ["zookeeper"], "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_does_not_answer_is_named() {
    let options = "lock /lock --connect-timeout 500ms -- true";
    let refused = run("127.0.0.1:1", &options).await;
    refused.refused(69, ["127.0.0.1:1", "--connect"]);
    let unknown = run("no-such-host.invalid:2181", &options).await;
    unknown.refused(69, ["no-such-host.invalid"]);
    let garbled = run("zk1:port", &options).await;
    garbled.failed_with(64);
}

/// Each connect to it fails at once, so a loop without a pause would never look at its deadline.
#[tokio::test(flavor = "multi_thread")]
async fn address_without_a_route_is_given_up_by_the_connect_timeout() {
    const NO_ROUTE: &str = "255.255.255.255:2181";
    let timeouts = ["--session-timeout", "1s", "--connect-timeout", "3s"];
    let arguments = [&["lock"], &timeouts[..], &["/lock", "--", "true"]].concat();
    let began = Instant::now();
    let ended = run(NO_ROUTE, &arguments).await;
    ended.refused(69, [NO_ROUTE]);
    assert!(began.elapsed() < LATE, "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn chroot_that_does_not_exist_is_named_and_not_created() {
    let stage = Stage::new();
    let connect = format!("{}/no/such", stage.connect);
    let ended = run(&connect, "lock /lock -- true").await;
    ended.refused(64, ["the chroot /no/such does not exist"]);
    assert_eq!(stage.contenders("/"), ["zookeeper"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_come_from_a_file_or_the_environment() {
    let stage = Stage::new();
    let owner = Client::connector()
        .with_auth("digest", b"owner:secret")
        .connect(&stage.connect)
        .await
        .expect("a client connects");
    let acls = [Acl::new(Permission::ALL, AuthId::authed())];
    let options = CreateMode::Persistent.with_acls(Acls::new(&acls));
    owner
        .create("/private", b"", &options)
        .await
        .expect("it is created");
    let arguments = ["lock", "/private", "--", "true"];

    let denied = stage.run(&arguments).await;
    denied.refused(77, ["/private", "--credentials-file"]);

    let doctor = stage.run("doctor /private").await;
    doctor.coded(77);
    doctor.shows(["BAD   /private: no permission"]);

    let with = async |credentials: &str| {
        let credentials = [("ZKR_CREDENTIALS", credentials)];
        ended(start_in(credentials, &stage.connect, arguments)).await
    };
    with("digest:owner:wrong").await.failed_with(77);
    with("digest:owner:secret").await.coded(0);

    let file = stage.file("credentials");
    std::fs::write(file, "# of the owner\ndigest:owner:secret\n").expect("it is written");
    let with_file = [&["--credentials-file", file], &arguments[..]].concat();
    stage.run(&with_file).await.coded(0);

    assert_eq!(stage.contenders("/"), ["private", "zookeeper"]);
    let left = owner.list_children("/private").await.expect("it is listed");
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scheme_that_the_server_does_not_know_is_named() {
    let server = server().await;
    let both = "digest:owner:secret\nno-such-scheme:secret";
    let variables = [("ZKR_CREDENTIALS", both)];
    let unknown = start_in(variables, &server.connect_string(), "lock /lock -- true");
    let unknown = ended(unknown).await;
    unknown.refused(77, ["the scheme \"no-such-scheme\""]);
    let shows = |part| unknown.stderr.contains(part);
    assert!(!shows("digest") && !shows("secret"), "{unknown:?}");
}
