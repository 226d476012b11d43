//! A proxy that breaks connections on purpose.
//!
//! A [`Proxy`] stands between clients and one server, on a port of its own. It reads ZooKeeper's
//! frames, so it can break a connection at a chosen request, before or after the server has
//! applied it; and it counts what passes. It tests what your service does when connections fail,
//! whatever client the service uses:
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use zookeeper_client::{Acls, Client, CreateMode};
//! use zookeeper_recipes_testkit::proxy::{Fault, Operation, Proxy};
//! use zookeeper_recipes_testkit::{Server, ServerOptions};
//!
//! let server = Server::start(ServerOptions::new()).await?;
//! let proxy = Proxy::start(server.connect_string()).await?;
//! let client = Client::connect(&proxy.connect_string()).await?;
//!
//! let lost = proxy.fault(Fault::on(Operation::Create).under("/jobs").reply_lost());
//! let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
//! let outcome = client.create("/jobs", b"", &options).await;
//! assert!(outcome.is_err(), "the client cannot know");
//! assert_eq!(lost.count(), 1);
//! assert!(client.check_stat("/jobs").await?.is_some(), "and yet it was created");
//! assert_eq!(proxy.counters().of(Operation::Create).requests, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # What can be done to connections
//!
//! | | at a chosen request or reply | to all of them, now |
//! |---|---|---|
//! | ended in good order (FIN) | [`Breakage::Cut`] | [`Proxy::cut`] |
//! | reset (RST) | [`Breakage::Reset`] | [`Proxy::reset`] |
//! | ended in one direction | [`Breakage::HalfClose`] | [`Proxy::half_close`] |
//! | open, and nothing passes | [`Breakage::Freeze`] | [`Proxy::freeze`], [`Proxy::freeze_direction`] |
//! | late | [`Breakage::Delay`] | [`Proxy::delay`] |
//! | none | `Fault::on(Operation::Connect)` | [`Proxy::refuse_connections`] |
//!
//! # Servers that are not Apache's
//!
//! Some servers that speak ZooKeeper's protocol close the connection at a request that they do not
//! know, or answer a reconnect with a new session. With a proxy in front of it, a real server does
//! the same:
//!
//! ```
//! # use zookeeper_recipes_testkit::proxy::{Fault, Operation, Proxy};
//! # fn like_an_old_keeper(proxy: &Proxy) {
//! const CREATE_CONTAINER: i32 = 19;
//! proxy.fault(Fault::on_code(CREATE_CONTAINER).repeatedly().request_lost());
//! proxy.fault(Fault::on(Operation::Connect).repeatedly().session_forgotten());
//! # }
//! ```
//!
//! A fault at a request strikes the connection that the request came on; its client may well
//! connect again.

mod connection;
mod counters;
mod fault;
mod frame;
mod operation;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

pub use counters::{Counters, Tally};
pub use fault::{Breakage, Direction, Fault, Occasion, Strikes};
pub use operation::Operation;

use connection::{Connection, Ending, Link};
use fault::{Armed, Strike};
use frame::Request;

/// How long to wait before accepting or connecting again after that failed.
const AGAIN: Duration = Duration::from_millis(10);

/// How often a leader is tried: for two seconds.
const QUORUM_TRIES: u32 = 200;

/// A proxy on loopback, between clients and a server.
///
/// See the [module](self) for an example. Dropped, it resets all its connections and gives up its
/// port.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    chroot: String,
    acceptor: JoinHandle<()>,
}

pub(crate) enum Protocol {
    ZooKeeper,
    Raw,
    /// Followers and their leader. A follower that is refused by a leader that does not listen yet
    /// tries again; behind a proxy it would only see its connection end, and give up. So the proxy
    /// tries again in its stead.
    Quorum,
    /// Leader election among servers. Whoever connects says first under which address it can be
    /// reached; this one is put in its place, so that those who connect back do it through a proxy
    /// too.
    Election(Arc<OnceLock<SocketAddr>>),
}

struct Shared {
    servers: Vec<String>,
    protocol: Protocol,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    counters: Counters,
    faults: Vec<Armed>,
    links: BTreeMap<u64, Arc<Link>>,
    frozen: Frozen,
    delay: Duration,
    refusing: bool,
}

/// In which directions nothing passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Frozen {
    to_server: bool,
    to_client: bool,
}

impl Frozen {
    const BOTH: Frozen = Frozen {
        to_server: true,
        to_client: true,
    };

    fn is(self, direction: Direction) -> bool {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }

    fn and(mut self, direction: Direction) -> Frozen {
        match direction {
            Direction::ToServer => self.to_server = true,
            Direction::ToClient => self.to_client = true,
        }
        self
    }
}

impl Proxy {
    /// Starts a proxy to the server at `connect_string`, which is `host:port` and may have a
    /// chroot. Of several hosts, each connection goes to the first that takes it.
    ///
    /// The server need not run yet, and may be restarted: it is connected to for each client anew.
    ///
    /// # Errors
    ///
    /// Where no port of 127.0.0.1 can be listened on.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime: the proxy is a task there.
    pub async fn start(connect_string: impl AsRef<str>) -> io::Result<Proxy> {
        Proxy::start_with(connect_string.as_ref(), Protocol::ZooKeeper).await
    }

