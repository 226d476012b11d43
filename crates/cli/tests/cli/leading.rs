//! `zkr lead`: terms, losses, the next candidate.

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, BufReader};
use zookeeper_recipes_core::{Acl, AuthId, CreateMode, Permission, SessionId};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_suite::{LONG, eventually, in_time, session};

use crate::support::{
    Arguments, Stage, ended, files, line_in, read, run, runs, send, start, start_in,
};

/// Writes the process id and the token, and continues.
const TERM: &str = r#"echo "$$ $ZKR_FENCING_TOKEN" >> "$1"; sleep 60"#;

async fn leaders_session(stage: &Stage) -> SessionId {
    let leader = stage.run("leader /leader --json").await.json();
    let session = leader["session"].as_str().expect("somebody leads");
    let digits = session.strip_prefix("0x").expect("hexadecimal");
    SessionId(i64::from_str_radix(digits, 16).expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn candidate_campaigns_again_after_a_loss() {
    let stage = Stage::new();
    let file = stage.file("terms");
    let lead = ("lead /leader --id a -- sh -c", [TERM, "sh", file]);
    let _leader = stage.start(lead);
    let first = line_in(&file).await;
    let session = leaders_session(&stage).await;
    stage.server.administrator().expire(session);
    eventually("it leads again", async || read(file).lines().count() == 2).await;
    let terms = read(file);
    let term = |line: &str| {
        let (id, token) = line.split_once(' ').expect("two words");
        (id.to_owned(), token.parse::<i64>().expect("a token"))
    };
    let (first, second) = (
        term(first.trim()),
        term(terms.lines().nth(1).expect("a line")),
    );
    assert!(!runs(&first.0), "the command of the first term was stopped");
    assert!(
        runs(&second.0) && second.1 > first.1,
        "{first:?} {second:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn candidate_that_leads_once_ends_after_a_loss_and_the_next_one_leads() {
    let stage = Stage::new();
    let file = stage.file("terms");
    let lead = [
        "lead", "/leader", "--id", "a", "--once", "--", "sh", "-c", TERM, "sh", file,
    ];
    let leader = stage.start(lead);
    let first = line_in(&file).await;
    let next = stage.start(("lead /leader --id b -- sh -c", ["exit 5"]));
    stage.queue("/leader", 2).await;
    let session = leaders_session(&stage).await;
    stage.server.administrator().expire(session);
    ended(leader).await.refused(81, ["the command was stopped"]);
    assert!(!runs(first.split(' ').next().expect("an id")));
    assert_eq!(ended(next).await.code, Some(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn transfer_stops_the_leaders_command_and_starts_that_of_the_named_candidate() {
    let stage = Stage::new();
    let file = |id: &str| stage.file(id);
    let lead = |id: &str, more: &[&str]| {
        let command = ["--", "sh", "-c", TERM, "sh", file(id)];
        stage.start([&["lead", "/leader", "--id", id], more, &command].concat())
    };
    let _first = lead("first", &[]);
    let term = line_in(&file("first")).await;
    let _between = lead("between", &[]);
    stage.queue("/leader", 2).await;
    let chosen = lead("chosen", &["--once"]);
    stage.queue("/leader", 3).await;

    let shown = stage.run("leader /leader --transfer-to chosen").await;
    shown.begins("chosen leads: ");
    let process = term.split(' ').next().expect("an id");
    assert!(!runs(process), "the command of the first was stopped");
    line_in(&file("chosen")).await;
    assert_eq!(read(file("between")), "");
    stage.queue("/leader", 3).await;

    let again = stage.run("leader /leader --transfer-to between").await;
    again.begins("between leads: ");
    again.shows(["until its session has expired"]);
    let why = "/leader: another candidate is to lead";
    ended(chosen).await.refused(81, [why]);
}

#[tokio::test(flavor = "multi_thread")]
async fn candidate_on_standby_stops_its_command_for_another() {
    let stage = Stage::new();
    let (standby, other) = (stage.file("standby"), stage.file("other"));
    let _standby = stage.start((
        "lead /leader --id s --standby -- sh -c",
        [TERM, "sh", standby],
    ));
    let term = line_in(&standby).await;
    let _other = stage.start(("lead /leader --id o -- sh -c", [TERM, "sh", other]));
    line_in(&other).await;
    assert!(!runs(term.split(' ').next().expect("an id")));
    stage.queue("/leader", 2).await;
    let shown = stage.run("who /leader").await;
    shown.shows(["standby"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn transfer_from_a_leader_that_does_not_listen_is_one_line() {
    let stage = Stage::new();
    let session = session(&stage.connect, LONG).await;
    let deaf = LeaderElection::new(&session, "/leader", "deaf").expect("a good path");
    let _deaf = deaf.acquire().await.expect("it leads");
    let _next = stage.start("lead /leader --id next -- true");
    stage.queue("/leader", 2).await;
    let transfer = "leader /leader --transfer-to next --timeout 200ms";
    let shown = stage.run(&transfer).await;
    shown.refused(80, ["next does not lead after 200ms"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn signal_to_a_leader_whose_command_is_being_stopped_for_another_ends_it() {
    let stage = Stage::new();
    let file = stage.file("asked");
    // The command notes SIGTERM, and continues.
    let script =
        r#"trap 'echo asked >> "$1"' TERM; echo began >> "$1"; while :; do sleep 0.1; done"#;
    let first = stage.start((
        "--session-timeout 30s lead /leader --id first --grace 1500ms -- sh -c",
        [script, "sh", file],
    ));
    line_in(&file).await;
    let _next = stage.start("lead /leader --id next -- sleep 60");
    stage.queue("/leader", 2).await;
    let transfer = stage.start("leader /leader --transfer-to next");
    eventually("it is asked to stop", async || read(file).contains("asked")).await;
    send(Signal::TERM, &first);
    ended(first).await.coded(143);
    assert!(ended(transfer).await.stdout.starts_with("next leads: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_that_may_not_delete_its_znode_ends_so_that_the_named_candidate_leads() {
    let stage = Stage::new();
    let some = Permission::READ | Permission::WRITE | Permission::CREATE;
    let acl = [Acl::new(some, AuthId::anyone())];
    let created =
        stage
            .server
            .administrator()
            .create_with_acl("/leader", b"", CreateMode::Persistent, &acl);
    created.expect("it is free");
    let file = stage.file("terms");
    let first = stage.start(("lead /leader --id first -- sh -c", [TERM, "sh", file]));
    line_in(&file).await;
    let _next = stage.start("lead /leader --id next -- sleep 60");
    stage.queue("/leader", 2).await;
    let shown = stage.run("leader /leader --transfer-to next").await;
    shown.begins("next leads: ");
    let first = ended(first).await;
    assert_ne!(first.code, Some(0), "{first:?}");
}

/// As a server that was restarted without the provider of their scheme.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_are_refused_for_a_moment_end_a_candidate_unless_it_retries() {
    for (options, code) in [(&[][..], 77), (&["--retry-credentials"], 0)] {
        let stage = Stage::new();
        let (file, faults) = (stage.file("terms"), stage.server.faults());
        let term = "echo $ZKR_FENCING_TOKEN >> \"$0\"; [ $(wc -l < \"$0\") = 2 ] || sleep 60";
        let lead = "lead /leader --id a --session-timeout 2s";
        let command = ["--", "sh", "-c", term, file];
        let arguments = [&lead.list(), options, &command].concat();
        let credentials = [("ZKR_CREDENTIALS", "digest:me:secret")];
        let candidate = start_in(credentials, &stage.connect, arguments);
        line_in(&file).await;
        faults.refuse_credentials(true);
        faults.disconnect_from(0);
        stage.queue("/leader", 0).await;
        if code == 0 {
            faults.refuse_credentials(false);
        }
        ended(candidate).await.coded(code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_moves_to_the_servers_that_a_file_names_at_a_hangup() {
    let server = EmbeddedServer::start_ensemble().expect("it starts");
    let files = files();
    let (hosts, terms) = (files.path().join("hosts"), files.path().join("terms"));
    let [hosts_name, terms_name] = [&hosts, &terms].map(|it| it.to_str().expect("text"));
    let ports = server.ports();
    let list = |ports: &[u16]| {
        let hosts = ports.iter().map(|port| format!("127.0.0.1:{port}"));
        hosts.collect::<Vec<_>>().join(",") + "\n"
    };
    std::fs::write(&hosts, list(&ports[..1])).expect("it is written");
    let lead = "lead /leader --id a --connect-file";
    let rest = [hosts_name, "--", "sh", "-c", TERM, "sh", terms_name];
    let mut leader = start("127.0.0.1:1", (lead, rest));
    let term = line_in(&terms).await;

    // What cannot be used changes nothing.
    let mut errors = leader
        .stderr
        .take()
        .map(BufReader::new)
        .expect("a pipe")
        .lines();
    std::fs::write(&hosts, "127.0.0.1:port\n").expect("it is written");
    send(Signal::HUP, &leader);
    let warned = async {
        while let Ok(Some(line)) = errors.next_line().await {
            if line.contains("the servers are as before") {
                return line;
            }
        }
        String::new()
    };
    let line = in_time("zkr warns", warned).await;
    assert!(line.contains(hosts_name), "{line}");

    std::fs::write(&hosts, list(&ports[1..])).expect("it is written");
    send(Signal::HUP, &leader);
    // A server reports the addresses of its own connections.
    let others = list(&ports[1..]);
    eventually("it is connected to another server", async || {
        let who = run(others.trim(), "who /leader --json").await;
        who.stdout.contains("\"address\": \"127.0.0.1:")
    })
    .await;
    let (id, _) = term.split_once(' ').expect("two words");
    assert!(runs(id) && read(&terms) == term, "{}", read(&terms));
    send(Signal::TERM, &leader);
    assert_eq!(ended(leader).await.code, Some(143));
}
