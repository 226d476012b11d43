//! The name of a server, and its port.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A server's name or address, and its port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    /// The name, or the address without brackets.
    pub name: String,
    /// The port.
    pub port: u16,
}

impl Host {
    /// The address, if the name is one. It is never looked up.
    pub fn address(&self) -> Option<SocketAddr> {
        let address: IpAddr = self.name.parse().ok()?;
        Some(SocketAddr::new(address, self.port))
    }
}

impl fmt::Display for Host {
    /// `name:port`, with brackets around an IPv6 address.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Host { name, port } = self;
        match name.contains(':') {
            true => write!(formatter, "[{name}]:{port}"),
            false => write!(formatter, "{name}:{port}"),
        }
    }
}
