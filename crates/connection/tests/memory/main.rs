//! The memory of a session: what requests take is given back, and a server's claims take none.
//!
//! A test binary of its own, because memory is counted for the whole process.

mod claims;
#[allow(dead_code)]
#[path = "../connection/peer.rs"]
mod peer;
mod server;

use std::alloc::System;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::task::unconstrained;
use tokio::time::timeout;
use zookeeper_recipes_connection::{
    Config, Connection, ConnectionState, DisconnectReason, Host, PendingAnswer, RequestError,
    UnsupportedRequests, WatchEvent,
};
use zookeeper_recipes_protocol::{
    EventType, PathRequest, ReadRequest, ReplyBody, RequestBody, SetDataRequest,
};

use crate::server::Server;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Longer than anything takes that does not hang.
const LONG: Duration = Duration::from_secs(30);
const REQUESTS: usize = 10_000;
/// What one request takes until its answer is taken, at the session and at the test's server.
const EACH: isize = 1 << 10;
/// The buffers that a session and the test's server keep.
const KEPT: isize = 512 << 10;

/// How many bytes are allocated now.
fn live() -> isize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as isize - stats.bytes_deallocated as isize
}

pub(crate) fn config() -> Config {
    Config {
        hosts: vec![Host {
            name: "10.0.0.1".to_owned(),
            port: 2181,
        }],
        session_timeout: Duration::from_secs(10),
        auth: Vec::new(),
        reply_limit: 64 << 20,
        seed: 7,
        unsupported: UnsupportedRequests::default(),
    }
}

fn spawn(server: &Arc<Server>, session_timeout: Duration) -> Connection {
    let config = Config {
        session_timeout,
        ..config()
    };
    let (connection, driver) = Connection::new(server.clone(), config);
    tokio::spawn(driver);
    connection
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    timeout(LONG, work).await.expect("it does not hang")
}

async fn until(connection: &Connection, is_so: impl FnMut(&ConnectionState) -> bool) {
    let mut states = connection.states();
    in_time(states.wait_for(is_so)).await.expect("a driver");
}

fn is_connected(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Connected { .. })
}

fn sync(path: String) -> RequestBody {
    RequestBody::Sync(PathRequest::new(path))
}

fn watched_read(path: &str) -> RequestBody {
    RequestBody::GetData(ReadRequest::new(path, true))
}

fn ask_all(connection: &Connection) -> Vec<PendingAnswer> {
    let ask = |number| connection.request(sync(format!("/{number}")));
    (0..REQUESTS).map(ask).collect()
}

/// The answer that the future has already.
fn at_once(pending: PendingAnswer) -> Result<ReplyBody, RequestError> {
    // The runtime makes a task wait that takes many answers at once.
    let mut pending = unconstrained(pending);
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(&mut pending).poll(&mut context) {
        Poll::Ready(answer) => answer.map(|(answer, _)| answer.reply.body),
        Poll::Pending => panic!("a later request is answered, and this one is not"),
    }
}

/// Each request has its own answer, and the last answer comes last.
async fn all_answered(mut pending: Vec<PendingAnswer>) {
    let last = pending.pop().expect("a request");
    assert!(in_time(last).await.is_ok());
    for (number, pending) in pending.into_iter().enumerate() {
        let path = format!("/{number}");
        let answer = at_once(pending);
        assert_eq!(answer.expect("a reply"), ReplyBody::Sync { path });
    }
}

/// Each request has an unknown outcome.
async fn all_broken(mut pending: Vec<PendingAnswer>) {
    let last = pending.pop().expect("a request");
    let mut answers = vec![in_time(last).await.map(|(answer, _)| answer.reply.body)];
    answers.extend(pending.into_iter().map(at_once));
    let is_broken = |answer: &_| matches!(answer, Err(RequestError::Broken(_)));
    assert!(answers.iter().all(is_broken));
}

fn assert_given_back(what: &str, before: isize) {
    let kept = live() - before;
    assert!(kept <= KEPT, "{what}: {kept} bytes are kept");
}

