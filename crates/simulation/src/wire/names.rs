//! The names of the servers, and the addresses that they have.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::options::SimulationOptions;

/// The port of each server.
const PORT: u16 = 2181;

/// The name of a server: this, its number, and the name of the simulation.
const SERVER: &str = "server-";

/// The name that lists all servers, in front of the name of the simulation.
const ALL: &str = "servers";

/// The names of the servers of one simulation.
#[derive(Debug)]
pub(crate) struct Names {
    domain: String,
    servers: usize,
    one_name: bool,
    /// How often a server has moved to another address.
    moves: BTreeMap<usize, u16>,
}

impl Names {
    pub(crate) fn new(options: &SimulationOptions) -> Names {
        Names {
            domain: format!("simulation-{}", options.seed),
            servers: options.servers,
            one_name: options.one_name,
            moves: BTreeMap::new(),
        }
    }

    /// The names in the connect string of each process.
    pub(crate) fn of_connect_string(&self) -> Vec<String> {
        let name = |server| format!("{SERVER}{server}.{}", self.domain);
        match self.one_name {
            true => vec![format!("{ALL}.{}", self.domain)],
            false => (0..self.servers).map(name).collect(),
        }
    }

    /// The addresses that a name has now.
    pub(crate) fn addresses(&self, name: &str) -> Vec<SocketAddr> {
        let label = name.split('.').next().unwrap_or_default();
        let number = label.strip_prefix(SERVER).and_then(|it| it.parse().ok());
        let servers = (0..self.servers).filter(|it| label == ALL || number == Some(*it));
        servers.map(|server| self.address(server)).collect()
    }

    /// The server that has this address now.
    pub(crate) fn server_at(&self, address: SocketAddr) -> Option<usize> {
        (0..self.servers).find(|server| self.address(*server) == address)
    }

    /// Gives a server another address.
    pub(crate) fn move_server(&mut self, server: usize) {
        let moves = self.moves.entry(server).or_default();
        *moves = moves.wrapping_add(1);
    }

    fn address(&self, server: usize) -> SocketAddr {
        let moves = self.moves.get(&server).copied().unwrap_or_default();
        let address = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, moves, server as u16);
        SocketAddr::new(IpAddr::V6(address), PORT)
    }
}
