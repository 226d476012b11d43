//! Listeners in front of a server: one that speaks TLS, and one that records.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// Speaks TLS, and forwards what is in it to a server that does not.
#[derive(Debug)]
pub struct Front {
    /// The port that it listens on.
    pub port: u16,
    shared: Arc<Shared>,
    /// Ends the listener and the connections when it is dropped.
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    behind: u16,
    config: Mutex<Arc<ServerConfig>>,
    /// The certificate of each client that came through.
    clients: Mutex<Vec<Option<CertificateDer<'static>>>>,
    /// The number of the connections that were cut.
    cut: watch::Sender<usize>,
    /// True while nothing is read from clients.
    deaf: watch::Sender<bool>,
    /// How many bytes go to a client at once.
    piece: usize,
}

impl Front {
    /// In front of the server on this port.
    pub async fn new(behind: u16, config: Arc<ServerConfig>) -> Front {
        Front::with(behind, config, usize::MAX).await
    }

    /// Sends the bytes within TLS in pieces of this length, each in a record of its own.
    pub async fn with(behind: u16, config: Arc<ServerConfig>, piece: usize) -> Front {
        let socket = TcpSocket::new_v4().expect("a socket");
        // Small, so that a client is soon kept from writing.
        socket.set_recv_buffer_size(4 << 10).expect("it is small");
        let address = "127.0.0.1:0".parse().expect("an address");
        socket.bind(address).expect("a free port");
        let listener = socket.listen(64).expect("it listens");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            behind,
            config: Mutex::new(config),
            clients: Mutex::default(),
            cut: watch::Sender::new(0),
            deaf: watch::Sender::new(false),
            piece,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, shared.clone()));
        Front {
            port,
            shared,
            _tasks: tasks,
        }
    }

    /// The address under a name that its certificate may be for.
    pub fn at(&self, host: &str) -> String {
        format!("{host}:{}", self.port)
    }

    /// Uses another certificate for the next connections.
    pub fn replace(&self, config: Arc<ServerConfig>) {
        *self.shared.config.lock().expect("no panic") = config;
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        self.shared.cut.send_modify(|cut| *cut += 1);
    }

    /// Reads nothing from clients until it is called with false.
    pub fn set_deaf(&self, deaf: bool) {
        self.shared.deaf.send_replace(deaf);
    }

    /// The certificates of the clients so far. None for a client that showed none.
    pub fn clients(&self) -> Vec<Option<CertificateDer<'static>>> {
        self.shared.clients.lock().expect("no panic").clone()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        connections.spawn(async move {
            let mut cut = shared.cut.subscribe();
            // An error ends this connection only.
            tokio::select! {
                _ = serve(stream, &shared) => {}
                _ = cut.changed() => {}
            }
        });
    }
}

async fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let config = shared.config.lock().expect("no panic").clone();
    let encrypted = TlsAcceptor::from(config).accept(stream).await?;
    let shown = encrypted.get_ref().1.peer_certificates();
    let shown = shown.and_then(|chain| chain.first()).cloned();
    let shown = shown.map(CertificateDer::into_owned);
    shared.clients.lock().expect("no panic").push(shown);
    let (from_client, to_client) = split(encrypted);
    let server = TcpStream::connect(("127.0.0.1", shared.behind)).await?;
    server.set_nodelay(true)?;
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        ended = forward(from_client, to_server, usize::MAX, Some(shared.deaf.subscribe()), |_| {}) => ended,
        ended = forward(from_server, to_client, shared.piece, None, |_| {}) => ended,
    }
}

/// Forwards in pieces of this length, while `deaf` is false. `record` hears what is forwarded.
async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    piece: usize,
    mut deaf: Option<watch::Receiver<bool>>,
    record: impl Fn(&[u8]),
) -> io::Result<()> {
    let mut bytes = vec![0; 4 << 10];
    loop {
        if let Some(deaf) = &mut deaf {
            let heard = deaf.wait_for(|deaf| !deaf).await;
            heard.map_err(io::Error::other)?;
        }
        let number = from.read(&mut bytes).await?;
        if number == 0 {
            return Ok(());
        }
        record(&bytes[..number]);
        for piece in bytes[..number].chunks(piece) {
            to.write_all(piece).await?;
            to.flush().await?;
        }
    }
}

/// What a [`Tap`] does after it has read something.
#[derive(Clone, Copy, Debug)]
pub enum After {
    /// Nothing.
    Silence,
    /// It closes the connection.
    Close,
    /// What a plain server answers: it closes, or says something that is not TLS.
    Answer(&'static [u8]),
    /// It forwards to the plain server on this port.
    Forward(u16),
}

/// Records what clients send.
#[derive(Debug)]
pub struct Tap {
    /// The port that it listens on.
    pub port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
    _tasks: JoinSet<()>,
}

impl Tap {
    /// Listens, and does this after it has read something.
    pub async fn new(after: After) -> Tap {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let heard = Arc::new(Mutex::default());
        let mut tasks = JoinSet::new();
        let record = heard.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let heard = Arc::clone(&record);
                connections.spawn(async move { drop(listen(stream, after, &heard).await) });
            }
        });
        Tap {
            port,
            heard,
            _tasks: tasks,
        }
    }

    /// All bytes of all clients.
    pub fn heard(&self) -> Vec<u8> {
        self.heard.lock().expect("no panic").clone()
    }

    /// Fails the test if a client sent anything but records of a handshake and alerts, which may be
    /// encrypted.
    ///
    /// Each client has to end its part with a whole record.
    pub fn assert_only_handshakes(&self) {
        let heard = self.heard();
        let mut bytes = heard.as_slice();
        while let [kind, 3, _, high, low, rest @ ..] = bytes {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            // TLS 1.3 sends a change of the cipher for show, and data of three bytes is an alert.
            let is_good = matches!((kind, length), (20, 1) | (21 | 22, _) | (23, 19));
            assert!(is_good, "a record of kind {kind} with {length} bytes");
            bytes = rest.get(length..).expect("a whole record");
        }
        assert!(bytes.is_empty(), "not a record of TLS: {bytes:?}");
    }
}

async fn listen(mut stream: TcpStream, after: After, heard: &Mutex<Vec<u8>>) -> io::Result<()> {
    let record = |bytes: &[u8]| heard.lock().expect("no panic").extend(bytes);
    if let After::Forward(port) = after {
        let server = TcpStream::connect(("127.0.0.1", port)).await?;
        let (from_server, to_server) = server.into_split();
        let (from_client, to_client) = stream.into_split();
        return tokio::select! {
            ended = forward(from_client, to_server, usize::MAX, None, record) => ended,
            ended = forward(from_server, to_client, usize::MAX, None, |_| {}) => ended,
        };
    }
    let mut bytes = vec![0; 64 << 10];
    loop {
        let number = stream.read(&mut bytes).await?;
        record(&bytes[..number]);
        match after {
            After::Answer(answer) if number > 0 => stream.write_all(answer).await?,
            After::Silence if number > 0 => {}
            _ => return Ok(()),
        }
    }
}
