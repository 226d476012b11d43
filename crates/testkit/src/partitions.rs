//! Proxies between the members of an ensemble, so that one can be cut off from the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::proxy::{Protocol, Proxy};

/// The ports on which a member waits for the other members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberPorts {
    pub(crate) quorum: u16,
    pub(crate) election: u16,
}

/// For each ordered pair of members, the ways by which the first reaches the second.
#[derive(Debug)]
pub(crate) struct Partitions {
    ways: BTreeMap<(usize, usize), Way>,
    isolated: Mutex<BTreeSet<usize>>,
}

#[derive(Debug)]
struct Way {
    quorum: Proxy,
    election: Proxy,
}

impl Partitions {
    pub(crate) async fn start(members: &[MemberPorts]) -> io::Result<Partitions> {
        let pairs = (0..members.len())
            .flat_map(|from| (0..members.len()).map(move |to| (from, to)))
            .filter(|(from, to)| from != to);
        let mut ways = BTreeMap::new();
        let mut known_as = BTreeMap::new();
        for (from, to) in pairs {
            let known: Arc<OnceLock<_>> = Arc::default();
            let ports = members[to];
            let start = async |port, protocol| {
                Proxy::start_with(&format!("127.0.0.1:{port}"), protocol).await
            };
            let quorum = start(ports.quorum, Protocol::Quorum).await?;
            let election = start(ports.election, Protocol::Election(known.clone())).await?;
            known_as.insert((from, to), known);
            ways.insert((from, to), Way { quorum, election });
        }
        for ((from, to), known) in known_as {
            // For elections, only the member with the greater number may connect. The other member
            // sends its address and is connected to. This is that way back.
            if let Some(back) = ways.get(&(to, from)) {
                known.get_or_init(|| back.election.address());
            }
        }
        Ok(Partitions {
            ways,
            isolated: Mutex::default(),
        })
    }

    /// The value of the line `server.<to>` in the configuration of `from`: `None` for its own.
    pub(crate) fn line(&self, from: usize, to: usize) -> Option<String> {
        let way = self.ways.get(&(from, to))?;
        let (quorum, election) = (way.quorum.address(), way.election.address());
        Some(format!("127.0.0.1:{}:{}", quorum.port(), election.port()))
    }

    pub(crate) fn isolate(&self, member: usize) {
        self.set(|isolated| isolated.insert(member));
    }

    pub(crate) fn heal(&self, member: usize) {
        self.set(|isolated| isolated.remove(&member));
    }

    fn set(&self, change: impl FnOnce(&mut BTreeSet<usize>) -> bool) {
        let mut isolated = self.isolated.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut isolated);
        for ((from, to), way) in &self.ways {
            for proxy in [&way.quorum, &way.election] {
                if isolated.contains(from) || isolated.contains(to) {
                    proxy.freeze();
                } else {
                    proxy.thaw();
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/partitions.rs"]
mod tests;
