//! Looks names up by the system, on threads that nobody waits for.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;

use crate::driver::network::LookingUp;
use crate::error::DisconnectReason;
use crate::session::host::Host;
use crate::sync::{Mutex, lock};

type Found = Result<Vec<SocketAddr>, DisconnectReason>;

/// Blocks until the addresses of a name are known.
type LookUp = dyn Fn(&Host) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks names up.
///
/// A look-up takes as long as the name servers let it, and nothing can end it before. So it runs on
/// a thread of its own, and not on one of tokio's, for which a runtime waits when it shuts down.
/// There is at most one thread for each name: callers that ask meanwhile get the same result.
pub(crate) struct Resolver {
    look_up: Box<LookUp>,
    names: Mutex<HashMap<Host, Name>>,
}

#[derive(Default)]
struct Name {
    /// What the last look-up that has succeeded has found.
    known: Vec<SocketAddr>,
    /// Who waits for the look-up that runs, if one runs.
    waiting: Option<Vec<oneshot::Sender<Found>>>,
}

/// Looks names up by the system.
impl Default for Resolver {
    fn default() -> Resolver {
        Resolver::by(|host| Ok((&*host.name, host.port).to_socket_addrs()?.collect()))
    }
}

impl Resolver {
    /// Looks names up by a function that may block.
    pub(crate) fn by(
        look_up: impl Fn(&Host) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Resolver {
        Resolver {
            look_up: Box::new(look_up),
            names: Mutex::default(),
        }
    }

    /// What the last look-up of this name that has succeeded has found.
    pub(crate) fn known(&self, host: &Host) -> Vec<SocketAddr> {
        let names = lock(&self.names);
        names
            .get(host)
            .map(|name| name.known.clone())
            .unwrap_or_default()
    }

    /// Looks a name up. The look-up begins with the call.
    pub(crate) fn look_up(self: &Arc<Resolver>, host: &Host) -> LookingUp {
        let (to, found) = oneshot::channel();
        if self.waits(host, to) {
            let (resolver, name) = (self.clone(), host.clone());
            let spawned = thread::Builder::new()
                .name("zookeeper-look-up".to_owned())
                .spawn(move || {
                    let found = (resolver.look_up)(&name);
                    resolver.found(&name, found);
                });
            if let Err(error) = spawned {
                self.found(host, Err(error));
            }
        }
        Box::pin(async move {
            let ended = |_| Err(no_address(io::Error::other("the look-up has ended")));
            found.await.unwrap_or_else(ended)
        })
    }

    /// Adds a caller that waits for this name. True if no look-up of it runs.
    fn waits(&self, host: &Host, to: oneshot::Sender<Found>) -> bool {
        let mut names = lock(&self.names);
        let name = names.entry(host.clone()).or_default();
        let is_first = name.waiting.is_none();
        name.waiting.get_or_insert_default().push(to);
        is_first
    }

    fn found(&self, host: &Host, found: io::Result<Vec<SocketAddr>>) {
        let found = found.map_err(no_address);
        let waiting = {
            let mut names = lock(&self.names);
            let name = names.entry(host.clone()).or_default();
            if let Ok(addresses) = &found {
                name.known.clone_from(addresses);
            }
            name.waiting.take()
        };
        for to in waiting.into_iter().flatten() {
            // A caller that has gone does not want it.
            let _ = to.send(found.clone());
        }
    }
}

fn no_address(error: io::Error) -> DisconnectReason {
    DisconnectReason::NoAddress(Arc::new(error))
}

impl fmt::Debug for Resolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Resolver")
    }
}

#[cfg(test)]
#[path = "../../tests/unit/resolver.rs"]
mod tests;
