//! The driver over TCP, against the model in threads.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use zookeeper_recipes_connection::{
    Break, Config, Connecting, Connection, Driver, End, Host, LookingUp, Network, RequestError,
    State, Tcp, WatchedRead,
};
use zookeeper_recipes_protocol::{ErrorCode, EventType, OpCode, RequestBody};

use crate::model::{Ensemble, Served};
use crate::world::{config, create};

/// Longer than anything takes that does not hang.
const LONG: Duration = Duration::from_secs(30);

/// The model behind a listener. Each connection has a thread.
struct Server {
    ensemble: Arc<Mutex<Ensemble>>,
    /// How many bytes each read yielded.
    reads: Arc<Mutex<Vec<usize>>>,
    host: Host,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let mut ensemble = Ensemble::default();
        ensemble.znodes.insert("/".to_owned(), Default::default());
        let server = Server {
            ensemble: Arc::new(Mutex::new(ensemble)),
            reads: Arc::default(),
            host: host(
                "127.0.0.1",
                listener.local_addr().expect("an address").port(),
            ),
        };
        let (ensemble, reads) = (server.ensemble.clone(), server.reads.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                let (ensemble, reads) = (ensemble.clone(), reads.clone());
                std::thread::spawn(move || serve(stream, &ensemble, &reads));
            }
        });
        server
    }

    fn ensemble<T>(&self, act: impl FnOnce(&mut Ensemble) -> T) -> T {
        act(&mut self.ensemble.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn serve(mut stream: TcpStream, ensemble: &Mutex<Ensemble>, reads: &Mutex<Vec<usize>>) {
    let mut served = Served::new();
    let mut buffer = vec![0; 1 << 20];
    while let Ok(number @ 1..) = stream.read(&mut buffer) {
        reads.lock().unwrap().push(number);
        ensemble
            .lock()
            .unwrap()
            .receive(&mut served, &buffer[..number]);
        let bytes = std::mem::take(&mut served.to_client);
        if stream.write_all(&bytes).is_err() || served.closed {
            break;
        }
    }
    // The client may have gone.
    let _ = stream.shutdown(Shutdown::Both);
}

/// Accepts a connection, and serves it until the session is up.
fn accept(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().unwrap();
    let mut ensemble = Ensemble::default();
    let (mut served, mut buffer) = (Served::new(), [0; 1024]);
    // The handshake and a ping.
    for _ in 0..2 {
        let number = stream.read(&mut buffer).unwrap();
        ensemble.receive(&mut served, &buffer[..number]);
        let bytes = std::mem::take(&mut served.to_client);
        stream.write_all(&bytes).unwrap();
    }
    stream
}

fn host(name: &str, port: u16) -> Host {
    let name = name.to_owned();
    Host { name, port }
}

fn new(hosts: Vec<Host>, session_timeout: Duration) -> (Connection, Driver) {
    let config = Config {
        hosts,
        session_timeout,
        ..config(0)
    };
    Connection::new(Arc::new(Tcp::new()), config)
}

fn spawn(hosts: Vec<Host>, session_timeout: Duration) -> Connection {
    let (connection, driver) = new(hosts, session_timeout);
    tokio::spawn(driver);
    connection
}

const T: Duration = Duration::from_secs(4);

async fn reaches(connection: &Connection, is_so: impl Fn(&Connection) -> bool) {
    let mut states = connection.states();
    let reached = async {
        while !is_so(connection) {
            states.changed().await.expect("a driver");
        }
    };
    timeout(LONG, reached).await.expect("it does not hang");
}

async fn connected(connection: &Connection) {
    reaches(connection, |connection| {
        matches!(connection.state(), State::Connected { .. })
    })
    .await;
}

async fn created(connection: &Connection, path: &str) -> Result<ErrorCode, RequestError> {
    let pending = connection.request(create(path));
    let reply = timeout(LONG, pending).await.expect("it does not hang");
    reply.map(|answer| answer.reply.header.error)
}

#[tokio::test]
async fn session_is_opened_used_and_closed() {
    let server = Server::start();
    let connection = spawn(vec![server.host.clone()], T);
    assert_eq!(created(&connection, "/a").await.unwrap(), ErrorCode::Ok);
    assert_eq!(
        created(&connection, "/a").await.unwrap(),
        ErrorCode::NodeExists
    );
    assert_eq!(timeout(LONG, connection.close()).await, Ok(End::Closed));
    assert!(server.ensemble(|ensemble| ensemble.sessions.is_empty()));
    assert!(matches!(
        created(&connection, "/b").await,
        Err(RequestError::Ended(End::Closed))
    ));
}

#[tokio::test]
async fn requests_before_the_task_yields_go_out_in_one_write() {
    let server = Server::start();
    let connection = spawn(vec![server.host.clone()], T);
    connected(&connection).await;
    server.reads.lock().unwrap().clear();
    let pending: Vec<_> = (0..100)
        .map(|number| connection.request(create(&format!("/{number}"))))
        .collect();
    for reply in pending {
        timeout(LONG, reply)
            .await
            .expect("it does not hang")
            .unwrap();
    }
    assert_eq!(server.reads.lock().unwrap().len(), 1);
}

/// Counts the tries.
#[derive(Debug)]
struct Counted {
    tcp: Tcp,
    tries: watch::Sender<usize>,
}

impl Network for Counted {
    fn connect(&self, host: &Host, address: SocketAddr, within: Duration) -> Connecting {
        self.tries.send_modify(|tries| *tries += 1);
        self.tcp.connect(host, address, within)
    }

    fn look_up(&self, host: &Host) -> LookingUp {
        self.tries.send_modify(|tries| *tries += 1);
        self.tcp.look_up(host)
    }

    fn now(&self) -> Duration {
        self.tcp.now()
    }
}

/// The first host of this network cannot be used, and is tried with pauses.
async fn assert_no_burn(what: &'static str, host: Host, tcp: Tcp, cause: fn(&Break) -> bool) {
    const TRIES: usize = 25;
    let tries = watch::Sender::new(0);
    let mut tried = tries.subscribe();
    let config = Config {
        hosts: vec![host],
        session_timeout: Duration::from_secs(1),
        ..config(0)
    };
    let (connection, driver) = Connection::new(Arc::new(Counted { tcp, tries }), config);
    tokio::spawn(driver);
    let since = Instant::now();
    let enough = tried.wait_for(|tries| *tries == TRIES);
    timeout(2 * LONG, enough)
        .await
        .expect("it tries")
        .expect("a driver");
    let took = since.elapsed();
    // A pause is half of its limit on average. The limits are 100 ms, then a sixth of T.
    assert!(
        took >= Duration::from_secs(1),
        "{what}: {TRIES} tries in {took:?}"
    );
    let obstacles = connection.obstacles();
    assert!(cause(&obstacles[0].cause), "{what}: {obstacles:?}");
}

#[tokio::test]
async fn host_that_cannot_be_reached_is_tried_with_pauses() {
    let closed = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = closed.local_addr().expect("an address").port();
    drop(closed);
    let mut checks = JoinSet::new();
    type IsCause = fn(&Break) -> bool;
    let hosts: [(&str, u16, IsCause); 3] = [
        ("127.0.0.1", port, |it| matches!(it, Break::Io(_))),
        ("no-such-name.invalid", 2181, |it| {
            matches!(it, Break::NoAddress(_))
        }),
        // An address for documentation.
        ("192.0.2.1", 2181, |it| {
            matches!(it, Break::Io(_) | Break::NotConnected(_))
        }),
    ];
    for (name, port, cause) in hosts {
        checks.spawn(assert_no_burn(name, host(name, port), Tcp::new(), cause));
    }
    checks.join_all().await;
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn host_that_does_not_speak_tls_is_tried_with_pauses() {
    use zookeeper_recipes_connection::TlsOptions;

    let root = rcgen::generate_simple_self_signed(["zk".to_owned()]).expect("a certificate");
    let options = TlsOptions::new().roots(root.cert.pem().as_bytes());
    for answer in [&b""[..], b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let plain = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = plain.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            for stream in plain.incoming() {
                let mut stream = stream.expect("a connection");
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(answer);
            }
        });
        let tcp = Tcp::new().encrypted(options.clone());
        let tcp = tcp.expect("good options");
        assert_no_burn("no TLS", host("127.0.0.1", port), tcp, |_| true).await;
    }
}

#[tokio::test]
async fn dropped_futures_leave_the_session_as_it_is() {
    let server = Server::start();
    let connection = spawn(vec![server.host.clone()], T);
    // Before the driver runs, before the reply, and after it.
    drop(connection.request(create("/a")));
    drop(connection.watch(WatchedRead::Data, "/"));
    assert_eq!(created(&connection, "/y").await.unwrap(), ErrorCode::Ok);
    for polls in 0..4 {
        let pending = connection.request(create(&format!("/{polls}")));
        let watch = connection.watch(WatchedRead::Children, "/");
        let dropped = async {
            for _ in 0..polls {
                tokio::task::yield_now().await;
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
    let kinds = server.ensemble(|ensemble| {
        let kinds = ensemble
            .requests
            .iter()
            .map(|request| request.body.opcode());
        kinds.collect::<Vec<_>>()
    });
    assert!(kinds.contains(&OpCode::RemoveWatches), "{kinds:?}");
    assert!(!kinds.contains(&OpCode::GetData), "{kinds:?}");
    {
        let mut close = std::pin::pin!(connection.close());
        let once = std::future::poll_fn(|context| {
            let _ = close.as_mut().poll(context);
            std::task::Poll::Ready(())
        });
        once.await;
    }
    reaches(&connection, |connection| {
        connection.state() == State::Ended(End::Closed)
    })
    .await;
    assert!(server.ensemble(|ensemble| ensemble.sessions.is_empty()));
}

#[tokio::test]
async fn last_handle_that_is_dropped_closes_the_session_and_ends_the_driver() {
    let server = Server::start();
    let (connection, driver) = new(vec![server.host.clone()], T);
    let driver = tokio::spawn(driver);
    connected(&connection).await;
    let pending = connection.request(create("/a"));
    let states = connection.states();
    drop(connection);
    assert!(
        timeout(LONG, pending)
            .await
            .expect("it does not hang")
            .is_ok()
    );
    timeout(LONG, driver)
        .await
        .expect("it ends")
        .expect("without a panic");
    assert_eq!(*states.borrow(), State::Ended(End::Closed));
    assert!(server.ensemble(|ensemble| ensemble.sessions.is_empty()));
}

#[tokio::test]
async fn driver_that_is_dropped_ends_the_session_for_its_callers() {
    let server = Server::start();
    let (connection, driver) = new(vec![server.host.clone()], T);
    let driver = tokio::spawn(driver);
    connected(&connection).await;
    server.ensemble(|ensemble| ensemble.conduct.mute = vec![OpCode::Create]);
    let pending = connection.request(create("/a"));
    driver.abort();
    let reply = timeout(LONG, pending).await.expect("it does not hang");
    assert!(matches!(reply, Err(RequestError::Ended(End::Closed))));
    assert!(created(&connection, "/b").await.is_err());
    assert_eq!(timeout(LONG, connection.close()).await, Ok(End::Closed));
}

#[tokio::test]
async fn session_that_is_over_answers_although_its_driver_was_not_dropped() {
    let server = Server::start();
    let (connection, mut driver) = new(vec![server.host.clone()], T);
    let close = async {
        connected(&connection).await;
        connection.close().await
    };
    let (end, ()) = timeout(LONG, async { tokio::join!(close, &mut driver) })
        .await
        .expect("an end");
    assert_eq!(end, End::Closed);
    assert!(created(&connection, "/a").await.is_err());
    drop(driver);
}

#[tokio::test]
async fn flood_of_a_server_does_not_starve_the_runtime() {
    let flood = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = host("127.0.0.1", flood.local_addr().unwrap().port());
    std::thread::spawn(move || {
        let (mut stream, mut bytes) = (accept(&flood), Vec::new());
        while stream.write_all(&bytes).is_ok() {
            bytes.clear();
            let event = zookeeper_recipes_protocol::WatcherEvent {
                kind: EventType::NodeCreated,
                state: zookeeper_recipes_protocol::KeeperState::SyncConnected,
                path: "/".to_owned(),
            };
            let event = zookeeper_recipes_protocol::Reply::notification(event);
            (0..4000).for_each(|_| event.encode_frame(&mut bytes));
        }
    });
    let connection = spawn(vec![address], T);
    connected(&connection).await;
    // One thread runs both the driver and this task.
    for _ in 0..200 {
        timeout(LONG, tokio::task::yield_now())
            .await
            .expect("it is not starved");
    }
    let pending = connection.request(RequestBody::WhoAmI);
    drop(connection);
    assert!(
        timeout(LONG, pending)
            .await
            .expect("the limits hold")
            .is_err()
    );
}

#[tokio::test]
async fn server_that_stops_reading_is_left() {
    let stuck = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = host("127.0.0.1", stuck.local_addr().unwrap().port());
    let (done, wait) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _stream = accept(&stuck);
        // The connection stays open until the test is over.
        let _ = wait.recv();
    });
    let connection = spawn(vec![address], Duration::from_secs(1));
    connected(&connection).await;
    let large = "/".repeat(1 << 20);
    let pending: Vec<_> = (0..40)
        .map(|_| connection.request(create(&large)))
        .collect();
    for reply in pending {
        let reply = timeout(LONG, reply).await.expect("it does not hang");
        assert!(matches!(reply, Err(RequestError::Broken(_))));
    }
    drop(done);
}
