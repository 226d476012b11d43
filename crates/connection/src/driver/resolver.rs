//! Looks names up by the system, on threads that nobody waits for.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;

use crate::driver::network::LookingUp;
use crate::error::Break;
use crate::session::host::Host;
use crate::sync::{Mutex, lock};

type Found = Result<Vec<SocketAddr>, Break>;

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

impl Resolver {
    /// Looks names up by the system.
    pub(crate) fn new() -> Resolver {
        Resolver::by(|host| Ok((&*host.name, host.port).to_socket_addrs()?.collect()))
    }

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
            .map_or_else(Vec::new, |name| name.known.clone())
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

fn no_address(error: io::Error) -> Break {
    Break::NoAddress(Arc::new(error))
}

impl fmt::Debug for Resolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Resolver")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn zk() -> Host {
        let name = "zk".to_owned();
        Host { name, port: 2181 }
    }

    /// A resolver whose look-ups last until the sender says what they find.
    fn slow() -> (Arc<Resolver>, mpsc::Sender<io::Result<Vec<SocketAddr>>>) {
        let (to, found) = mpsc::channel();
        let found = Mutex::new(found);
        let gone = |_| io::Error::other("the test has ended");
        let resolver = Resolver::by(move |_| lock(&found).recv().map_err(gone)?);
        (Arc::new(resolver), to)
    }

    #[tokio::test]
    async fn callers_that_ask_meanwhile_get_the_result_of_one_look_up() {
        let (resolver, to) = slow();
        let address: SocketAddr = "10.0.0.1:2181".parse().expect("an address");
        let both = [resolver.look_up(&zk()), resolver.look_up(&zk())];
        to.send(Ok(vec![address])).expect("it is looked up");
        for found in both {
            assert_eq!(found.await.expect("it is found"), [address]);
        }
        // What is known stays after a failure.
        let failed = resolver.look_up(&zk());
        to.send(Err(io::Error::other("no name server")))
            .expect("it is looked up");
        assert!(matches!(failed.await, Err(Break::NoAddress(_))));
        assert_eq!(resolver.known(&zk()), [address]);
    }

    #[test]
    fn runtime_does_not_wait_for_a_look_up() {
        let (resolver, _to) = slow();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.spawn(resolver.look_up(&zk()));
        let since = Instant::now();
        drop(runtime);
        assert!(since.elapsed() < LONG);
        // Its thread still runs, and no other one is begun.
        let (to, _found) = oneshot::channel();
        assert!(!resolver.waits(&zk(), to));
    }

    #[tokio::test]
    async fn system_looks_names_up() {
        let resolver = Arc::new(Resolver::new());
        let host = Host {
            name: "localhost".to_owned(),
            port: 7,
        };
        let found = resolver.look_up(&host).await.expect("each system knows it");
        assert!(
            found
                .iter()
                .all(|it| it.ip().is_loopback() && it.port() == 7)
        );
        let host = Host {
            name: "no-such-name.invalid".to_owned(),
            port: 7,
        };
        let error = resolver.look_up(&host).await.expect_err("no address");
        assert!(matches!(error, Break::NoAddress(_)), "{error:?}");
    }
}
