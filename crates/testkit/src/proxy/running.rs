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
/// See the [module](super) for an example. If it is dropped, it resets all its connections and
/// frees its port.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    chroot: String,
    acceptor: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy to the server at `connect_string`.
    ///
    /// The connect string is `host:port`, and may have a chroot. If it names several hosts, each
    /// connection goes to the first host that accepts it.
    ///
    /// The server may start later, and may restart: the proxy connects to it for each client.
    ///
    /// # Errors
    ///
    /// If the proxy cannot listen on any port of 127.0.0.1.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime: the proxy is a task there.
    pub async fn start(connect_string: impl AsRef<str>) -> io::Result<Proxy> {
        Proxy::start_with(connect_string.as_ref(), Protocol::ZooKeeper).await
    }

    /// Starts a proxy without knowledge of the protocol.
    ///
    /// For connections between servers, or for another service. Faults at requests never happen,
    /// and the proxy counts connections and bytes only.
    ///
    /// # Errors
    ///
    /// If the proxy cannot listen on any port of 127.0.0.1.
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

    /// The connect string of the proxy: its address, and the chroot that it was started with.
    pub fn connect_string(&self) -> String {
        format!("{}{}", self.address, self.chroot)
    }

    /// The proxy's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a fault at a chosen request.
    ///
    /// Several faults may wait together. If two faults match the same request, the older fault
    /// strikes, and the other one waits for the next request.
    pub fn fault(&self, fault: Fault) -> Strikes {
        let (armed, strikes) = Armed::new(fault);
        self.shared.state().faults.push(armed);
        strikes
    }

    /// Removes all faults that still wait.
    pub fn clear_faults(&self) {
        self.shared.state().faults.clear();
    }

    /// Ends all connections in good order. The proxy accepts new connections.
    pub fn cut(&self) {
        self.shared.state().each_link(|link| link.end(Ending::Cut));
    }

    /// Resets all connections. The proxy accepts new connections.
    pub fn reset(&self) {
        self.shared
            .state()
            .each_link(|link| link.end(Ending::Reset));
    }

    /// Ends this direction of all connections. The other direction stays open.
    pub fn half_close(&self, direction: Direction) {
        self.shared
            .state()
            .each_link(|link| link.half_close(direction));
    }

    /// Stops all data until [`thaw`](Self::thaw), on open connections and on new ones.
    ///
    /// The end of a connection does not pass either. At the thaw the proxy passes on the
    /// bytes that were sent meanwhile.
    pub fn freeze(&self) {
        self.shared.state().freeze(Frozen::BOTH);
    }

    /// As [`freeze`](Self::freeze), in one direction.
    pub fn freeze_direction(&self, direction: Direction) {
        let mut state = self.shared.state();
        let frozen = state.frozen.and(direction);
        state.freeze(frozen);
    }

    /// Passes everything again, also on a connection that a fault has frozen.
    pub fn thaw(&self) {
        self.shared.state().freeze(Frozen::default());
    }

    /// Delays everything by this much, in each direction. The order stays.
    pub fn delay(&self, delay: Duration) {
        self.shared.state().delay = delay;
    }

    /// Ends each new connection at once. Open connections stay.
    pub fn refuse_connections(&self) {
        self.shared.state().refusing = true;
    }

    /// Accepts new connections again.
    pub fn accept_connections(&self) {
        self.shared.state().refusing = false;
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.state().links.len()
    }

    /// The counts until now.
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
