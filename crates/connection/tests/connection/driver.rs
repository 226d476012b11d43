//! The driver over streams in memory. The test has their other ends.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, advance, timeout};
use zookeeper_recipes_connection::{
    Config, Connecting, Connection, Host, Network, RequestError, State, Stream,
};

use crate::model::{Ensemble, Served};
use crate::world::{T, config, create};

/// Longer than anything takes that does not hang.
const LONG: Duration = Duration::from_secs(30);
/// Long enough for an exchange with a server that answers.
const MOMENT: Duration = Duration::from_millis(100);
/// How many bytes a stream takes that nobody reads.
const ROOM: usize = 1 << 10;

/// The address of each connection, and the server's end of its stream.
type Accepted = mpsc::UnboundedReceiver<(SocketAddr, DuplexStream)>;

/// Opens a stream in memory for each connection.
#[derive(Debug)]
struct Wires {
    began: Instant,
    opened: mpsc::UnboundedSender<(SocketAddr, DuplexStream)>,
    /// The client's end of a stream.
    client: fn(DuplexStream) -> Box<dyn Stream>,
}

impl Wires {
    fn new() -> (Arc<Wires>, Accepted) {
        Wires::with(|stream| Box::new(stream))
    }

    fn with(client: fn(DuplexStream) -> Box<dyn Stream>) -> (Arc<Wires>, Accepted) {
        let (opened, accepted) = mpsc::unbounded_channel();
        let wires = Wires {
            began: Instant::now(),
            opened,
            client,
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
    fn connect(&self, _: &Host, host: SocketAddr, _within: Duration) -> Connecting {
        let (client, server) = duplex(ROOM);
        let opened = self.opened.send((host, server));
        opened.expect("the test accepts it");
        Box::pin(std::future::ready(Ok((self.client)(client))))
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
    // The handshake and a ping.
    for _ in 0..2 {
        first.serve(&mut ensemble).await;
    }
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

/// A stream that keeps what is written until the third flush, as one of TLS keeps it if the socket is
/// full.
struct Keeping {
    stream: DuplexStream,
    kept: Vec<u8>,
    flushes: u32,
}

impl AsyncRead for Keeping {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Keeping {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.kept.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.flushes += 1;
        if this.flushes % 3 != 0 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let written = Pin::new(&mut this.stream).poll_write(context, &this.kept);
        assert!(matches!(written, Poll::Ready(Ok(number)) if number == this.kept.len()));
        this.kept.clear();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[tokio::test(start_paused = true)]
async fn written_bytes_are_flushed_until_the_stream_keeps_none() {
    let (wires, mut accepted) = Wires::with(|stream| {
        Box::new(Keeping {
            stream,
            kept: Vec::new(),
            flushes: 0,
        })
    });
    let connection = wires.connect(config(1));
    let mut ensemble = Ensemble::default();
    let (_, stream) = accepted.recv().await.expect("it connects");
    let mut member = Member::new(stream);
    for round in 0..3 {
        let path = format!("/{round}");
        let pending = connection.request(create(&path));
        let arrived = |ensemble: &Ensemble| ensemble.created.contains_key(&path);
        member.until(&mut ensemble, arrived).await;
        let reply = timeout(LONG, pending).await.expect("it does not hang");
        assert!(reply.is_ok(), "{reply:?}");
    }
    assert_eq!(ensemble.handshakes.len(), 1);
}

/// The bytes wait for the process, and all limits have passed when it runs again.
#[tokio::test(start_paused = true)]
async fn answers_that_arrived_before_a_pause_of_the_process_keep_the_connection() {
    let (wires, mut accepted) = Wires::new();
    let connection = wires.connect(config(2));
    let mut ensemble = Ensemble::default();
    let (_, stream) = accepted.recv().await.expect("it connects");
    let mut member = Member::new(stream);
    let handshake = |ensemble: &Ensemble| ensemble.handshakes.len() == 1;
    member.until(&mut ensemble, handshake).await;
    advance(T).await;
    member.serve_for(&mut ensemble, MOMENT).await;
    assert!(number_of(&connection).is_some(), "{:?}", connection.state());
    let pending = connection.request(create("/a"));
    let created = |ensemble: &Ensemble| ensemble.created.contains_key("/a");
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
    let (wires, mut accepted) = Wires::new();
    let connection = wires.connect(config(1));
    let mut ensemble = Ensemble::default();
    // The first one breaks before the server has answered.
    drop(accepted.recv().await.expect("it connects"));
    for handshakes in 1..=2 {
        let (_, stream) = accepted.recv().await.expect("it connects again");
        assert_eq!(connection.opened_over().is_some(), handshakes > 1);
        let mut member = Member::new(stream);
        member.serve_for(&mut ensemble, MOMENT).await;
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
    member.serve_for(&mut ensemble, MOMENT).await;
    let before = number_of(&connection);
    connection.leave_server();
    // A silence of the server would be a reason later.
    let at_once = timeout(MOMENT, accepted.recv()).await;
    let (second, stream) = at_once.expect("it leaves").expect("a driver");
    assert_ne!(first, second);
    Member::new(stream).serve_for(&mut ensemble, MOMENT).await;
    assert!(number_of(&connection) > before && before.is_some());
}
