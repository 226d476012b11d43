//! The four-letter words, as programs read them.

use std::io::{Read, Write};
use std::net::TcpStream;

use zookeeper_recipes_protocol::{CreateMode, RequestBody};
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_testkit::{Mode, Monitor, Status, four_letter};

use crate::raw::{Raw, at, create};

fn ask(address: &str, word: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(word.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn words_are_answered_as_they_are_parsed() {
    let server = EmbeddedServer::start().expect("it starts");
    let address = server.connect_string();
    let mut client = Raw::connect(&address);
    client.done(create("/mine", CreateMode::Ephemeral));
    client.done(RequestBody::GetData(at("/mine", true)));
    client.done(RequestBody::GetChildren(at("/", true)));
    let session = client.connected.session_id;

    assert_eq!(ask(&address, "ruok"), "imok");
    assert_eq!(ask(&address, "isro"), "rw");
    let status = Status::parse(&ask(&address, "srvr")).expect("a status");
    assert_eq!(status.mode, Mode::Standalone);
    let monitor = Monitor::parse(&ask(&address, "mntr")).expect("figures");
    assert_eq!((monitor.watches, monitor.ephemerals), (2, 1));
    assert_eq!((monitor.znodes, monitor.connections), (6, 2));
    assert_eq!(monitor.notifications(), Some(0));
    let ephemerals = four_letter::parse_ephemerals(&ask(&address, "dump"));
    assert!(ephemerals[&session].contains("/mine"));
    let watches = four_letter::parse_watches(&ask(&address, "wchp"));
    assert!(watches["/mine"].contains(&session));
    assert_eq!(
        ask(&address, "wchs"),
        "1 connections watching 1 paths\nTotal watches:1\n"
    );
    let connections = ask(&address, "cons");
    assert!(connections.contains(&format!("sid={session:#x},to=")));
    assert!(ask(&address, "stat").contains("Clients:\n /127.0.0.1:"));
    let port = format!("clientPort={}\n", server.port());
    assert!(ask(&address, "conf").contains(&port));
    assert!(ask(&address, "envi").starts_with("Environment:\nzookeeper.version=3.8."));
}

#[test]
fn members_of_an_ensemble_report_their_roles() {
    let ensemble = EmbeddedServer::start_ensemble().expect("it starts");
    let modes: Vec<Mode> = (0..3)
        .map(|member| ask(&ensemble.member(member), "srvr"))
        .map(|answer| Status::parse(&answer).expect("a status").mode)
        .collect();
    assert_eq!(modes, [Mode::Leader, Mode::Follower, Mode::Follower]);
}

/// The value of one of the lines of `mntr`.
fn monitored(address: &str, name: &str) -> Option<String> {
    let answer = ask(address, "mntr");
    let mut lines = answer.lines().filter_map(|line| line.split_once('\t'));
    let found = lines.find(|(key, _)| *key == name)?;
    Some(found.1.to_owned())
}

#[test]
fn leader_reports_how_many_follow() {
    let ensemble = EmbeddedServer::start_ensemble().expect("it starts");
    let leader = ensemble.member(0);
    let figure = |name: &str| monitored(&leader, name).expect(name);
    assert_eq!(figure("zk_quorum_size"), "3");
    assert_eq!(figure("zk_synced_followers"), "2");
    assert_eq!(figure("zk_peer_state"), "leading - broadcast");
    ensemble.faults().stop_member(2);
    assert_eq!(figure("zk_learners"), "1");
    assert_eq!(monitored(&ensemble.member(1), "zk_learners"), None);
}
