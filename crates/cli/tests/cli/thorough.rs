//! `doctor --thorough`: each promise kept, and each seen to be broken once.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_protocol::{
    ConnectResponse, FRAME_HEADER, MultiOperation, OpCode, Reply, ReplyBody, Request, RequestBody,
};
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, Opcode, SimulationOptions};
use zookeeper_recipes_suite::{TICK, eventually, server_with};
use zookeeper_recipes_testkit::ServerOptions;
use zookeeper_recipes_testkit::proxy::{Breakage, Fault, Operation, Proxy};

use crate::support::{ended, run, send, start};

/// The znode of the checks.
const ROOT: &str = "/zkr-doctor-thorough";

const CREATE2: i32 = 15;
const SET_WATCHES: i32 = 101;
const UNKNOWN: i32 = 4242;

/// What differs from the default of an embedded server that deletes containers at once.
fn embedded(change: impl FnOnce(&mut EmbeddedOptions)) -> EmbeddedServer {
    let mut options = EmbeddedOptions {
        simulation: SimulationOptions {
            container_interval: Duration::from_millis(200),
            ..EmbeddedOptions::default().simulation
        },
        ..EmbeddedOptions::default()
    };
    change(&mut options);
    EmbeddedServer::start_with(options).expect("it starts")
}

/// The verdicts of one run.
struct Verdicts(Vec<Value>);

impl Verdicts {
    /// Runs the doctor at these servers, which has to end with this code.
    async fn at(connect: &str, code: i32) -> Verdicts {
        let arguments = "doctor --thorough --json --containers-within 5s";
        let ended = run(connect, &arguments).await;
        assert_eq!((ended.code, &*ended.stderr), (Some(code), ""), "{ended:?}");
        let object: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        Verdicts(object["verdicts"].as_array().expect("a list").clone())
    }

