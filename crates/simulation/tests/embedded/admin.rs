//! The admin port: each route does what it says, to a client that speaks ZooKeeper's protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zookeeper_recipes_protocol::{CreateMode, ErrorCode, RequestBody};
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, StartError};

use crate::raw::{Raw, at, create};
use crate::{embedded, resume};

/// An ensemble with an admin port.
pub(crate) struct Place {
    ensemble: EmbeddedServer,
    pub(crate) admin: String,
}

pub(crate) fn place(members: usize) -> Place {
    let ensemble = embedded(|it| (it.members, it.admin_port) = (members, Some(0)));
    let admin = ensemble.admin_address().expect("an admin port");
    Place { ensemble, admin }
}

impl Place {
    /// Sends a request with this body, and returns the status and the body of the answer.
    fn ask(&self, request: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.admin).expect("it listens");
        let text = format!(
            "{request} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.admin,
            body.len()
        );
        stream.write_all(text.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an end of the head");
        assert!(head.contains("application/json"), "{head}");
        let status = head.split(' ').nth(1).expect("a status");
        let value = serde_json::from_str(body).expect("JSON");
        (status.parse().expect("a number"), value)
    }

    /// Sends a request that is done.
    pub(crate) fn done(&self, request: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(request, &body.to_string());
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Sends a request that is refused, and returns the reason.
    fn refused(&self, request: &str, body: &str) -> (u16, String) {
        let (status, answer) = self.ask(request, body);
        let why = answer["error"].as_str().expect("a sentence");
        assert!(why.ends_with('.'), "{why}");
        (status, why.to_owned())
    }

    fn client(&self, member: usize) -> Raw {
        Raw::connect(&self.ensemble.member(member))
    }
}

fn takes(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

/// The session of a client, as the admin port names it.
fn session(client: &Raw) -> String {
    format!("{:#x}", client.connected.session_id)
}

#[test]
fn routes_are_listed() {
    let place = place(1);
    let answer = place.done("GET /", &json!({}));
    let routes = answer["routes"].as_array().expect("a list");
    for route in routes {
        let route = route["route"].as_str().expect("a route");
        let (_, answer) = place.ask(&route.replace("{member}", "0"), "");
        let unknown = answer["error"]
            .as_str()
            .is_some_and(|it| it.starts_with("There is no P"));
        assert!(!unknown, "{route}: {answer}");
    }
}

#[test]
fn sessions_and_members_are_listed() {
    let place = place(3);
    let client = place.client(1);
    let answer = place.done("GET /sessions", &json!({}));
    let only = &answer["sessions"][0];
    assert_eq!(only["session"], session(&client));
    assert_eq!(only["timeout_milliseconds"], 10_000);
    assert_eq!(only["member"], 1);

    place.done("POST /members/2/stop", &json!({}));
    let answer = place.done("GET /members", &json!({}));
    let states = [0, 1, 2].map(|it| answer["members"][it]["state"].clone());
    assert_eq!(states, ["leader", "follower", "stopped"]);
    assert_eq!(answer["members"][1]["connections"], 1);
    assert_eq!(answer["members"][1]["address"], place.ensemble.member(1));
}

#[test]
fn member_is_stopped_and_started() {
    let place = place(3);
    let mut client = place.client(1);
    let stopped = place.done("POST /members/1/stop", &json!({}));
    assert_eq!(stopped["state"], "stopped");
    assert!(client.is_closed());
    assert!(TcpStream::connect(place.ensemble.member(1)).is_err());
    let started = place.done("POST /members/1/start", &json!({}));
    assert_eq!(started["state"], "follower");
    place.client(1).done(RequestBody::Exists(at("/", false)));
}

#[test]
fn follower_lags() {
    let place = place(3);
    let mut reader = place.client(1);
    let lagging = place.done("POST /members/1/lag", &json!({ "milliseconds": 60_000 }));
    assert_eq!(lagging["lag_milliseconds"], 60_000);
    place.client(0).done(create("/new", CreateMode::Persistent));
    let code = reader.fails(RequestBody::Exists(at("/new", false)));
    assert_eq!(code, ErrorCode::NoNode);
    place.client(2).done(RequestBody::Exists(at("/new", false)));
}

#[test]
fn connections_are_cut() {
    let place = place(2);
    let [mut one, mut other, mut third] = [0, 0, 1].map(|it| place.client(it));
    place.done("POST /faults/cut", &json!({ "session": session(&one) }));
    assert!(one.is_closed());
    other.done(RequestBody::Exists(at("/", false)));
    place.done("POST /faults/cut", &json!({ "member": 0 }));
    assert!(other.is_closed());
    third.done(RequestBody::Exists(at("/", false)));
    place.done("POST /faults/cut", &json!({}));
    assert!(third.is_closed());
    assert_eq!(place.ensemble.administrator().sessions().len(), 3);
}

#[test]
fn session_is_expired() {
    let place = place(1);
    let mut client = place.client(0);
    client.done(create("/ephemeral", CreateMode::Ephemeral));
    let body = json!({ "session": session(&client) });
    place.done("POST /faults/expire", &body);
    assert!(client.is_closed());
    let administrator = place.ensemble.administrator();
    assert_eq!(administrator.sessions(), []);
    assert_eq!(administrator.children("/"), ["zookeeper"]);
}

#[test]
fn reconnect_is_answered_with_a_new_session() {
    let place = place(1);
    let client = place.client(0);
    let body = json!({ "session": session(&client) });
    place.done("POST /faults/new-session-at-reconnect", &body);
    let again = resume(&place.ensemble.member(0), &client);
    assert_ne!(again.connected.session_id, 0);
    assert_ne!(again.connected.session_id, client.connected.session_id);
}

#[test]
fn replies_and_requests_are_delayed() {
    let place = place(1);
    let mut client = place.client(0);
    for what in ["request", "reply"] {
        let body = json!({ "milliseconds": 200, "what": what, "request": "exists" });
        assert_eq!(place.done("POST /faults/delay", &body)["waiting"], 1);
        let took = takes(|| {
            client.done(RequestBody::GetChildren(at("/", false)));
            client.done(RequestBody::Exists(at("/", false)));
        });
        assert!(took >= Duration::from_millis(200), "{what}");
    }
    assert_eq!(place.done("GET /faults", &json!({}))["waiting"], 0);
}

#[test]
fn reply_that_is_dropped_leaves_what_was_created() {
    let place = place(1);
    let mut client = place.client(0);
    let body = json!({
        "session": session(&client), "request": "create", "under": "/second", "nth": 1,
    });
    place.done("POST /faults/drop-reply", &body);
    client.done(create("/first", CreateMode::Persistent));
    client.send(create("/second", CreateMode::Persistent));
    assert!(client.is_closed());
    let names = place.ensemble.administrator().children("/");
    assert_eq!(names, ["first", "second", "zookeeper"]);
}

#[test]
fn request_that_is_dropped_creates_nothing_and_faults_that_wait_can_be_dropped() {
    let place = place(1);
    let mut client = place.client(0);
    let body = json!({ "request": "create" });
    place.done("POST /faults/drop-request", &body);
    place.done("DELETE /faults", &json!({}));
    client.done(create("/kept", CreateMode::Persistent));
    place.done("POST /faults/drop-request", &body);
    client.send(create("/lost", CreateMode::Persistent));
    assert!(client.is_closed());
    assert_eq!(
        place.ensemble.administrator().children("/"),
        ["kept", "zookeeper"]
    );
}

#[test]
fn handshakes_of_a_member_are_slow() {
    let place = place(2);
    let late = Duration::from_secs(2);
    let opens_after = |member| takes(|| drop(place.client(member)));
    let path = "POST /members/1/slow-handshakes";
    place.done(path, &json!({ "milliseconds": 2_000 }));
    assert!(opens_after(1) >= late);
    assert!(opens_after(0) < late);
    place.done(path, &json!({ "milliseconds": 0 }));
    assert!(opens_after(1) < late);
}

#[test]
fn path_to_all_clients_is_long() {
    let place = place(1);
    let mut client = place.client(0);
    let way = Duration::from_secs(1);
    let mut answered_after = || takes(|| drop(client.done(RequestBody::Exists(at("/", false)))));
    place.done("POST /faults/long-path", &json!({ "milliseconds": 1_000 }));
    assert!(answered_after() >= way * 2);
    place.done("POST /faults/long-path", &json!({ "milliseconds": 0 }));
    assert!(answered_after() < way);
}

#[test]
fn data_are_restored_and_lost() {
    let place = place(3);
    let names = || place.ensemble.administrator().children("/");
    let mut client = place.client(1);
    client.done(create("/kept", CreateMode::Persistent));
    place.done("POST /data/back-up", &json!({}));
    client.done(create("/later", CreateMode::Persistent));

    place.done("POST /data/restore", &json!({}));
    assert!(client.is_closed());
    assert_eq!(names(), ["kept", "zookeeper"]);
    let again = || {
        while place.done("GET /members", &json!({}))["members"][0]["state"] == "without a leader" {}
        resume(&place.ensemble.member(0), &client)
    };
    assert_eq!(again().connected.session_id, client.connected.session_id);

    place.done("POST /data/lose", &json!({ "milliseconds": 1 }));
    assert_eq!(names(), ["zookeeper"]);
    assert_eq!(again().connected.session_id, 0, "the session is over");
}

/// A request, the status of the answer, a part of its sentence, and the body of the request.
const BAD_INPUT: &str = r#"
POST /faults/expire | 400 | The body | {
POST /faults/expire | 400 | session |
POST /faults/expire | 400 | expected a string | {"session": 7}
POST /faults/expire | 400 | seven | {"session": "seven"}
POST /faults/expire | 404 | 0x7 | {"session": "0x7"}
POST /faults/drop-reply | 404 | 0x7 | {"session": "0x7"}
POST /faults/drop-reply | 400 | steal | {"request": "steal"}
POST /faults/delay | 400 | seconds | {"seconds": 1}
POST /faults/delay | 400 | -1 | {"milliseconds": -1}
POST /faults/delay | 400 | a day | {"milliseconds": 18446744073709551615}
POST /members/1/lag | 400 | a day | {"milliseconds": 86400001}
POST /faults/cut | 400 | one | {"session": "0x7", "member": 1}
POST /faults/cut | 404 | 0 to 2 | {"member": 3}
POST /members/3/stop | 404 | 0 to 2 |
POST /members/one/lag | 404 | one | {"milliseconds": 1}
POST /members/1/lag | 400 | milliseconds |
POST /members/1/slow-handshakes | 400 | milliseconds |
POST /data/restore | 409 | back-up |
POST /data/lose | 400 | string | {"milliseconds": "1"}
GET /nothing | 404 | GET /nothing |
GET /faults/cut | 404 | GET /faults/cut |
"#;

#[test]
fn bad_input_is_refused_with_one_sentence() {
    let place = place(3);
    for line in BAD_INPUT.trim().lines() {
        let mut parts = line.splitn(4, '|').map(str::trim);
        let [request, status, part, body] = [(); 4].map(|()| parts.next().expect("four parts"));
        let (found, why) = place.refused(request, body);
        assert_eq!(found.to_string(), status, "{request} {body}: {why}");
        assert!(why.contains(part), "{request} {body}: {why}");
    }
    assert_eq!(place.done("GET /faults", &json!({}))["waiting"], 0);
}

#[test]
fn faults_that_wait_are_limited() {
    let place = place(1);
    let body = json!({ "request": "create" });
    for _ in 0..1_000 {
        place.done("POST /faults/drop-reply", &body);
    }
    let (status, why) = place.refused("POST /faults/delay", r#"{"milliseconds": 1}"#);
    assert_eq!(status, 409, "{why}");
    place.done("DELETE /faults", &json!({}));
    place.done("POST /faults/drop-reply", &body);
}

#[test]
fn admin_port_in_use_is_one_clear_error() {
    let place = place(1);
    let (_, port) = place.admin.split_once(':').expect("a port");
    let options = EmbeddedOptions {
        admin_port: Some(port.parse().expect("a number")),
        ..Default::default()
    };
    let error = EmbeddedServer::start_with(options).expect_err("the port is in use");
    assert!(matches!(error, StartError::PortInUse { .. }), "{error:?}");
    assert!(error.to_string().contains(port), "{error}");
}
