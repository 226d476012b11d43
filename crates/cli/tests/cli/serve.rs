//! `zkr serve`: its answers, what it refuses, its events and its metrics.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;
use zookeeper_recipes_suite::{create, eventually, in_time};

use crate::support::{Stage, clients, ended, queue, restrict, send};

const DASHBOARD: &str = include_str!("../../packaging/monitoring/dashboard.json");
const ALERTS: &str = include_str!("../../packaging/monitoring/alerts.yml");

const TOKEN: &str = "correct-horse-battery-staple";

/// A `zkr serve`, and where it listens.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    async fn start(stage: &Stage, options: &str) -> Server {
        let (child, address) = stage.serve("50ms", options).await;
        Server { child, address }
    }

    /// Sends the lines of a head, and returns the status, the head and the body of the answer.
    async fn ask(&self, head: &[&str]) -> (u16, String, String) {
        let mut stream = self.send(head).await;
        let mut answer = String::new();
        let read = in_time("an answer", stream.read_to_string(&mut answer)).await;
        read.expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status");
        let status = status.parse().expect("a number");
        (status, head.to_ascii_lowercase(), body.to_owned())
    }

    async fn send(&self, head: &[&str]) -> TcpStream {
        let stream = TcpStream::connect(&self.address).await;
        let mut stream = stream.expect("it listens");
        let text = format!("{}\r\n\r\n", head.join("\r\n"));
        stream.write_all(text.as_bytes()).await.expect("it reads");
        stream
    }

    /// The body of an answer. HTTP/1.0 has no chunks.
    async fn get(&self, path: &str) -> String {
        let (line, host) = (format!("GET {path} HTTP/1.0"), self.host());
        let (status, _, body) = self.ask(&[&line, &host]).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path).await).expect("JSON")
    }

    fn host(&self) -> String {
        format!("Host: {}", self.address)
    }

    async fn events(&self) -> Events {
        let stream = self.send(&["GET /events HTTP/1.0", &self.host()]).await;
        Events(BufReader::new(stream))
    }
}

