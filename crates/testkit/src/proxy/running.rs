//! A running proxy.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::connection::Connection;
use super::counters::Counters;
use super::fault::{Armed, Direction, Fault, Strikes};
use super::link::{Ending, Frozen, Link};
use super::shared::{AGAIN, Protocol, Shared};

/// A proxy on loopback, between clients and a server.
///
/// See the [module](super) for an example. Dropped, it resets all its connections and gives up its
/// port.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    chroot: String,
    acceptor: JoinHandle<()>,
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
