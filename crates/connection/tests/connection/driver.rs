//! The driver, over streams in memory of which the test has the other ends.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, advance, timeout};
use zookeeper_recipes_connection::{
    Connecting, Connection, ConnectionState, Driver, Host, Network, RequestError, SessionEnd,
    Stream,
};
use zookeeper_recipes_protocol::{ErrorCode, EventType, OpCode, ReadRequest, Reply, RequestBody};

use crate::peer::{Ensemble, Served, event};
use crate::world::{T, config, create};

/// Longer than anything takes that does not hang.
const LONG: Duration = Duration::from_secs(30);
/// Long enough for an exchange with a server that answers.
const MOMENT: Duration = Duration::from_millis(100);
/// How many bytes a stream takes that nobody reads.
const ROOM: usize = 1 << 10;

/// The server's ends of the streams, in the order of the connections.
type Accepted = mpsc::UnboundedReceiver<DuplexStream>;

/// Opens a stream in memory for each connection.
#[derive(Debug)]
struct Wires {
    began: Instant,
    opened: mpsc::UnboundedSender<DuplexStream>,
    /// The client's end of a stream.
    client: fn(DuplexStream) -> Box<dyn Stream>,
}

impl Network for Wires {
    fn connect(&self, _: &Host, _: SocketAddr, _: Duration) -> Connecting {
        let (client, server) = duplex(ROOM);
        self.opened.send(server).expect("the test accepts it");
        Box::pin(std::future::ready(Ok((self.client)(client))))
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

fn wires(client: fn(DuplexStream) -> Box<dyn Stream>) -> (Connection, Driver, Accepted) {
    let (opened, accepted) = mpsc::unbounded_channel();
    let began = Instant::now();
    let wires = Wires {
        began,
        opened,
        client,
    };
    let (connection, driver) = Connection::new(Arc::new(wires), config(2));
    (connection, driver, accepted)
}

/// A session whose driver runs.
fn connect() -> (Connection, Accepted) {
    let (connection, driver, accepted) = wires(|stream| Box::new(stream));
    tokio::spawn(driver);
    (connection, accepted)
}

/// A session whose driver does not run yet. A task serves its connections.
fn served() -> (Connection, Driver, Arc<Mutex<Ensemble>>) {
    let (connection, driver, mut accepted) = wires(|stream| Box::new(stream));
    let ensemble = Arc::<Mutex<Ensemble>>::default();
    let shared = ensemble.clone();
    tokio::spawn(async move {
        while let Some(stream) = accepted.recv().await {
            let mut member = Member::new(stream);
            while member
                .serve_with(|served, bytes| {
                    let mut ensemble = shared.lock().expect("no panic");
                    ensemble.receive(served, bytes);
                })
                .await
            {}
        }
    });
    (connection, driver, ensemble)
}

/// A connection of the ensemble.
struct Member {
    stream: DuplexStream,
    served: Served,
}

impl Member {
    fn new(stream: DuplexStream) -> Member {
        let served = Served::new();
        Member { stream, served }
    }

    /// Reads once, and answers. False at the end of the stream.
    async fn serve_with(&mut self, answer: impl FnOnce(&mut Served, &[u8])) -> bool {
        let mut buffer = [0; ROOM];
        let number = self.stream.read(&mut buffer).await.expect("a stream");
        answer(&mut self.served, &buffer[..number]);
        let bytes = std::mem::take(&mut self.served.to_client);
        let written = self.stream.write_all(&bytes).await;
        number > 0 && written.is_ok() && !self.served.closed
    }

    /// Serves until this is so.
    async fn until(&mut self, ensemble: &mut Ensemble, is_so: impl Fn(&Ensemble) -> bool) {
        while !is_so(ensemble) {
            let serving = self.serve_with(|served, bytes| ensemble.receive(served, bytes));
            assert!(in_time(serving).await, "the client has gone");
        }
    }

    /// Serves for this time, or until the client closes the connection.
    async fn serve_for(&mut self, ensemble: &mut Ensemble, time: Duration) {
        let all = async {
            while self
                .serve_with(|served, bytes| ensemble.receive(served, bytes))
                .await
            {}
        };
        // A healthy connection lasts longer.
        let _: Result<(), _> = timeout(time, all).await;
    }
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    timeout(LONG, work).await.expect("it does not hang")
}

fn number_of(connection: &Connection) -> Option<u64> {
    match connection.state() {
        ConnectionState::Connected { connection, .. } => Some(connection),
        ConnectionState::Disconnected { .. } | ConnectionState::Ended(_) => None,
    }
}

async fn connected(connection: &Connection) {
    let mut states = connection.states();
    let connected = states.wait_for(|state| matches!(state, ConnectionState::Connected { .. }));
    drop(in_time(connected).await.expect("a driver"));
}

async fn created(connection: &Connection, path: &str) -> Result<ErrorCode, RequestError> {
    let pending = connection.request(create(path));
    let reply = in_time(pending).await;
    reply.map(|(answer, _)| answer.reply.header.error)
}

#[tokio::test(start_paused = true)]
async fn bytes_that_a_broken_connection_did_not_take_are_not_sent_over_the_next_one() {
    let (connection, mut accepted) = connect();
    let mut ensemble = Ensemble::default();
    let mut first = Member::new(accepted.recv().await.expect("it connects"));
    first.serve_for(&mut ensemble, MOMENT).await;
    let pending = connection.request(create(&"/".repeat(4 * ROOM)));
    // The stream takes the first quarter.
    let read = first.stream.read(&mut [0; ROOM]).await;
    assert_eq!(read.expect("a stream"), ROOM);
    drop(first);
    let reply = in_time(pending).await;
    assert_matches!(reply, Err(RequestError::Broken(_)));
    let mut second = Member::new(accepted.recv().await.expect("it connects again"));
    let greeted = |ensemble: &Ensemble| ensemble.handshakes.len() == 2;
    second.until(&mut ensemble, greeted).await;
    connected(&connection).await;
}

/// As of a stream of TLS, whose socket is full.
#[tokio::test(start_paused = true)]
async fn written_bytes_are_flushed_until_the_stream_keeps_none() {
    let (connection, driver, mut accepted) = wires(|stream| Box::new(BufStream::new(stream)));
    tokio::spawn(driver);
    let mut ensemble = Ensemble::default();
    let mut member = Member::new(accepted.recv().await.expect("it connects"));
    for round in 0..3 {
        let path = format!("/{}{round}", "x".repeat(3 * ROOM));
        let pending = connection.request(create(&path));
        let arrived = |ensemble: &Ensemble| ensemble.created(&path) == 1;
        member.until(&mut ensemble, arrived).await;
        let reply = in_time(pending).await;
        assert!(reply.is_ok(), "{reply:?}");
    }
    assert_eq!(ensemble.handshakes.len(), 1);
}

/// The bytes wait for the process, and all limits have passed when it runs again.
#[tokio::test(start_paused = true)]
async fn answers_that_arrived_before_a_pause_of_the_process_keep_the_connection() {
    let (connection, mut accepted) = connect();
    let mut ensemble = Ensemble::default();
    let mut member = Member::new(accepted.recv().await.expect("it connects"));
    let handshake = |ensemble: &Ensemble| ensemble.handshakes.len() == 1;
    member.until(&mut ensemble, handshake).await;
    advance(T).await;
    member.serve_for(&mut ensemble, MOMENT).await;
    assert!(number_of(&connection).is_some(), "{:?}", connection.state());
    let pending = connection.request(create("/a"));
    let created = |ensemble: &Ensemble| ensemble.created("/a") == 1;
    member.until(&mut ensemble, created).await;
    advance(T).await;
    let reply = timeout(MOMENT, pending).await.expect("it is there");
    assert!(reply.is_ok(), "{reply:?}");
    ensemble.requests.clear();
    let pinged = |ensemble: &Ensemble| !ensemble.requests.is_empty();
    member.until(&mut ensemble, pinged).await;
    advance(T).await;
    member.serve_for(&mut ensemble, MOMENT).await;
    assert!(number_of(&connection).is_some(), "{:?}", connection.state());
    assert_eq!(ensemble.handshakes.len(), 1);
    assert!(accepted.try_recv().is_err(), "another connection");
}

#[tokio::test(start_paused = true)]
async fn connection_that_opened_the_session_is_known_by_its_number() {
    let (connection, mut accepted) = connect();
    let mut ensemble = Ensemble::default();
    // The first one breaks before the server has answered.
    drop(accepted.recv().await.expect("it connects"));
    for handshakes in 1..=2 {
        let mut member = Member::new(accepted.recv().await.expect("it connects again"));
        assert_eq!(connection.opened_over().is_some(), handshakes > 1);
        member.serve_for(&mut ensemble, MOMENT).await;
        assert_eq!(ensemble.handshakes.len(), handshakes);
        let opened_over = connection.opened_over();
        assert_eq!(opened_over == number_of(&connection), handshakes == 1);
        assert!(opened_over > Some(1), "{opened_over:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_before_the_task_yields_go_out_in_one_write() {
    let (connection, mut accepted) = connect();
    let mut ensemble = Ensemble::default();
    let mut member = Member::new(accepted.recv().await.expect("it connects"));
    member.serve_for(&mut ensemble, MOMENT).await;
    let pending: Vec<_> = (0..10)
        .map(|number| connection.request(create(&format!("/{number}"))))
        .collect();
    let serving = member.serve_with(|served, bytes| ensemble.receive(served, bytes));
    assert!(timeout(LONG, serving).await.expect("they are sent"));
    for reply in pending {
        assert!(timeout(MOMENT, reply).await.expect("an answer").is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_futures_leave_the_session_as_it_is() {
    let (connection, driver, ensemble) = served();
    tokio::spawn(driver);
    // Before the driver runs, before the reply, and after it.
    drop(connection.request(create("/a")));
    drop(connection.request(RequestBody::GetData(ReadRequest::new("/", true))));
    assert_eq!(created(&connection, "/y").await.unwrap(), ErrorCode::Ok);
    for polls in 0..4 {
        let pending = connection.request(create(&format!("/{polls}")));
        let watch = connection.request(RequestBody::GetChildren(ReadRequest::new("/", true)));
        let dropped = async {
            for _ in 0..polls {
                yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = dropped => {}
            _ = async { (pending.await, watch.await) } => {}
        }
    }
    assert_eq!(created(&connection, "/z").await.unwrap(), ErrorCode::Ok);
    for path in ["/a", "/0", "/1", "/2", "/3"] {
        assert_eq!(
            created(&connection, path).await.unwrap(),
            ErrorCode::NodeExists
        );
    }
    let requests = ensemble.lock().expect("no panic").requests.clone();
    let has = |opcode| requests.iter().any(|it| it.body.opcode() == opcode);
    assert!(has(OpCode::RemoveWatches) && !has(OpCode::GetData));
    {
        let mut close = pin!(connection.close());
        let once = std::future::poll_fn(|context| Poll::Ready(close.as_mut().poll(context)));
        assert!(once.await.is_pending());
    }
    let mut states = connection.states();
    let ended = states.wait_for(|state| *state == ConnectionState::Ended(SessionEnd::Closed));
    drop(in_time(ended).await);
    assert!(ensemble.lock().expect("no panic").sessions.is_empty());
}

#[tokio::test(start_paused = true)]
async fn last_handle_that_is_dropped_closes_the_session_and_ends_the_driver() {
    let (connection, driver, ensemble) = served();
    let driver = tokio::spawn(driver);
    connected(&connection).await;
    let pending = connection.request(create("/a"));
    let states = connection.states();
    drop(connection);
    let reply = in_time(pending).await;
    assert!(reply.is_ok());
    let ended = timeout(LONG, driver).await.expect("it ends");
    ended.expect("without a panic");
    assert_eq!(*states.borrow(), ConnectionState::Ended(SessionEnd::Closed));
    assert!(ensemble.lock().expect("no panic").sessions.is_empty());
}

#[tokio::test(start_paused = true)]
async fn driver_that_is_dropped_ends_the_session_for_its_callers() {
    let (connection, driver, ensemble) = served();
    let driver = tokio::spawn(driver);
    connected(&connection).await;
    ensemble.lock().expect("no panic").conduct.mute = vec![OpCode::Create];
    let pending = connection.request(create("/a"));
    driver.abort();
    let reply = in_time(pending).await;
    assert_matches!(reply, Err(RequestError::Ended(SessionEnd::Closed)));
    assert!(created(&connection, "/b").await.is_err());
    assert_eq!(
        timeout(LONG, connection.close()).await,
        Ok(SessionEnd::Closed)
    );
}

#[tokio::test(start_paused = true)]
async fn session_that_is_over_answers_although_its_driver_was_not_dropped() {
    let (connection, mut driver, _ensemble) = served();
    let close = async {
        connected(&connection).await;
        connection.close().await
    };
    let both = timeout(LONG, async { tokio::join!(close, &mut driver) }).await;
    assert_eq!(both.expect("an end").0, SessionEnd::Closed);
    let refused = created(&connection, "/a").await;
    assert_matches!(refused, Err(RequestError::Ended(SessionEnd::Closed)));
    drop(driver);
}

#[tokio::test(start_paused = true)]
async fn flood_of_a_server_does_not_starve_the_runtime() {
    let (connection, mut accepted) = connect();
    let mut member = Member::new(accepted.recv().await.expect("it connects"));
    member.serve_for(&mut Ensemble::default(), MOMENT).await;
    connected(&connection).await;
    let mut bytes = Vec::new();
    let event = Reply::notification(event("/", EventType::NodeCreated));
    (0..4000).for_each(|_| event.encode_frame(&mut bytes));
    tokio::spawn(async move { while member.stream.write_all(&bytes).await.is_ok() {} });
    // One thread runs the flood, the driver and this task.
    for _ in 0..200 {
        yield_now().await;
    }
    let pending = connection.request(RequestBody::WhoAmI);
    drop(connection);
    // The clock does not move while there is something to do.
    let is_answered = async {
        let mut pending = pin!(pending);
        loop {
            tokio::select! {
                biased;
                reply = &mut pending => return reply,
                () = advance(MOMENT) => {}
            }
        }
    };
    assert!(is_answered.await.is_err(), "the limits hold");
}