/// A stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    /// The data of the next event. `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            let read = in_time("an event", self.0.read_line(&mut line)).await;
            if read.expect("text") == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).expect("JSON"));
            }
        }
    }

    /// The next event that changes a row or removes one.
    async fn change(&mut self) -> Value {
        loop {
            let event = self.next().await.expect("another event");
            if event["queues"] != json!([]) || event["gone"] != json!([]) {
                return event;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_contenders_and_sessions_are_shown_with_circles_and_their_way_out() {
    let stage = Stage::new();
    let [one, other] = clients(&stage, &["/a", "/b b"]).await;
    queue(&one, "/a", "billing@host-1:7").await;
    queue(&other, "/b b", "report@host-2:8").await;
    queue(&one, "/b b", "billing@host-1:7").await;
    queue(&other, "/a", "report@host-2:8").await;
    let server = Server::start(&stage, "").await;
    let overview = server.json("/api/overview").await;
    let rows = overview["queues"].as_array().expect("a list");
    assert_eq!(rows.len(), 2);
    let row = &rows[1];
    assert_eq!(
        (&row["path"], &row["holder"]),
        (&json!("/b b"), &json!("report@host-2:8"))
    );
    assert_eq!(
        (&row["waiting"], &row["in_circle"]),
        (&json!(1), &json!(true))
    );
    let circle = &overview["circles"][0];
    let way_out = circle["way_out"].as_str().expect("a command");
    let expected = format!("zkr --connect {} evict '/b b' --if-holder ", stage.connect);
    assert!(way_out.starts_with(&expected), "{way_out}");

    let contenders = server.json("/api/queue?path=%2Fb+b").await;
    assert_eq!(contenders["contenders"][1]["waits_for"], json!([1]));
    let address = contenders["contenders"][0]["address"].as_str();
    assert!(address.is_some_and(|it| it.starts_with("127.0.0.1:")));
    let sessions = server.json("/api/sessions").await;
    let session = &sessions["sessions"][0];
    let id = session["session"].as_str().expect("an id");
    assert_eq!(session["blocks"], 1);
    let [one, other] = [&one, &other].map(|it| format!("{:#x}", it.session_id().0));
    let [own, blocker] = if id == one {
        ["/a", &other]
    } else {
        ["/b b", &one]
    };
    assert_eq!(session["holds"], json!([own]));
    assert_eq!(session["waits"][0]["for"], json!([blocker]));
}

/// The lines of a request, and the status of its answer. OWN is the address, DATA a request for data,
/// HOST and BEARER the headers that it needs.
const REQUESTS: &[(&str, u16)] = &[
    ("DATA; HOST; BEARER", 200),
    ("DATA; HOST; BEARER; Origin: http://OWN", 200),
    ("DATA; Host: localhost:1; BEARER", 200),
    (
        "DATA; Host: zkr.example; BEARER; Origin: https://zkr.example",
        200,
    ),
    ("HEAD /api/overview HTTP/1.1; HOST; BEARER", 200),
    // Who asks.
    ("DATA; Host: evil.example; BEARER", 403),
    ("DATA; BEARER", 403),
    ("DATA; HOST; HOST; BEARER", 403),
    ("DATA; HOST; BEARER; Origin: http://evil.example", 403),
    ("DATA; HOST; BEARER; Origin: null", 403),
    ("DATA; HOST; BEARER; Origin: http://127.0.0.1:1", 403),
    ("GET / HTTP/1.1; Host: evil.example", 403),
    ("GET http://evil.example/ HTTP/1.1; HOST", 403),
    (
        "GET /metrics HTTP/1.1; HOST; BEARER; Origin: http://evil.example",
        403,
    ),
    // For whom a browser asks. A person may follow a link.
    ("DATA; HOST; BEARER; Sec-Fetch-Site: same-origin", 200),
    ("DATA; HOST; BEARER; Sec-Fetch-Site: none", 200),
    ("DATA; HOST; BEARER; Sec-Fetch-Site: cross-site", 403),
    ("DATA; HOST; BEARER; Sec-Fetch-Site: same-site", 403),
    (
        "GET /events HTTP/1.1; HOST; BEARER; Sec-Fetch-Site: cross-site",
        403,
    ),
    (
        "GET / HTTP/1.1; HOST; Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: navigate; \
         Sec-Fetch-Dest: document",
        200,
    ),
    (
        "GET / HTTP/1.1; HOST; Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: navigate; \
         Sec-Fetch-Dest: iframe",
        403,
    ),
    // The token.
    ("DATA; HOST", 401),
    ("DATA; HOST; Authorization: Bearer", 401),
    ("DATA; HOST; Authorization: Bearer TOKE", 401),
    ("DATA; HOST; BEARERx", 401),
    ("DATA; HOST; Authorization: Basic TOKEN", 401),
    ("DATA; HOST; Authorization: TOKEN", 401),
    ("DATA; HOST; Authorization: Bearer not this", 401),
    ("GET /api/overview?token=TOKEN HTTP/1.1; HOST", 401),
    ("GET /metrics HTTP/1.1; HOST", 401),
    ("GET /events HTTP/1.1; HOST", 401),
    ("GET /api/queue?path=/a HTTP/1.1; HOST", 401),
    ("GET /api/sessions HTTP/1.1; HOST", 401),
    // What holds no data.
    ("GET / HTTP/1.1; HOST", 200),
    ("GET /healthz HTTP/1.1; HOST", 200),
    ("GET /readyz HTTP/1.1; HOST", 200),
    // What there is not.
    ("GET /api/queue?path=/none HTTP/1.1; HOST; BEARER", 404),
    ("GET /api/queue HTTP/1.1; HOST; BEARER", 400),
    ("GET /nothing HTTP/1.1; HOST; BEARER", 404),
    ("POST /api/overview HTTP/1.1; HOST; BEARER", 405),
    ("DELETE / HTTP/1.1; HOST; BEARER", 405),
    ("OPTIONS /api/overview HTTP/1.1; HOST; BEARER", 405),
    (
        "OPTIONS /api/overview HTTP/1.1; HOST; Origin: http://evil.example",
        403,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_other_pages_and_of_clients_without_the_token_are_refused() {
    let stage = Stage::new();
    let file = stage.file("token");
    std::fs::write(file, format!("{TOKEN}\nnot this\n")).expect("it is written");
    restrict(file, 0o600);
    let options = format!("--token-file {file} --host zkr.example");
    let server = Server::start(&stage, &options).await;
    for (request, expected) in REQUESTS {
        let lines = request
            .replace("DATA", "GET /api/overview HTTP/1.1")
            .replace("HOST", "Host: OWN")
            .replace("OWN", &server.address)
            .replace("BEARER", "Authorization: Bearer TOKEN")
            .replace("TOKEN", TOKEN)
            .replace("TOKE", &TOKEN[1..]);
        let lines: Vec<&str> = lines.split("; ").collect();
        let (status, head, _) = server.ask(&lines).await;
        assert_eq!(status, *expected, "{request}: {head}");
        for header in [
            "nosniff",
            "no-store",
            "frame-ancestors 'none'",
            "same-origin",
        ] {
            assert!(head.contains(header), "{request}: {header}: {head}");
        }
        assert!(!head.contains("access-control"), "{head}");
    }
    let page = ["GET / HTTP/1.0", &server.host()];
    let (_, head, page) = server.ask(&page).await;
    assert!(head.contains("script-src 'sha256-"), "{head}");
    assert!(!head.contains("unsafe"), "{head}");
    let is_own = !page.contains("innerHTML") && !page.contains("://");
    assert!(is_own, "the page has markup in its script, or names a host");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_bring_the_overview_and_then_what_has_changed() {
    let stage = Stage::new();
    let [one, other] = clients(&stage, &["/a", "/b"]).await;
    queue(&one, "/a", "first").await;
    let server = Server::start(&stage, "").await;
    let mut events = server.events().await;
    let first = events.next().await.expect("the overview");
    assert_eq!(
        (&first["whole"], &first["queues"][0]["path"]),
        (&json!(true), &json!("/a"))
    );
    // Another client reads nothing, and delays nobody.
    let _lazy = server.events().await;
    queue(&other, "/b", "second").await;
    let added = events.change().await;
    assert_eq!(added["whole"], false);
    let rows = added["queues"].as_array().expect("a list");
    assert_eq!((rows.len(), &rows[0]["path"]), (1, &json!("/b")));
    drop(other);
    let mut gone = events.change().await;
    while gone["gone"] == json!([]) {
        gone = events.change().await;
    }
    assert_eq!(
        (&gone["gone"], &gone["queues"]),
        (&json!(["/b"]), &json!([]))
    );
    // An event without a change is small, and says how old the look is.
    let still = events.next().await.expect("another look");
    assert!(still["look"]["age_ms"].is_u64());

    send(Signal::TERM, &server.child);
    while events.next().await.is_some() {}
    ended(server.child).await.quiet(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_hold_nobody_up_and_streams_are_limited() {
    let stage = Stage::new();
    let server = Server::start(&stage, "").await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        let stream = TcpStream::connect(&server.address).await;
        silent.push(stream.expect("it listens"));
    }
    let mut events = server.events().await;
    assert!(events.next().await.is_some());
    let mut streams = Vec::new();
    for _ in 1..64 {
        let mut other = server.events().await;
        assert!(other.next().await.is_some());
        streams.push(other);
    }
    let refused = server.ask(&["GET /events HTTP/1.0", &server.host()]).await;
    assert_eq!(refused.0, 503, "{refused:?}");
    // More connections than there may be: none of them closes a stream.
    for _ in 0..300 {
        let stream = TcpStream::connect(&server.address).await;
        silent.push(stream.expect("it listens"));
    }
    assert_eq!(server.get("/healthz").await, "ok\n");
    assert!(events.next().await.is_some());
    drop(streams);
    eventually("a stream is free", async || {
        let (status, _, _) = server.ask(&["HEAD /events HTTP/1.0", &server.host()]).await;
        status == 200
    })
    .await;
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("zkr_")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_what_the_dashboard_and_the_alerts_read() {
    let stage = Stage::new();
    let odd = r#"/odd "path\ of {all}"#;
    let [one, other] = clients(&stage, &["/a", odd]).await;
    for client in [&one, &other] {
        queue(client, odd, "owner").await;
    }
    queue(&one, "/a", "owner").await;
    let server = Server::start(&stage, "--metrics-paths 1").await;
    let text = server.get("/metrics").await;
    let mut described = BTreeSet::new();
    for line in text.lines() {
        let (name, _) = line.split_once(' ').expect("a name and more");
        match line.strip_prefix("# TYPE ") {
            Some(rest) => {
                let (name, kind) = rest.split_once(' ').expect("a type");
                let is_counter = name.ends_with("_total");
                assert_eq!(kind, if is_counter { "counter" } else { "gauge" }, "{line}");
                described.insert(name);
            }
            None if name == "#" => assert!(line.starts_with("# HELP zkr_"), "{line}"),
            None => {
                let (sample, value) = line.rsplit_once(' ').expect("a value");
                let name = sample.split('{').next().expect("a name");
                assert!(described.contains(name), "{line}");
                assert!(value.parse::<f64>().is_ok_and(|it| it >= 0.0), "{line}");
            }
        }
    }
    let escaped = r#"zkr_queue_waiters{path="/odd \"path\\ of {all}",kind="exclusive lock"} 1"#;
    assert!(text.contains(escaped), "{text}");
    assert!(
        !text.contains(r#"path="/a""#),
        "the worst path only: {text}"
    );
    assert!(
        text.contains("zkr_holders{kind=\"exclusive lock\"} 2\n"),
        "{text}"
    );
    let used: BTreeSet<&str> = names(DASHBOARD).union(&names(ALERTS)).copied().collect();
    let missing: Vec<&&str> = used.difference(&described).collect();
    assert_eq!(missing, Vec::<&&str>::new(), "no such metric");
    let unused: Vec<&&str> = described.difference(&used).collect();
    assert_eq!(unused, Vec::<&&str>::new(), "neither shown nor watched");
    serde_json::from_str::<Value>(DASHBOARD).expect("JSON");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_contenders_are_hidden_if_asked_for_and_those_of_other_znodes_always() {
    const SECRET: &str = "secret-of-4711";
    let stage = Stage::new();
    let [one, other] = clients(&stage, &["/a", "/b", "/group"]).await;
    let plain = zookeeper_client::CreateMode::Ephemeral;
    let options = plain.with_acls(zookeeper_client::Acls::anyone_all());
    let member = one
        .create("/group/member", SECRET.as_bytes(), &options)
        .await;
    member.expect("a member");
    create(&one, "/a/foreign").await;
    let stays = zookeeper_client::CreateMode::Persistent;
    let options = stays.with_acls(zookeeper_client::Acls::anyone_all());
    let foreign = one.create("/a/config", SECRET.as_bytes(), &options).await;
    foreign.expect("a znode");
    let paths = [
        "/api/overview",
        "/api/queue?path=/a",
        "/api/queue?path=/group",
        "/api/sessions",
        "/metrics",
    ];
    for (client, path) in [(&one, "/a"), (&other, "/b"), (&one, "/b"), (&other, "/a")] {
        queue(client, path, "billing@host-1").await;
    }
    for (options, shows) in [("", true), ("--redact", false)] {
        let server = Server::start(&stage, options).await;
        let mut owners = 0;
        for path in paths {
            let answer = server.get(path).await;
            assert!(!answer.contains(SECRET), "{path}: {answer}");
            owners += usize::from(answer.contains("billing@host-1"));
        }
        assert_eq!(owners, if shows { 3 } else { 0 }, "{options}");
        let overview = server.json("/api/overview").await;
        assert_eq!(overview["redacted"], !shows);
        let event = server.events().await.next().await.expect("an event");
        assert_eq!(event.to_string().contains("billing@host-1"), shows);
        assert_eq!(
            overview["circles"][0]["waits"].as_array().map(Vec::len),
            Some(2)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn last_look_stays_with_its_age_while_no_server_answers() {
    let mut stage = Stage::new();
    let [one, _] = clients(&stage, &["/a"]).await;
    queue(&one, "/a", "owner").await;
    let options = "--session-timeout 2s --connect-timeout 1s";
    let server = Server::start(&stage, options).await;
    let taken = format!("serve --listen {}", server.address);
    stage.run(&taken).await.refused(73, [&server.address]);
    let unused = zookeeper_recipes_simulation::EmbeddedServer::start().expect("it starts");
    drop(std::mem::replace(&mut stage.server, unused));
    eventually("the look is old", async || {
        let overview = server.json("/api/overview").await;
        assert_eq!(overview["queues"][0]["path"], "/a");
        overview["look"]["age_ms"].as_u64() > Some(1_000)
    })
    .await;
}
