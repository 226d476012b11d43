//! A network namespace for each client, which can be cut off in each direction.

use crate::namespace::{Namespace, run};

/// No interface has this address, so that a packet to it is lost.
const NOBODY: &str = "02:00:00:00:00:01";

/// A direction between a client and the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The packets of the client are lost.
    ToServers,
    /// The packets of the servers are lost.
    ToClient,
}

/// The namespace of one client, with a pair of interfaces between it and the servers.
#[derive(Debug)]
pub(crate) struct ClientNetwork {
    namespace: Namespace,
    number: usize,
}

impl ClientNetwork {
    /// Makes it. The servers are in the namespace of this process.
    pub(crate) fn new(number: usize) -> anyhow::Result<ClientNetwork> {
        let namespace = Namespace::start()?;
        let network = ClientNetwork { namespace, number };
        let (here, process) = (network.here(), network.namespace.process());
        let [servers, client] = [network.servers(), network.client()];
        run(&format!(
            "ip link add {here} type veth peer name zk netns {process}"
        ))?;
        run(&format!("ip address add {servers}/30 dev {here}"))?;
        run(&format!("ip link set {here} up"))?;
        network.inside("ip link set lo up")?;
        network.inside(&format!("ip address add {client}/30 dev zk"))?;
        network.inside("ip link set zk up")?;
        Ok(network)
    }

    fn here(&self) -> String {
        format!("zk-client-{}", self.number)
    }

    /// The address of the servers, for this client. It is one of those that are set aside for
    /// benchmarks.
    pub(crate) fn servers(&self) -> String {
        format!("198.18.{}.1", self.number)
    }

    fn client(&self) -> String {
        format!("198.18.{}.2", self.number)
    }

    /// The words before a command that make it run in the client's namespace.
    pub(crate) fn entrance(&self) -> [String; 2] {
        self.namespace.entrance()
    }

    fn inside(&self, line: &str) -> anyhow::Result<()> {
        run(&format!("{} {line}", self.entrance().join(" ")))
    }

    /// Loses all packets of one direction, until [`heal`](Self::heal).
    pub(crate) fn cut(&self, direction: Cut) -> anyhow::Result<()> {
        let (here, servers, client) = (self.here(), self.servers(), self.client());
        let lose = |to, device| {
            format!("ip neighbour replace {to} lladdr {NOBODY} dev {device} nud permanent")
        };
        match direction {
            Cut::ToServers => self.inside(&lose(servers, "zk")),
            Cut::ToClient => run(&lose(client, &here)),
        }
    }

    /// Loses no more packets.
    pub(crate) fn heal(&self) -> anyhow::Result<()> {
        // Without an entry, the kernel asks for the address again.
        let (here, servers, client) = (self.here(), self.servers(), self.client());
        let forget = |to, device| format!("ip neighbour flush to {to} dev {device} nud permanent");
        self.inside(&forget(servers, "zk"))?;
        run(&forget(client, &here))
    }
}
