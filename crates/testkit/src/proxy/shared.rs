//! What a proxy and its connections share.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

use super::counters::Counters;
use super::fault::{Armed, Strike};
use super::frame::Request;
use super::link::{Frozen, Link};

/// How long to wait before accepting or connecting again after that failed.
pub(super) const AGAIN: Duration = Duration::from_millis(10);

/// How often a leader is tried: for two seconds.
const QUORUM_TRIES: u32 = 200;

/// What a proxy passes on.
pub(crate) enum Protocol {
    ZooKeeper,
    Raw,
    /// Followers and their leader. If a leader does not listen yet, a follower tries again. Behind
    /// a proxy the follower would see its connection end, and give up. So the proxy tries again for
    /// it.
    Quorum,
    /// Leader election among servers. A server that connects first sends its own address. The proxy
    /// replaces it by this address, so that servers connect back through a proxy too.
    Election(Arc<OnceLock<SocketAddr>>),
}

/// What a proxy and its connections share.
pub(super) struct Shared {
    pub(super) servers: Vec<String>,
    pub(super) protocol: Protocol,
    pub(super) state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) counters: Counters,
    pub(super) faults: Vec<Armed>,
    pub(super) links: BTreeMap<u64, Arc<Link>>,
    pub(super) frozen: Frozen,
    pub(super) delay: Duration,
    pub(super) refusing: bool,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn connect(&self) -> io::Result<TcpStream> {
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
    pub(super) fn each_link(&self, act: impl Fn(&Link)) {
        self.links.values().for_each(|link| act(link));
    }

    pub(super) fn freeze(&mut self, frozen: Frozen) {
        self.frozen = frozen;
        self.each_link(|link| link.freeze(frozen));
    }

    /// Counts a request, and finds what is to go wrong at it.
    pub(super) fn request(&mut self, request: &Request, bytes: usize) -> Option<Strike> {
        self.counters.request(request.operation, bytes);
        self.strike(request)
    }

    pub(super) fn strike(&mut self, request: &Request) -> Option<Strike> {
        let mut first = None;
        for armed in &mut self.faults {
            if armed.sees(request, first.is_some()) {
                first = Some(armed.strike.clone());
            }
        }
        first
    }
}
