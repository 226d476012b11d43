//! `doctor --thorough`: each promise kept, and each seen to be broken once.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_protocol::{
    ConnectResponse, FRAME_HEADER, OpCode, Reply, ReplyBody, Request, RequestBody,
};
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, Opcode, SimulationOptions};
use zookeeper_recipes_suite::{TICK, eventually, proxy, requiring_sasl, server_with};
use zookeeper_recipes_testkit::proxy::{Breakage, Fault, Operation};
use zookeeper_recipes_testkit::{Server, ServerOptions};

use crate::support::{ended, files, restrict, run, send, start};

/// The znode of the checks.
const ROOT: &str = "/zkr-doctor-thorough";

/// How often a server looks for empty containers.
const CONTAINERS: Duration = Duration::from_millis(200);

const CREATE2: i32 = 15;
const SET_WATCHES: i32 = 101;
const UNKNOWN: i32 = 4242;

/// Apache's server, which soon deletes containers, as the embedded ones do.
async fn apache(options: ServerOptions) -> Server {
    let options = options.tick_time(TICK);
    server_with(options.container_check_interval(CONTAINERS)).await
}

/// What differs from the default of an embedded server that deletes containers at once.
fn embedded(change: impl FnOnce(&mut EmbeddedOptions)) -> EmbeddedServer {
    let mut options = EmbeddedOptions {
        simulation: SimulationOptions {
            container_interval: CONTAINERS,
            ..EmbeddedOptions::default().simulation
        },
        ..EmbeddedOptions::default()
    };
    change(&mut options);
    EmbeddedServer::start_with(options).expect("it starts")
}

struct Verdicts(Vec<Value>);

impl Verdicts {
    /// Runs the doctor at these servers, which has to end with this code.
    async fn at(connect: &str, code: i32) -> Verdicts {
        Verdicts::with(connect, code, "").await
    }

    /// As [`Verdicts::at`], with further options.
    async fn with(connect: &str, code: i32, options: &str) -> Verdicts {
        let arguments = "doctor --thorough --json --containers-within 5s --tick 500ms";
        let ended = run(connect, &*format!("{arguments} {options}")).await;
        ended.quiet(code);
        let object = ended.json();
        Verdicts(object["verdicts"].as_array().expect("a list").clone())
    }

    fn names(&self, verdict: &str) -> Vec<&str> {
        let all = self.0.iter().filter(|it| it["verdict"] == verdict);
        all.filter_map(|it| it["promise"].as_str()).collect()
    }

    /// All promises are kept but these, which are broken and substituted.
    #[track_caller]
    fn are(&self, broken: &[&str], substituted: &[&str]) {
        let found = (self.names("broken"), self.names("substituted"));
        assert_eq!(
            found,
            (broken.to_vec(), substituted.to_vec()),
            "{:#?}",
            self.0
        );
        assert_eq!(self.0.len(), 27, "{:#?}", self.0);
        assert!(self.names("untried").is_empty(), "{:#?}", self.0);
    }

    /// What the check of this promise saw.
    #[track_caller]
    fn saw(&self, promise: &str, text: &str) {
        let verdict = self.0.iter().find(|it| it["promise"] == promise);
        let seen = verdict.expect("a verdict")["text"].to_string();
        assert!(seen.contains(text), "{seen}");
    }
}

/// A fault, the promise that it breaks, and a part of what the check of that promise sees.
type Broken = (&'static str, Fault, &'static str);

/// Runs the doctor before an embedded server, behind a proxy with faults. Each breaks its promise, all
/// other promises are kept, and nothing is left.
async fn breaks(faults: Vec<Broken>) {
    let server = embedded(|_| {});
    let proxy = proxy(&server.connect_string()).await;
    let faults = faults.into_iter();
    let faults = faults.map(|(promise, fault, seen)| (promise, proxy.fault(fault), seen));
    let faults: Vec<_> = faults.collect();
    let verdicts = Verdicts::at(&proxy.connect_string(), 76).await;
    let mut broken = verdicts.names("broken");
    let mut expected: Vec<&str> = faults.iter().map(|(promise, ..)| *promise).collect();
    broken.sort_unstable();
    expected.sort_unstable();
    assert_eq!(broken, expected, "{:#?}", verdicts.0);
    verdicts.are(&verdicts.names("broken"), &[]);
    assert_eq!(server.administrator().children("/"), ["zookeeper"]);
    for (promise, strikes, seen) in faults {
        assert!(strikes.count() > 0, "the fault of {promise} has struck");
        verdicts.saw(promise, seen);
    }
}

