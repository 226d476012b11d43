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
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;
    use crate::ports::free_port;

    #[tokio::test]
    async fn follower_that_is_early_reaches_its_leader_once_that_listens() {
        let ports = [0, 1].map(|_| MemberPorts {
            quorum: free_port().expect("a port"),
            election: free_port().expect("a port"),
        });
        let partitions = Partitions::start(&ports).await.expect("proxies start");
        let way = partitions.ways[&(0, 1)].quorum.address();
        let follower = TcpStream::connect(way).await.expect("the proxy listens");
        let ends = timeout(Duration::from_millis(100), follower.readable()).await;
        assert!(
            ends.is_err(),
            "the connection ends before there is a leader"
        );
        let leader = TcpListener::bind((Ipv4Addr::LOCALHOST, ports[1].quorum)).await;
        let leader = leader.expect("the port is free");
        let reached = timeout(Duration::from_secs(10), leader.accept()).await;
        reached.expect("in time").expect("a follower");
    }
}