    /// Starts a proxy that knows nothing of the protocol: for connections between servers, or of
    /// another service altogether. Faults at requests never strike, and only connections and bytes
    /// are counted.
    ///
    /// # Errors
    ///
    /// Where no port of 127.0.0.1 can be listened on.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn start_raw(address: impl AsRef<str>) -> io::Result<Proxy> {
        Proxy::start_with(address.as_ref(), Protocol::Raw).await
    }

    pub(crate) async fn start_with(connect_string: &str, protocol: Protocol) -> io::Result<Proxy> {
        let (hosts, chroot) = match connect_string.find('/') {
            Some(slash) => connect_string.split_at(slash),
            None => (connect_string, ""),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            servers: hosts.split(',').map(str::to_owned).collect(),
            protocol,
            state: Mutex::default(),
        });
        let acceptor = tokio::spawn(accept(listener, shared.clone()));
        Ok(Proxy {
            shared,
            address,
            chroot: chroot.to_owned(),
            acceptor,
        })
    }

    /// Where clients find the proxy: its address, and the chroot it was started with.
    pub fn connect_string(&self) -> String {
        format!("{}{}", self.address, self.chroot)
    }

    /// The proxy's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes something go wrong at a chosen request.
    ///
    /// Several faults may be waiting at a time. Where two would strike the same request, the one
    /// that was given first does, and the other waits for the next.
    pub fn fault(&self, fault: Fault) -> Strikes {
        let (armed, strikes) = Armed::new(fault);
        self.shared.state().faults.push(armed);
        strikes
    }

    /// Takes back all faults that are still waiting.
    pub fn clear_faults(&self) {
        self.shared.state().faults.clear();
    }

    /// Ends all connections in good order; new ones are welcome.
    pub fn cut(&self) {
        self.shared.state().each_link(|link| link.end(Ending::Cut));
    }

    /// Resets all connections; new ones are welcome.
    pub fn reset(&self) {
        self.shared
            .state()
            .each_link(|link| link.end(Ending::Reset));
    }

    /// Ends this direction of all connections; the other direction goes on.
    pub fn half_close(&self, direction: Direction) {
        self.shared
            .state()
            .each_link(|link| link.half_close(direction));
    }

    /// From now on nothing passes, on the connections there are and on new ones, until
    /// [`thaw`](Self::thaw): neither data nor a connection's end. What is sent meanwhile is passed
    /// on then.
    pub fn freeze(&self) {
        self.shared.state().freeze(Frozen::BOTH);
    }

    /// As [`freeze`](Self::freeze), in one direction.
    pub fn freeze_direction(&self, direction: Direction) {
        let mut state = self.shared.state();
        let frozen = state.frozen.and(direction);
        state.freeze(frozen);
    }

    /// Everything passes again, also where a fault has frozen a connection.
    pub fn thaw(&self) {
        self.shared.state().freeze(Frozen::default());
    }

    /// From now on everything takes this much longer, in each direction. The order stays.
    pub fn delay(&self, delay: Duration) {
        self.shared.state().delay = delay;
    }

    /// From now on new connections are ended at once. Those there are stay.
    pub fn refuse_connections(&self) {
        self.shared.state().refusing = true;
    }

    /// New connections are welcome again.
    pub fn accept_connections(&self) {
        self.shared.state().refusing = false;
    }

    /// How many connections there are now.
    pub fn connections(&self) -> usize {
        self.shared.state().links.len()
    }

    /// What has passed so far.
    pub fn counters(&self) -> Counters {
        self.shared.state().counters.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.reset();
        self.acceptor.abort();
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Proxy")
            .field("address", &self.address)
            .field("servers", &self.shared.servers)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let tries = match self.protocol {
            Protocol::Quorum => QUORUM_TRIES,
            _ => 1,
        };
        let mut outcome = self.try_each().await;
        for _ in 1..tries {
            if outcome.is_ok() {
                break;
            }
            sleep(AGAIN).await;
            outcome = self.try_each().await;
        }
        outcome
    }

    /// Connects to the first server that takes a connection.
    async fn try_each(&self) -> io::Result<TcpStream> {
        let mut outcome = Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
        for server in &self.servers {
            outcome = TcpStream::connect(server).await;
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

impl State {
    fn each_link(&self, act: impl Fn(&Link)) {
        self.links.values().for_each(|link| act(link));
    }

    fn freeze(&mut self, frozen: Frozen) {
        self.frozen = frozen;
        self.each_link(|link| link.freeze(frozen));
    }

    /// Counts a request, and finds what is to go wrong at it.
    fn request(&mut self, request: &Request, bytes: usize) -> Option<Strike> {
        self.counters.request(request.operation, bytes);
        self.strike(request)
    }

    fn strike(&mut self, request: &Request) -> Option<Strike> {
        let mut first = None;
        for armed in &mut self.faults {
            if armed.sees(request, first.is_some()) {
                first = Some(armed.strike.clone());
            }
        }
        first
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((client, _)) = accepted else {
            sleep(AGAIN).await;
            continue;
        };
        let link = {
            let mut state = shared.state();
            state.counters.connections += 1;
            if state.refusing {
                continue;
            }
            number += 1;
            let link = Arc::new(Link::new(state.frozen));
            state.links.insert(number, link.clone());
            link
        };
        let connection = Connection::new(shared.clone(), number, link);
        connections.spawn(connection.run(client));
    }
}
