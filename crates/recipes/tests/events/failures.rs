//! The events of sessions and of requests that fail.

use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind};

use crate::*;

const PATH: &str = "/lock";
const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);

fn simulation() -> Simulation {
    Simulation::with(|it| it.session_timeout = TIMEOUT)
}

async fn open(process: &SimulatedProcess) -> Session {
    let options = ConnectOptions::new().connection_timeout(5 * SECOND);
    let opened = Session::open(process.ensemble(), options).await;
    opened.expect("a session opens")
}

async fn hold(session: &Session) -> Hold {
    one_lock(session).acquire().await.expect("it is free")
}

/// A simulation, and a session in it that holds.
async fn held() -> (Simulation, Session, Hold) {
    let simulation = simulation();
    let session = open(&simulation.process("one")).await;
    let hold = hold(&session).await;
    (simulation, session, hold)
}

/// The only event of this name, which has a field of this value.
#[track_caller]
fn assert_says(log: &Log, level: Level, name: &str, field: &str, value: &str) {
    let lines = named(log, name);
    let [line] = lines.as_slice() else {
        panic!("{name}: {:?}", log.lines());
    };
    assert_eq!(line.level, level, "{name}");
    assert_eq!(line.fields.get(field).map(String::as_str), Some(value));
}

fn id(session: &Session) -> String {
    session.id().expect("it is open").to_string()
}

#[tokio::test(start_paused = true)]
async fn outage_is_warned_of_until_a_session_opens() {
    let (_alone, log, _listening) = listen().await;
    let simulation = simulation();
    let process = simulation.process("one");
    process.partition(30 * SECOND);
    let options = ConnectOptions::new().connection_timeout(5 * SECOND);
    let session = Session::open_in_background(process.ensemble(), options);
    let session = session.expect("good options");
    session.wait_connected().await.expect("a server answers");
    let warned = || named(&log, "no new ZooKeeper session could be opened yet");
    let during = warned();
    assert!(during.len() > 1, "{:?}", log.lines());
    assert!(during.iter().all(|line| line.level == Level::WARN));
    assert!(!during[0].fields["error"].is_empty());
    sleep(30 * SECOND).await;
    assert_eq!(warned().len(), during.len());
    assert!(named(&log, "no ZooKeeper session can be opened").is_empty());
}

/// No option is wrong by itself: the servers grant the session timeout.
#[tokio::test(start_paused = true)]
async fn session_that_can_never_be_opened_is_warned_of_once() {
    let (_alone, log, _listening) = listen().await;
    let simulation = simulation();
    let options = ConnectOptions::new().tick(TIMEOUT);
    let session = Session::open_in_background(simulation.ensemble("one"), options);
    let session = session.expect("good options");
    let refused = timeout(60 * SECOND, session.wait_connected()).await;
    refused.expect("in time").expect_err("no lease can be kept");
    let warned = named(&log, "no ZooKeeper session can be opened");
    assert_eq!(warned.len(), 1, "{:?}", log.lines());
    assert_eq!(warned[0].level, Level::WARN);
    assert!(warned[0].fields["error"].contains("tick"), "{warned:?}");
}

/// The servers keep the session, and its znodes, until they expire it.
#[tokio::test(start_paused = true)]
async fn close_that_no_server_confirms_is_warned_of() {
    let (_alone, log, _listening) = listen().await;
    let simulation = simulation();
    let process = simulation.process("one");
    let name = "the server did not confirm the close in time";
    let confirmed = open(&process).await;
    confirmed.close().await;
    assert!(named(&log, name).is_empty());
    let session = open(&process).await;
    let id = id(&session);
    process.partition(2 * TIMEOUT);
    session.close().await;
    assert_says(&log, Level::WARN, name, "session", &id);
}

#[tokio::test(start_paused = true)]
async fn reconnect_whose_proof_fails_is_reported() {
    let (_alone, log, _listening) = listen().await;
    let simulation = simulation();
    let process = simulation.process("one");
    let session = open(&process).await;
    sleep(5 * SECOND).await;
    let throttled = Fault::new(FaultKind::Throttled).on(RequestKind::Transact);
    simulation.faults().inject(throttled);
    process.disconnect();
    sleep(5 * SECOND).await;
    assert!(session.is_connected());
    let name = "the reconnect is not proven yet";
    assert_says(&log, Level::DEBUG, name, "session", &id(&session));
}

