//! The driver over streams in memory. The test has their other ends.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use zookeeper_recipes_connection::{
    Break, Config, Connecting, Connection, Network, RequestError, State, Stream,
};
use zookeeper_recipes_protocol::{OpCode, PathRequest, RequestBody};

use crate::model::{Ensemble, Served};
use crate::world::{config, create};

/// Longer than anything takes that does not hang.
const LONG: Duration = Duration::from_secs(30);
/// The least time between a break and the return.
const AWAY: Duration = Duration::from_secs(1);
/// How many bytes a stream takes that nobody reads.
const ROOM: usize = 1 << 10;

/// The host of each connection, and the server's end of its stream.
type Accepted = mpsc::UnboundedReceiver<(usize, DuplexStream)>;

/// Opens a stream in memory for each connection, unless the host refuses.
#[derive(Debug)]
struct Wires {
    began: Instant,
    opened: mpsc::UnboundedSender<(usize, DuplexStream)>,
    refusing: Mutex<BTreeSet<usize>>,
}

impl Wires {
    fn new() -> (Arc<Wires>, Accepted) {
        let (opened, accepted) = mpsc::unbounded_channel();
        let wires = Wires {
            began: Instant::now(),
            opened,
            refusing: Mutex::default(),
        };
        (Arc::new(wires), accepted)
    }

    /// A session whose driver runs.
    fn connect(self: &Arc<Wires>, config: Config) -> Connection {
        let (connection, driver) = Connection::new(self.clone(), config);
        tokio::spawn(driver);
        connection
    }
}