async fn requests_in_flight_give_their_memory_back(server: &Arc<Server>, connection: &Connection) {
    let before = live();
    server.answers_once_it_has(REQUESTS + 1);
    for _ in 0..3 {
        let mut pending = ask_all(connection);
        in_time(server.until_it_has(REQUESTS)).await;
        let taken = live() - before;
        assert!(taken <= EACH * REQUESTS as isize, "{taken} bytes in flight");
        pending.push(connection.request(sync(format!("/{REQUESTS}"))));
        all_answered(pending).await;
        assert_given_back("answered", before);
    }
    let pending = ask_all(connection);
    in_time(server.until_it_has(REQUESTS)).await;
    server.cut();
    all_broken(pending).await;
    assert_given_back("broken", before);
    server.answers_once_it_has(1);
    server.refuse(true);
    server.cut();
    until(connection, |state| !is_connected(state)).await;
    let pending = ask_all(connection);
    server.refuse(false);
    all_answered(pending).await;
    assert_given_back("answered over the next connection", before);
}

async fn futures_that_nobody_polls_take_their_own_answer_and_hold_up_nobody(
    connection: &Connection,
) {
    let before = live();
    let unpolled = connection.request(sync("/unpolled".to_owned()));
    let asked = connection.request(watched_read("/asked"));
    let (_, watch) = in_time(connection.request(watched_read("/watched")))
        .await
        .expect("a reply");
    for _ in 0..3 {
        all_answered(ask_all(connection)).await;
        for path in ["/asked", "/watched"] {
            let (path, data) = (path.to_owned(), None);
            let version = -1;
            let write = SetDataRequest {
                path,
                data,
                version,
            };
            let written = connection.request(RequestBody::SetData(write));
            assert!(in_time(written).await.is_ok());
        }
        assert_given_back("not polled", before);
    }
    assert!(at_once(unpolled).is_ok());
    let event = in_time(watch.expect("it is set")).await;
    assert_eq!(event, WatchEvent::Fired(EventType::NodeDataChanged));
    let (_, watch) = in_time(asked).await.expect("a reply");
    let event = in_time(watch.expect("it is set")).await;
    assert_eq!(event, WatchEvent::Fired(EventType::NodeDataChanged));
}

/// The buffers of the request before serve the next one.
async fn request_alone_takes_few_allocations(connection: &Connection) {
    /// Those of the test's server are counted, too.
    const EACH: usize = 6;
    let ask = || async {
        let path = "/one".to_owned();
        let answer = in_time(connection.request(sync(path))).await;
        assert!(answer.is_ok());
    };
    ask().await;
    let before = ALLOCATOR.stats().allocations;
    for _ in 0..REQUESTS {
        ask().await;
    }
    let allocations = ALLOCATOR.stats().allocations - before;
    // A ping may be among them.
    let most = EACH * REQUESTS + REQUESTS / 10;
    assert!(allocations <= most, "{allocations} for {REQUESTS} requests");
}

/// What callers ask is kept once, until the limit of silence.
async fn server_that_stops_reading_costs_what_was_asked(server: &Arc<Server>) {
    const LARGE: usize = 512 << 10;
    const NUMBER: usize = 80;
    let connection = spawn(server, Duration::from_secs(1));
    until(&connection, is_connected).await;
    let before = live();
    server.stop_reading(true);
    let mut pending: Vec<_> = (0..NUMBER)
        .map(|_| connection.request(sync("/".repeat(LARGE))))
        .collect();
    let taken = live() - before;
    // A buffer doubles when it grows.
    let most = (2 * NUMBER * LARGE) as isize + KEPT;
    assert!(taken <= most, "{taken} bytes for {NUMBER} x {LARGE}");
    let first = in_time(pending.remove(0)).await;
    let is_silent = matches!(
        first,
        Err(RequestError::Broken(DisconnectReason::Silent(_)))
    );
    assert!(is_silent, "{first:?}");
    all_broken(pending).await;
    assert_given_back("not read", before);
    server.stop_reading(false);
    in_time(connection.close()).await;
}

#[tokio::test]
async fn memory_of_a_session_is_bounded() {
    claims::check_claims();
    claims::check_events();
    let server = Arc::new(Server::default());
    let connection = spawn(&server, LONG);
    until(&connection, is_connected).await;
    let first = connection.request(sync("/first".to_owned()));
    assert!(in_time(first).await.is_ok());
    request_alone_takes_few_allocations(&connection).await;
    requests_in_flight_give_their_memory_back(&server, &connection).await;
    futures_that_nobody_polls_take_their_own_answer_and_hold_up_nobody(&connection).await;
    in_time(connection.close()).await;
    server_that_stops_reading_costs_what_was_asked(&server).await;
}
