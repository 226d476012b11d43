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

/// The port of a host that is given without one.
const PORT: u16 = 2181;

impl Host {
    /// The host of `name`, `name:port` or `[address]:port`. Without a port, its port is 2181.
    ///
    /// # Errors
    ///
    /// What is wrong with a text that contains this host: `has "0" in it, which is not a port`.
    pub fn parse(given: &str) -> Result<Host, String> {
        let split = given.rsplit_once(':');
        // A colon before the end of the brackets is part of an address.
        let split = split.filter(|(_, port)| !port.contains(']'));
        let (name, port) = split.unwrap_or((given, ""));
        let bare = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let name = bare.unwrap_or(name);
        if name.is_empty() {
            return Err("has an empty host in it".to_owned());
        }
        let is_odd = |character: char| {
            character.is_whitespace()
                || "/;[]".contains(character)
                || (character == ':' && bare.is_none())
        };
        if name.contains(is_odd) {
            let problem =
                "is not a host: separate hosts by commas, put IPv6 addresses into brackets";
            return Err(format!("has {name:?} in it, which {problem}"));
        }
        let port = match port {
            "" => PORT,
            port => match port.parse() {
                Ok(port) if port > 0 => port,
                _ => return Err(format!("has {port:?} in it, which is not a port")),
            },
        };
        let name = name.to_owned();
        Ok(Host { name, port })
    }

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