    /// The names of the promises with this verdict.
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

/// A proxy before an embedded server, with a fault, under which one promise is broken.
async fn breaks(fault: Fault, promise: &str) -> Verdicts {
    let server = embedded(|_| {});
    let proxy = Proxy::start(server.connect_string())
        .await
        .expect("it starts");
    let strikes = proxy.fault(fault);
    let verdicts = Verdicts::at(&proxy.connect_string(), 76).await;
    assert!(strikes.count() > 0, "the fault has struck");
    verdicts.are(&[promise], &[]);
    verdicts
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
    let options = ServerOptions::new().tick_time(TICK);
    let interval = Duration::from_millis(200);
    let server = server_with(options.container_check_interval(interval)).await;
    let verdicts = Verdicts::at(&server.connect_string(), 0).await;
    verdicts.are(&[], &[]);
    verdicts.saw("request-createTTL", "do not know it");
    verdicts.saw("request-unknown", "do not know it");
    verdicts.saw("request-addWatch", "the servers know it");
    let again = Verdicts::at(&server.connect_string(), 0).await;
    again.are(&[], &[]);
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
    let message = ended.failed_with(64);
    assert!(
        message.contains("/locks/zkr-doctor-thorough exists"),
        "{message}"
    );
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
    let line = ended.failed_with(64);
    assert!(line.contains("another doctor runs"), "{line}");
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
    let doctor = ended(doctor).await;
    assert!(
        doctor.failed_with(143).contains("interrupted"),
        "{doctor:?}"
    );
    assert_eq!(server.administrator().children("/"), ["zookeeper"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn verdict_is_a_line_that_says_what_is_lost() {
    let server = embedded(|options| options.simulation.unknown = vec![Opcode::RemoveWatches]);
    let connect = server.connect_string();
    let ended = run(&connect, "doctor --thorough").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in [
        "ok    sequence-grows: numbers grow, ",
        "note  request-removeWatches: the servers close the connection at it; so watches stay ",
    ] {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
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

#[tokio::test(flavor = "multi_thread")]
async fn reconnect_that_is_granted_less_time_is_found() {
    let known = Mutex::new(HashSet::new());
    let shorter = Fault::on(Operation::Connect).repeatedly();
    let shorter = shorter.reply_replaced(move |frame| {
        let answer = ConnectResponse::decode(&frame[FRAME_HEADER..]);
        let mut answer = answer.expect("an answer to a handshake");
        if !known.lock().expect("no panic").insert(answer.session_id) {
            answer.timeout /= 2;
        }
        let mut changed = Vec::new();
        answer.encode_frame(&mut changed);
        changed
    });
    let verdicts = breaks(shorter, "session-keeps-timeout").await;
    verdicts.saw(
        "session-keeps-timeout",
        "was granted 2s, and its reconnect 1s",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_session_that_keeps_its_znodes_is_found() {
    let kept = Fault::on(Operation::CloseSession).repeatedly();
    breaks(kept.request_lost(), "session-closes").await;
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
async fn session_that_expires_too_late_is_found() {
    let first = Mutex::new(None);
    let present = Fault::on(Operation::Exists).under(below("session-expires/"));
    let late = present.repeatedly().reply_replaced(move |frame| {
        let mut first = first.lock().expect("no panic");
        let seen = first.get_or_insert_with(|| frame.to_vec());
        // The body of the first reply, behind the header of this one.
        let header = FRAME_HEADER + 16;
        let xid = &frame[FRAME_HEADER..FRAME_HEADER + 4];
        let rest = &seen[FRAME_HEADER + 4..header];
        [&seen[..FRAME_HEADER], xid, rest, &seen[header..]].concat()
    });
    let verdicts = breaks(late, "session-expires").await;
    verdicts.saw("session-expires", "was not expired after");
}

#[tokio::test(flavor = "multi_thread")]
async fn session_that_expires_though_it_pings_is_found() {
    let swallowed = Fault::on(Operation::Ping).repeatedly();
    breaks(swallowed.refused(0), "session-lives").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn list_that_lacks_an_own_znode_is_found() {
    let list = Fault::on(Operation::GetChildren).under(below("own-writes-seen"));
    let stale = list.reply_replaced(|frame| {
        changed(frame, OpCode::GetChildren, |body| {
            *body = ReplyBody::Children {
                children: Vec::new(),
            };
        })
    });
    breaks(stale, "own-writes-seen").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_behind_a_sync_that_shows_an_old_state_is_found() {
    let read = Fault::on(Operation::GetData).under(below("sync-catches-up"));
    let stale = read.nth(5).reply_replaced(|frame| {
        changed(frame, OpCode::GetData, |body| match body {
            ReplyBody::Data { data, .. } => *data = Some(vec![3]),
            other => panic!("{other:?}"),
        })
    });
    let verdicts = breaks(stale, "sync-catches-up").await;
    verdicts.saw("sync-catches-up", "[4] was written at 127.0.0.1:");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_that_comes_behind_the_reply_is_found() {
    for path in ["watch-before-reply/watched", "watch-before-reply"] {
        let event = Fault::on(Operation::Notification).under(below(path));
        breaks(
            event.nth(7).reply_replaced(|_| Vec::new()),
            "watch-before-reply",
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_out_of_order_are_found() {
    let kept = Mutex::new(Vec::new());
    let event = Fault::on(Operation::Notification).under(below("watch-order"));
    let swapped = event.repeatedly().reply_replaced(move |frame| {
        let mut kept = kept.lock().expect("no panic");
        match kept.is_empty() {
            true => {
                *kept = frame.to_vec();
                Vec::new()
            }
            false => [frame.to_vec(), std::mem::take(&mut *kept)].concat(),
        }
    });
    breaks(swapped, "watch-order").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_that_is_lost_with_the_connection_is_found() {
    let event = Fault::on(Operation::Notification).under(below("watch-after-reconnect"));
    breaks(
        event.reply_replaced(|_| Vec::new()),
        "watch-after-reconnect",
    )
    .await;
    let server = embedded(|options| options.simulation.unknown = vec![Opcode::SetWatches]);
    let verdicts = Verdicts::at(&server.connect_string(), 0).await;
    verdicts.are(&[], &["watch-after-reconnect", "request-setWatches"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn number_that_comes_again_is_found() {
    // The creates after which the number comes again, and what was deleted before.
    for (nth, deleted) in [(2, "nothing"), (3, "the largest"), (4, "all")] {
        let create = Fault::on(Operation::Create).under(below("sequence-grows/n-"));
        let again = create.nth(nth).reply_replaced(|frame| {
            changed(frame, OpCode::Create2, |body| match body {
                ReplyBody::Create2 { path, .. } => *path = path.replace(char::is_numeric, "0"),
                other => panic!("{other:?}"),
            })
        });
        let verdicts = breaks(again, "sequence-grows").await;
        verdicts.saw("sequence-grows", &format!("(deleted before: {deleted})"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ephemeral_znode_that_takes_children_is_found() {
    let child =
        || Fault::on(Operation::Create).under(below("ephemeral-refuses-children/ephemeral/"));
    let elsewhere = child().request_replaced(|frame| {
        asked(frame, |body| match body {
            RequestBody::Create2(create) => create.path = below("ephemeral-refuses-children/other"),
            other => panic!("{other:?}"),
        })
    });
    let verdicts = breaks(elsewhere, "ephemeral-refuses-children").await;
    verdicts.saw("ephemeral-refuses-children", "got a child");
    const NODE_EXISTS: i32 = -110;
    breaks(child().refused(NODE_EXISTS), "ephemeral-refuses-children").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_ids_that_do_not_grow_are_found() {
    let stat = |change: fn(&mut zookeeper_recipes_core::Stat)| {
        move |frame: &[u8]| {
            changed(frame, OpCode::Exists, |body| match body {
                ReplyBody::Stat(stat) => change(stat),
                other => panic!("{other:?}"),
            })
        }
    };
    let parent = || {
        let exists = Fault::on(Operation::Exists).under(below("transaction-ids-grow"));
        exists.nth(3)
    };
    let child = || Fault::on(Operation::Exists).under(below("transaction-ids-grow/2"));
    for (fault, seen) in [
        (
            parent().reply_replaced(stat(|stat| stat.cversion = 1)),
            "cversion is 1 after 1",
        ),
        (
            parent().reply_replaced(stat(|stat| stat.pzxid -= 1)),
            "pzxid is",
        ),
        (
            child().reply_replaced(stat(|stat| stat.czxid += 1)),
            "another session reads",
        ),
    ] {
        let verdicts = breaks(fault, "transaction-ids-grow").await;
        verdicts.saw("transaction-ids-grow", seen);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn write_that_ignores_its_version_is_found() {
    let under = below("versions-condition/versioned");
    let write = Fault::on(Operation::SetData).under(&under).nth(2);
    let write = write.request_replaced(|frame| {
        asked(frame, |body| match body {
            RequestBody::SetData(set) => set.version = -1,
            other => panic!("{other:?}"),
        })
    });
    let verdicts = breaks(write, "versions-condition").await;
    verdicts.saw(
        "versions-condition",
        "a write with a version of before was done",
    );
    let deletion = Fault::on(Operation::Delete).under(&under);
    let deletion = deletion.request_replaced(|frame| {
        asked(frame, |body| match body {
            RequestBody::Delete(delete) => delete.version = -1,
            other => panic!("{other:?}"),
        })
    });
    let verdicts = breaks(deletion, "versions-condition").await;
    verdicts.saw(
        "versions-condition",
        "a deletion with a version of before was done",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_that_is_done_in_part_is_found() {
    let multi = || Fault::on(Operation::Multi).under(below("transaction-is-atomic"));
    let without_condition = multi().request_replaced(|frame| {
        asked(frame, |body| match body {
            RequestBody::Multi(all) => {
                all.retain(|it| !matches!(it, MultiOperation::Check(_)));
            }
            other => panic!("{other:?}"),
        })
    });
    let verdicts = breaks(without_condition, "transaction-is-atomic").await;
    verdicts.saw("transaction-is-atomic", "its condition was not met");
    const BAD_VERSION: i32 = -103;
    let applied = multi().nth(2).answered(BAD_VERSION);
    let verdicts = breaks(applied, "transaction-is-atomic").await;
    verdicts.saw("transaction-is-atomic", "whose condition is met");
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
const SUBSTITUTED: [&str; 2] = ["request-createContainer", "request-removeWatches"];
const UNUSED: [&str; 3] = [
    "request-createTTL",
    "request-checkWatches",
    "request-addWatch",
];

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
        let proxy = Proxy::start(server.connect_string())
            .await
            .expect("it starts");
        for request in REQUIRED.iter().chain(&SUBSTITUTED).chain(&UNUSED) {
            proxy.fault(fault(request));
        }
        proxy.fault(Fault::on_code(SET_WATCHES).nth(2).request_lost());
        let verdicts = Verdicts::at(&proxy.connect_string(), 76).await;
        let substituted = [
            "request-createContainer",
            "request-setWatches",
            "request-removeWatches",
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
    let proxy = Proxy::start(server.connect_string())
        .await
        .expect("it starts");
    let unknown = Fault::on_code(CREATE2).under(ROOT).repeatedly();
    proxy.fault(unknown.request_lost());
    let verdicts = Verdicts::at(&proxy.connect_string(), 76).await;
    assert_eq!(verdicts.names("broken"), ["request-create2"]);
    assert_eq!(verdicts.0.len(), 1, "{:#?}", verdicts.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_is_silent_at_an_unknown_request_is_found() {
    let silent = Fault::on_code(UNKNOWN).at_request(Breakage::Freeze);
    let verdicts = breaks(silent, "request-unknown").await;
    verdicts.saw("request-unknown", "did not answer Unknown(4242) within 5s");
}
