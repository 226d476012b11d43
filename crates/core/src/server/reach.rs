//! Finds out why this process cannot reach the servers.
//!
//! The client library does not say why it has no session. So while a session is being opened, a
//! thread looks up the host names. If the opening takes too long, the thread also tries the ports.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use crate::server::connect_string::Host;

/// The pause before the first try of the ports, and between two tries.
///
/// A server logs each connection without a request, so the tries must be rare.
const PAUSE: Duration = Duration::from_secs(1);

/// The time limit for a connection to a port.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why no host can be reached.
#[derive(Clone, Debug)]
pub(crate) struct Unreachable {
    hosts: Vec<(Host, Obstacle)>,
}

/// Why one host cannot be reached.
#[derive(Clone, Debug)]
enum Obstacle {
    /// The host name has no address.
    Unknown(Arc<io::Error>),
    /// The connection failed, or the host name has no address any more.
    Closed(Arc<io::Error>),
    /// Something listens at the port, but has opened no session.
    Silent,
}

impl Unreachable {
    /// True if no host name has an address, so that no server can answer.
    fn is_final(&self) -> bool {
        let unknown = |(_, obstacle): &(Host, Obstacle)| matches!(obstacle, Obstacle::Unknown(_));
        self.hosts.iter().all(unknown)
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (host, obstacle)) in self.hosts.iter().enumerate() {
            if place > 0 {
                formatter.write_str("; ")?;
            }
            let Host { name, port } = host;
            match obstacle {
                Obstacle::Unknown(error) => write!(formatter, "{name}: {error}")?,
                Obstacle::Closed(error) => write!(formatter, "{name}:{port}: {error}")?,
                Obstacle::Silent => write!(
                    formatter,
                    "{name}:{port}: something listens, but it opened no session"
                )?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Unreachable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.hosts.iter().find_map(|(_, obstacle)| match obstacle {
            Obstacle::Unknown(error) | Obstacle::Closed(error) => Some(&**error as _),
            Obstacle::Silent => None,
        })
    }
}

/// Tries the hosts, and passes each result to `note`.
///
/// Resolves if no host name has an address.
///
/// Cancel safe: the thread ends soon after this is dropped.
pub(crate) async fn looked_at(hosts: &[Host], note: impl Fn(&Unreachable)) -> Unreachable {
    let (sender, mut found) = watch::channel(None);
    let (_on, off) = channel();
    let hosts = hosts.to_vec();
    let builder = thread::Builder::new().name("zookeeper-recipes-connect".to_owned());
    if let Err(error) = builder.spawn(move || look(&hosts, &sender, &off)) {
        // Without the thread, the error of the session does not name the obstacle.
        tracing::debug!(%error, "no thread could be started to try the hosts");
    }
    while found.changed().await.is_ok() {
        let Some(unreachable) = found.borrow_and_update().clone() else {
            continue;
        };
        note(&unreachable);
        if unreachable.is_final() {
            return unreachable;
        }
    }
    std::future::pending().await
}

fn look(hosts: &[Host], found: &watch::Sender<Option<Unreachable>>, off: &Receiver<()>) {
    let is_off = || off.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout);
    let looked_up: Vec<_> = hosts.iter().map(addresses).collect();
    if looked_up.iter().all(Result::is_err) {
        let unknown = hosts.iter().zip(looked_up);
        let unknown = unknown.filter_map(|(host, addresses)| {
            let error = Arc::new(addresses.err()?);
            Some((host.clone(), Obstacle::Unknown(error)))
        });
        let hosts = unknown.collect();
        found.send_replace(Some(Unreachable { hosts }));
        return;
    }
    while !is_off() {
        let tried = hosts.iter().map(|host| (host.clone(), try_port(host)));
        let hosts = tried.collect();
        found.send_replace(Some(Unreachable { hosts }));
    }
}

fn addresses(host: &Host) -> io::Result<Vec<SocketAddr>> {
    let addresses = (host.name.as_str(), host.port).to_socket_addrs()?;
    Ok(addresses.collect())
}

fn try_port(host: &Host) -> Obstacle {
    let addresses = match addresses(host) {
        Ok(addresses) => addresses,
        // The host name, or another one, had an address before, so a retry may succeed.
        Err(error) => return Obstacle::Closed(Arc::new(error)),
    };
    let mut closed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return Obstacle::Silent,
            Err(error) => closed = error,
        }
    }
    Obstacle::Closed(Arc::new(closed))
}