/// The server refuses the proof, and so has answered.
#[tokio::test(start_paused = true)]
async fn reconnect_is_proven_below_a_chroot_that_is_gone() {
    let (_alone, log, _listening) = listen().await;
    let simulation = simulation();
    let administrator = simulation.administrator();
    let made = administrator.create("/app", b"", CreateMode::Persistent);
    made.expect("an empty tree takes it");
    let process = simulation.process("one");
    let ensemble = process.clone().with_chroot("/app").ensemble();
    let session = Session::open(ensemble, ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    sleep(5 * SECOND).await;
    administrator.delete("/app").expect("it is empty");
    process.disconnect();
    sleep(5 * SECOND).await;
    assert!(session.is_connected());
    assert!(named(&log, "the reconnect is not proven yet").is_empty());
}

#[tokio::test(start_paused = true)]
async fn create_without_an_answer_is_reported_with_what_is_done() {
    let (_alone, log, _listening) = listen().await;
    let simulation = simulation();
    let session = open(&simulation.process("one")).await;
    let first = hold(&session).await;
    first.release().await.expect("it is held");
    let lost = Fault::new(FaultKind::ReplyLost).on(RequestKind::Create);
    simulation.faults().inject(lost);
    let hold = hold(&session).await;
    let name = "looking for the znode of an unknown create";
    let lines = named(&log, name);
    assert_eq!(lines.len(), 1, "{:?}", log.lines());
    let prefix = lines[0].fields["path"].clone();
    assert!(hold.node_path().starts_with(&prefix), "{prefix}");
}

/// A directory whose children this session may create, but not delete.
#[tokio::test(start_paused = true)]
async fn deletion_that_is_refused_is_warned_of_once_and_repeated() {
    let (_alone, log, _listening) = listen().await;
    let (simulation, _session, hold) = held().await;
    let administrator = simulation.administrator();
    let znode = hold.node_path().to_owned();
    let creates = Permission::CREATE | Permission::READ;
    let creates = [Acl::new(creates, AuthId::anyone())];
    let earlier = administrator.set_acl(PATH, &creates).expect("it exists");
    drop(hold);
    sleep(5 * SECOND).await;
    let name = "the server refuses a deletion, which is repeated";
    assert_says(&log, Level::WARN, name, "path", &znode);
    administrator.set_acl(PATH, &earlier).expect("it exists");
    sleep(2 * TIMEOUT).await;
    assert_eq!(administrator.children(PATH), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn loss_watch_that_is_refused_is_warned_of_once() {
    let (_alone, log, _listening) = listen().await;
    let (simulation, _session, hold) = held().await;
    let closed = [Acl::new(Permission::ADMIN, AuthId::anyone())];
    let administrator = simulation.administrator();
    let set = administrator.set_acl(hold.node_path(), &closed);
    set.expect("it exists");
    sleep(3 * TIMEOUT).await;
    assert!(hold.is_held());
    let name = "the server refuses a loss watch";
    assert_says(&log, Level::WARN, name, "path", hold.node_path());
}

/// Nobody hears of the deletion before the release does.
#[tokio::test(start_paused = true)]
async fn release_that_finds_its_znode_deleted_is_a_loss() {
    let (_alone, log, _listening) = listen().await;
    let (simulation, _session, hold) = held().await;
    let deleted = simulation.administrator().delete(hold.node_path());
    deleted.expect("it is there");
    let released = hold.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    let reason = LossReason::Deleted.to_string();
    assert_says(&log, Level::WARN, "lost", "reason", &reason);
    assert!(named(&log, "released").is_empty());
}

#[tokio::test(start_paused = true)]
async fn release_that_finds_its_session_expired_is_a_loss() {
    let (_alone, log, _listening) = listen().await;
    let (simulation, _session, hold) = held().await;
    let late = Fault::new(FaultKind::RequestLate(2 * SECOND)).on(RequestKind::Delete);
    simulation.faults().inject(late);
    let id = hold.session_id();
    let expire = async {
        sleep(SECOND).await;
        simulation.administrator().expire(id);
    };
    let (released, ()) = tokio::join!(hold.release(), expire);
    let over = matches!(released, Err(Error::SessionOver { .. }));
    assert!(over, "{released:?}");
    let reason = LossReason::Session(SessionEnd::Expired).to_string();
    assert_says(&log, Level::WARN, "lost", "reason", &reason);
    assert!(named(&log, "released").is_empty());
}