impl Network for Wires {
    fn connect(&self, host: usize, _within: Duration) -> Connecting {
        let result = if self.refusing.lock().unwrap().contains(&host) {
            Err(Break::Io(Arc::new(io::ErrorKind::ConnectionRefused.into())))
        } else {
            let (client, server) = duplex(ROOM);
            self.opened
                .send((host, server))
                .expect("the test accepts it");
            let client: Box<dyn Stream> = Box::new(client);
            Ok(client)
        };
        Box::pin(std::future::ready(result))
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
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
    async fn serve(&mut self, ensemble: &mut Ensemble) -> bool {
        let mut buffer = [0; ROOM];
        let number = self.stream.read(&mut buffer).await.expect("a stream");
        ensemble.receive(&mut self.served, &buffer[..number]);
        let bytes = std::mem::take(&mut self.served.to_client);
        let written = self.stream.write_all(&bytes).await;
        number > 0 && written.is_ok()
    }

    /// Serves until this is so.
    async fn until(&mut self, ensemble: &mut Ensemble, is_so: impl Fn(&Ensemble) -> bool) {
        while !is_so(ensemble) {
            let served = timeout(LONG, self.serve(ensemble)).await;
            assert!(served.expect("the client sends"), "the client has gone");
        }
    }

    /// Serves for this time, or until the client closes the connection.
    async fn serve_for(&mut self, ensemble: &mut Ensemble, time: Duration) {
        let all = async { while self.serve(ensemble).await {} };
        // A healthy connection lasts longer.
        let _: Result<(), _> = timeout(time, all).await;
    }
}

fn number_of(connection: &Connection) -> Option<u64> {
    match connection.state() {
        State::Connected { connection, .. } => Some(connection),
        State::Disconnected { .. } | State::Ended(_) => None,
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_a_broken_connection_did_not_take_are_not_sent_over_the_next_one() {
    let (wires, mut accepted) = Wires::new();
    let connection = wires.connect(config(1));
    let mut ensemble = Ensemble::default();
    let (_, stream) = accepted.recv().await.expect("it connects");
    let mut first = Member::new(stream);
    first.serve(&mut ensemble).await;
    let long = "/".repeat(4 * ROOM);
    let pending = connection.request(create(&long));
    // The stream takes the first quarter.
    let mut buffer = [0; ROOM];
    let read = first.stream.read(&mut buffer).await;
    assert_eq!(read.expect("a stream"), ROOM);
    drop(first);
    let reply = timeout(LONG, pending).await.expect("it does not hang");
    assert!(matches!(reply, Err(RequestError::Broken(_))), "{reply:?}");
    let (_, stream) = accepted.recv().await.expect("it connects again");
    let mut second = Member::new(stream);
    second
        .until(&mut ensemble, |ensemble| ensemble.handshakes.len() == 2)
        .await;
    let mut states = connection.states();
    let connected = states.wait_for(|state| matches!(state, State::Connected { .. }));
    timeout(LONG, connected)
        .await
        .expect("the handshake is whole")
        .expect("a driver");
}

/// A session that has lost the first of its hosts, is at another one, and has opened a connection to
/// the lost one beside.
struct Returning {
    connection: Connection,
    accepted: Accepted,
    ensemble: Ensemble,
    lost: usize,
    present: Member,
    beside: Member,
}

/// `waits_for_a_reply`: the session cannot move until it comes.
async fn returning(hosts: usize, waits_for_a_reply: bool) -> Returning {
    let (wires, mut accepted) = Wires::new();
    let config = Config {
        return_after: Some(AWAY),
        ..config(hosts)
    };
    let connection = wires.connect(config);
    let mut ensemble = Ensemble::default();
    let (lost, stream) = accepted.recv().await.expect("it connects");
    Member::new(stream).serve(&mut ensemble).await;
    wires.refusing.lock().unwrap().insert(lost);
    let (other, stream) = accepted.recv().await.expect("it connects elsewhere");
    assert_ne!(other, lost);
    let mut present = Member::new(stream);
    present
        .until(&mut ensemble, |ensemble| ensemble.handshakes.len() == 2)
        .await;
    wires.refusing.lock().unwrap().clear();
    if waits_for_a_reply {
        ensemble.conduct.mute = vec![OpCode::Sync];
        let path = "/".to_owned();
        drop(connection.request(RequestBody::Sync(PathRequest { path })));
    }
    let looked = loop {
        tokio::select! {
            biased;
            looked = accepted.recv() => break looked,
            _ = present.serve(&mut ensemble) => {}
        }
    };
    let (host, stream) = looked.expect("it looks for the lost host");
    assert_eq!(host, lost);
    Returning {
        connection,
        accepted,
        ensemble,
        lost,
        present,
        beside: Member::new(stream),
    }
}

#[tokio::test(start_paused = true)]
async fn session_returns_over_the_connection_that_it_has_opened_to_look() {
    let mut it = returning(3, false).await;
    let before = number_of(&it.connection);
    it.present.serve_for(&mut it.ensemble, AWAY).await;
    it.beside.serve_for(&mut it.ensemble, 10 * AWAY).await;
    assert!(number_of(&it.connection) > before);
    assert!(it.accepted.try_recv().is_err(), "another connection");
}

/// Breaks the connection at a moment at which one is open beside it.
///
/// The session waits for a reply that does not come, so it has not moved yet. The result is the next
/// connection, if it is another than the open one.
async fn breaks_before_it_moves(hosts: usize) -> (Returning, Option<(usize, Member)>) {
    let mut it = returning(hosts, true).await;
    it.present = Member::new(duplex(1).0);
    let next = tokio::select! {
        biased;
        next = it.accepted.recv() => next,
        _ = it.beside.serve(&mut it.ensemble) => None,
    };
    (it, next.map(|(host, stream)| (host, Member::new(stream))))
}

#[tokio::test(start_paused = true)]
async fn connection_that_was_opened_to_look_is_used_at_a_break() {
    let (mut it, next) = breaks_before_it_moves(2).await;
    assert!(next.is_none(), "the lost host has an open connection");
    it.beside.serve_for(&mut it.ensemble, 10 * AWAY).await;
    assert!(number_of(&it.connection).is_some());
    assert!(
        it.accepted.try_recv().is_err(),
        "it is at the host that it had lost"
    );
}

#[tokio::test(start_paused = true)]
async fn connection_that_was_opened_to_look_serves_no_other_host() {
    let (mut it, next) = breaks_before_it_moves(3).await;
    let (host, mut next) = next.expect("the host that was tried least lately is the next one");
    assert_ne!(host, it.lost);
    next.serve_for(&mut it.ensemble, AWAY / 2).await;
    assert!(number_of(&it.connection).is_some());
    assert!(
        !it.beside.serve(&mut it.ensemble).await,
        "the open one is closed"
    );
}

#[tokio::test(start_paused = true)]
async fn connection_that_opened_the_session_is_known_by_its_number() {
    let (wires, mut accepted) = Wires::new();
    let connection = wires.connect(config(1));
    let mut ensemble = Ensemble::default();
    // The first one breaks before the server has answered.
    drop(accepted.recv().await.expect("it connects"));
    for handshakes in 1..=2 {
        let (_, stream) = accepted.recv().await.expect("it connects again");
        assert_eq!(connection.opened_over().is_some(), handshakes > 1);
        let mut member = Member::new(stream);
        member.serve_for(&mut ensemble, AWAY / 10).await;
        assert_eq!(ensemble.handshakes.len(), handshakes);
        let opened_over = connection.opened_over();
        assert_eq!(opened_over == number_of(&connection), handshakes == 1);
        assert!(opened_over > Some(1), "{opened_over:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn session_that_leaves_its_server_connects_to_another() {
    let (wires, mut accepted) = Wires::new();
    let connection = wires.connect(config(2));
    let mut ensemble = Ensemble::default();
    let (first, stream) = accepted.recv().await.expect("it connects");
    let mut member = Member::new(stream);
    member.serve_for(&mut ensemble, AWAY / 10).await;
    let before = number_of(&connection);
    connection.leave_server();
    // A silence of the server would be a reason later.
    let at_once = timeout(AWAY / 10, accepted.recv()).await;
    let (second, stream) = at_once.expect("it leaves").expect("a driver");
    assert_ne!(first, second);
    Member::new(stream)
        .serve_for(&mut ensemble, AWAY / 10)
        .await;
    assert!(number_of(&connection) > before && before.is_some());
}