/// Below the znode of one check.
fn below(promise: &str) -> String {
    format!("{ROOT}/{promise}")
}

/// The whole reply, with its body changed.
fn changed(frame: &[u8], opcode: OpCode, change: impl FnOnce(&mut ReplyBody)) -> Vec<u8> {
    let mut reply = Reply::decode(&frame[FRAME_HEADER..], opcode).expect("a reply");
    change(&mut reply.body);
    let mut changed = Vec::new();
    reply.encode_frame(&mut changed);
    changed
}

/// The whole request, with its body changed.
fn asked(frame: &[u8], change: impl FnOnce(&mut RequestBody)) -> Vec<u8> {
    let mut request = Request::decode(&frame[FRAME_HEADER..]).expect("a request");
    change(&mut request.body);
    let mut changed = Vec::new();
    request.encode_frame(&mut changed);
    changed
}

#[tokio::test(flavor = "multi_thread")]
async fn each_promise_is_kept_by_apaches_server() {
    let server = apache(ServerOptions::new()).await;
    let verdicts = Verdicts::at(&server.connect_string(), 0).await;
    verdicts.are(&[], &[]);
    verdicts.saw("request-createTTL", "do not know it");
    verdicts.saw("request-unknown", "do not know it");
    verdicts.saw("request-addWatch", "the servers know it");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_promise_is_kept_by_a_server_that_requires_sasl() {
    let stage = files();
    let server = apache(requiring_sasl(stage.path(), "bob", "secret")).await;
    let credentials = stage.path().join("credentials");
    std::fs::write(&credentials, "digest:me:too\nsasl:bob:secret\n").expect("it is written");
    restrict(&credentials, 0o600);
    let option = format!("--credentials-file {}", credentials.display());
    let verdicts = Verdicts::with(&server.connect_string(), 0, &option).await;
    verdicts.are(&[], &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_promise_is_kept_by_an_embedded_ensemble_and_nothing_is_left() {
    let server = embedded(|options| {
        options.members = 3;
        options.znodes = vec![("/app".to_owned(), Vec::new())];
    });
    let connect = format!("{}/app", server.connect_string());
    Verdicts::at(&connect, 0).await.are(&[], &[]);
    let administrator = server.administrator();
    assert!(administrator.children("/app").is_empty());
    assert_eq!(administrator.children("/"), ["app", "zookeeper"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn znode_of_the_checks_that_exists_is_refused_and_stays() {
    let server = embedded(|options| {
        options.znodes = vec![(format!("/locks{ROOT}"), b"others'".to_vec())];
    });
    let arguments = "doctor --thorough /locks/report";
    let ended = run(&server.connect_string(), &arguments).await;
    ended.refused(64, ["/locks/zkr-doctor-thorough exists"]);
    assert_eq!(
        server.administrator().children("/locks"),
        ["zkr-doctor-thorough"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_an_interrupted_doctor_are_removed_unless_one_runs() {
    let left = format!("/locks{ROOT}");
    let mark = b"zkr doctor --thorough".to_vec();
    let old = embedded(|options| {
        options.znodes = vec![
            (left.clone(), mark.clone()),
            (format!("{left}/order/old"), Vec::new()),
        ];
    });
    let connect = format!("{}/locks", old.connect_string());
    Verdicts::at(&connect, 0).await.are(&[], &[]);
    assert!(old.administrator().children("/locks").is_empty());

    let running = embedded(|options| {
        options.znodes = vec![(left.clone(), mark), (format!("{left}/runs"), Vec::new())];
    });
    let arguments = "doctor --thorough /locks";
    let ended = run(&running.connect_string(), &arguments).await;
    ended.refused(64, ["another doctor runs"]);
    assert_eq!(running.administrator().children(&left), ["runs"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_that_is_interrupted_removes_its_znode() {
    let server = embedded(|options| {
        options.simulation.container_interval = Duration::from_secs(600);
    });
    let connect = server.connect_string();
    let doctor = start(&connect, "doctor --thorough");
    eventually("it waits for its empty container", async || {
        server.administrator().children(ROOT).len() > 1
    })
    .await;
    send(Signal::TERM, &doctor);
    ended(doctor).await.refused(143, ["interrupted"]);
    assert_eq!(server.administrator().children("/"), ["zookeeper"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn verdict_is_a_line_that_says_what_is_lost() {
    let server = embedded(|options| options.simulation.unknown = vec![Opcode::RemoveWatches]);
    let connect = server.connect_string();
    let ended = run(&connect, "doctor --thorough").await;
    ended.coded(0);
    let note =
        "note  request-removeWatches: the servers close the connection at it; so watches stay ";
    ended.shows(["ok    sequence-grows: numbers grow, ", note]);
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_that_needs_a_server_that_is_not_there_is_untried() {
    let server = embedded(|_| {});
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = gone.local_addr().expect("an address");
    drop(gone);
    let connect = format!("{},{address}", server.connect_string());
    let verdicts = Verdicts::at(&connect, 69).await;
    assert!(verdicts.names("broken").is_empty(), "{:#?}", verdicts.0);
    let untried = verdicts.names("untried");
    assert!(untried.contains(&"session-resumes"), "{:#?}", verdicts.0);
    assert!(!untried.contains(&"sequence-grows"), "{:#?}", verdicts.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnect_that_is_answered_with_a_new_session_is_found() {
    let server = embedded(|options| options.simulation.forgets_sessions = true);
    let verdicts = Verdicts::at(&server.connect_string(), 76).await;
    verdicts.are(&["session-resumes"], &["watch-after-reconnect"]);
    verdicts.saw("session-resumes", "was answered with session 0x");
}

/// A reconnect that is granted half of the time.
fn shorter() -> Fault {
    let known = Mutex::new(HashSet::new());
    let connect = Fault::on(Operation::Connect).repeatedly();
    connect.reply_replaced(move |frame| {
        let answer = ConnectResponse::decode(&frame[FRAME_HEADER..]);
        let mut answer = answer.expect("an answer to a handshake");
        if !known.lock().expect("no panic").insert(answer.session_id) {
            answer.timeout /= 2;
        }
        let mut changed = Vec::new();
        answer.encode_frame(&mut changed);
        changed
    })
}

/// A znode of an expired session that stays: each look at it is answered as the first one.
fn kept() -> Fault {
    let first = Mutex::new(None);
    let present = Fault::on(Operation::Exists).under(below("session-expires/"));
    present.repeatedly().reply_replaced(move |frame| {
        let mut first = first.lock().expect("no panic");
        let seen = first.get_or_insert_with(|| frame.to_vec());
        // The body of the first reply, behind the header of this one.
        let header = FRAME_HEADER + 16;
        let xid = &frame[FRAME_HEADER..FRAME_HEADER + 4];
        let rest = &seen[FRAME_HEADER + 4..header];
        [&seen[..FRAME_HEADER], xid, rest, &seen[header..]].concat()
    })
}

/// Two events that change places.
fn swapped() -> Fault {
    let kept = Mutex::new(Vec::new());
    let event = Fault::on(Operation::Notification).under(below("watch-order"));
    event.repeatedly().reply_replaced(move |frame| {
        let mut kept = kept.lock().expect("no panic");
        match kept.is_empty() {
            true => {
                *kept = frame.to_vec();
                Vec::new()
            }
            false => [frame.to_vec(), std::mem::take(&mut *kept)].concat(),
        }
    })
}

/// An event that does not come.
fn dropped(under: &str, nth: u64) -> Fault {
    let event = Fault::on(Operation::Notification).under(below(under));
    event.nth(nth).reply_replaced(|_| Vec::new())
}

/// The number of the `nth` create comes again.
fn number_again(nth: u64) -> Fault {
    let create = Fault::on(Operation::Create).under(below("sequence-grows/n-"));
    create.nth(nth).reply_replaced(|frame| {
        changed(frame, OpCode::Create2, |body| match body {
            ReplyBody::Create2 { path, .. } => *path = path.replace(char::is_numeric, "0"),
            other => panic!("{other:?}"),
        })
    })
}

/// The `nth` look at a znode shows another stat.
fn stat(under: &str, nth: u64, change: fn(&mut zookeeper_recipes_core::Stat)) -> Fault {
    let exists = Fault::on(Operation::Exists).under(below(under)).nth(nth);
    exists.reply_replaced(move |frame| {
        changed(frame, OpCode::Exists, |body| match body {
            ReplyBody::Stat(stat) => change(stat),
            other => panic!("{other:?}"),
        })
    })
}

/// The `nth` request of this kind is another one.
fn instead(operation: Operation, under: &str, nth: u64, change: fn(&mut RequestBody)) -> Fault {
    let request = Fault::on(operation).under(below(under)).nth(nth);
    request.request_replaced(move |frame| asked(frame, change))
}

/// A list without an own znode.
fn stale_list() -> Fault {
    let list = Fault::on(Operation::GetChildren).under(below("own-writes-seen"));
    list.reply_replaced(|frame| {
        changed(frame, OpCode::GetChildren, |body| {
            let children = Vec::new();
            *body = ReplyBody::Children { children };
        })
    })
}

/// A read behind a sync that shows an old state.
fn stale_read() -> Fault {
    let read = Fault::on(Operation::GetData).under(below("sync-catches-up"));
    read.nth(5).reply_replaced(|frame| {
        changed(frame, OpCode::GetData, |body| match body {
            ReplyBody::Data { data, .. } => *data = Some(vec![3]),
            other => panic!("{other:?}"),
        })
    })
}

const VERSIONED: &str = "versions-condition/versioned";

/// The child of an ephemeral znode.
const CHILD: &str = "ephemeral-refuses-children/ephemeral/";

/// The child is created elsewhere, so that the server accepts it.
fn elsewhere() -> Fault {
    instead(Operation::Create, CHILD, 1, |body| match body {
        RequestBody::Create2(create) => create.path = below("ephemeral-refuses-children/other"),
        other => panic!("{other:?}"),
    })
}

/// The request without its version or its condition.
fn unconditional(body: &mut RequestBody) {
    match body {
        RequestBody::SetData(set) => set.version = -1,
        RequestBody::Delete(delete) => delete.version = -1,
        RequestBody::Multi(all) => all.retain(|it| it.opcode() != OpCode::Check),
        other => panic!("{other:?}"),
    }
}

fn first_round() -> Vec<Broken> {
    vec![
        (
            "session-keeps-timeout",
            shorter(),
            "was granted 2s, and its reconnect 1s",
        ),
        ("own-writes-seen", stale_list(), ""),
        (
            "sync-catches-up",
            stale_read(),
            "[4] was written at 127.0.0.1:",
        ),
        (
            "watch-before-reply",
            dropped("watch-before-reply/watched", 7),
            "",
        ),
        ("watch-order", swapped(), ""),
        (
            "watch-after-reconnect",
            dropped("watch-after-reconnect", 1),
            "",
        ),
        (
            "sequence-grows",
            number_again(2),
            "(deleted before: nothing)",
        ),
        ("ephemeral-refuses-children", elsewhere(), "got a child"),
        (
            "transaction-ids-grow",
            stat("transaction-ids-grow", 3, |stat| stat.cversion = 1),
            "cversion is 1 after 1",
        ),
        (
            "versions-condition",
            instead(Operation::SetData, VERSIONED, 2, unconditional),
            "a write with a version of before was done",
        ),
        (
            "transaction-is-atomic",
            instead(Operation::Multi, "transaction-is-atomic", 1, unconditional),
            "its condition was not met",
        ),
    ]
}

/// A second way to break some of them, and the ends of sessions.
fn second_round() -> Vec<Broken> {
    const NODE_EXISTS: i32 = -110;
    const BAD_VERSION: i32 = -103;
    let child = Fault::on(Operation::Create).under(below(CHILD));
    let lost = Fault::on(Operation::CloseSession).repeatedly();
    let lost = lost.request_lost();
    let applied = Fault::on(Operation::Multi).under(below("transaction-is-atomic"));
    vec![
        ("session-closes", lost, ""),
        ("session-expires", kept(), "was not expired after"),
        ("watch-before-reply", dropped("watch-before-reply", 7), ""),
        (
            "sequence-grows",
            number_again(3),
            "(deleted before: the largest)",
        ),
        ("ephemeral-refuses-children", child.refused(NODE_EXISTS), ""),
        (
            "transaction-ids-grow",
            stat("transaction-ids-grow", 3, |stat| stat.pzxid -= 1),
            "pzxid is",
        ),
        (
            "versions-condition",
            instead(Operation::Delete, VERSIONED, 1, unconditional),
            "a deletion with a version of before was done",
        ),
        (
            "transaction-is-atomic",
            applied.nth(2).answered(BAD_VERSION),
            "whose condition is met",
        ),
    ]
}

/// A third way, and a session that pings in vain.
fn third_round() -> Vec<Broken> {
    let pings = Fault::on(Operation::Ping).repeatedly().refused(0);
    vec![
        ("session-lives", pings, ""),
        ("sequence-grows", number_again(4), "(deleted before: all)"),
        (
            "transaction-ids-grow",
            stat("transaction-ids-grow/2", 1, |stat| stat.czxid += 1),
            "another session reads",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_promise_is_seen_to_be_broken() {
    let silent = Fault::on_code(UNKNOWN).at_request(Breakage::Freeze);
    let silence = "did not answer Unknown(4242) within 5s";
    let fourth = vec![("request-unknown", silent, silence)];
    let rounds = [first_round(), second_round(), third_round(), fourth];
    futures_util::future::join_all(rounds.map(breaks)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_that_expires_too_early_is_found() {
    let server = embedded(|_| {});
    let connect = server.connect_string();
    let expiring = async {
        let administrator = server.administrator();
        let path = below("session-expires/ephemeral");
        let mut owner = 0;
        eventually("the znode of the silent session", async || {
            let tree = administrator.tree();
            let node = tree.iter().find(|node| node.path == path);
            owner = node.map_or(0, |node| node.stat.ephemeral_owner);
            owner != 0
        })
        .await;
        administrator.expire(SessionId(owner));
    };
    let (verdicts, ()) = tokio::join!(Verdicts::at(&connect, 76), expiring);
    verdicts.are(&["session-expires"], &[]);
    verdicts.saw("session-expires", "with T = 2s expired after");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_sets_no_watches_again_is_a_note() {
    let server = embedded(|options| options.simulation.unknown = vec![Opcode::SetWatches]);
    let verdicts = Verdicts::at(&server.connect_string(), 0).await;
    verdicts.are(&[], &["watch-after-reconnect", "request-setWatches"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn container_that_stays_is_a_note() {
    let server = embedded(|options| {
        options.simulation.container_interval = Duration::from_secs(3600);
    });
    let verdicts = Verdicts::at(&server.connect_string(), 0).await;
    verdicts.are(&[], &["containers-go"]);
    verdicts.saw("containers-go", "was there after 5s");
}

/// All requests that servers may not know, but for `create2`: without it nothing can be tried.
const REQUIRED: [&str; 3] = ["request-multi", "request-multiRead", "request-sync"];
const SUBSTITUTED: [&str; 3] = [
    "request-createContainer",
    "request-removeWatches",
    "request-addWatch",
];
const UNUSED: [&str; 2] = ["request-createTTL", "request-checkWatches"];

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_not_known_are_found() {
    const UNIMPLEMENTED: i32 = -6;
    let closes = |request: &str| Fault::on_any().under(below(request)).request_lost();
    let answers = |request: &str| Fault::on_any().under(below(request)).refused(UNIMPLEMENTED);
    type Way<'a> = &'a dyn Fn(&str) -> Fault;
    let ways: [(Way<'_>, &str); 2] = [
        (&closes, "close the connection"),
        (&answers, "do not know it"),
    ];
    for (fault, seen) in ways {
        let server = embedded(|_| {});
        let proxy = proxy(&server.connect_string()).await;
        for request in REQUIRED.iter().chain(&SUBSTITUTED).chain(&UNUSED) {
            proxy.fault(fault(request));
        }
        proxy.fault(Fault::on_code(SET_WATCHES).nth(2).request_lost());
        let verdicts = Verdicts::at(&proxy.connect_string(), 76).await;
        let substituted = [
            "request-createContainer",
            "request-setWatches",
            "request-removeWatches",
            "request-addWatch",
        ];
        verdicts.are(&REQUIRED, &substituted);
        for request in REQUIRED.iter().chain(&UNUSED) {
            verdicts.saw(request, seen);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_create2_is_found_at_once() {
    let server = embedded(|_| {});
    let proxy = proxy(&server.connect_string()).await;
    let unknown = Fault::on_code(CREATE2).under(ROOT).repeatedly();
    proxy.fault(unknown.request_lost());
    let verdicts = Verdicts::at(&proxy.connect_string(), 76).await;
    assert_eq!(verdicts.names("broken"), ["request-create2"]);
    assert_eq!(verdicts.0.len(), 1, "{:#?}", verdicts.0);
}
