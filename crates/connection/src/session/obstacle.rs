//! Why no session was opened at a host, and what its user should look at.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use zookeeper_recipes_protocol::FrameError;

use crate::error::DisconnectReason;
use crate::session::host::Host;

/// The most addresses of one name that a text lists with one cause.
const MAX_ADDRESSES: usize = 4;

/// The first bytes of an alert of TLS, read as the length of a frame.
const TLS_ALERT: RangeInclusive<usize> = 0x1503_0000..=0x1503_ffff;

/// Why there is no session at a host, or not yet.
#[derive(Clone, Debug)]
pub struct Obstacle {
    /// The name of the host.
    pub host: Host,
    /// The address that was tried. `None` if the obstacle is the look-up of the name.
    pub address: Option<SocketAddr>,
    /// What stands in the way.
    pub cause: DisconnectReason,
}

impl Obstacle {
    /// What stands in the way at each host, in one line.
    ///
    /// `is_encrypted` is false if the client does not speak TLS, which a server may expect.
    pub fn in_words(obstacles: &[Obstacle], is_encrypted: bool) -> String {
        let mut hosts: Vec<(&Host, String, Vec<IpAddr>)> = Vec::new();
        for Obstacle {
            host,
            address,
            cause,
        } in obstacles
        {
            let (text, address) = (text(cause, is_encrypted), address.map(|it| it.ip()));
            match hosts.iter_mut().find(|it| it.0 == host && it.1 == text) {
                Some((_, _, addresses)) => addresses.extend(address),
                None => hosts.push((host, text, address.into_iter().collect())),
            }
        }
        let parts = hosts.iter().map(|(host, text, addresses)| {
            let host = shown(host, addresses);
            format!("{host}: {text}")
        });
        parts.collect::<Vec<_>>().join("; ")
    }
}

/// The cause, and what the user should look at if a server answers so without a session.
fn text(cause: &DisconnectReason, is_encrypted: bool) -> String {
    let hint = match cause {
        DisconnectReason::NoAddress(_)
        | DisconnectReason::NotLookedUp(_)
        | DisconnectReason::Io(_)
        | DisconnectReason::NotConnected(_)
        | DisconnectReason::Tls(_) => return cause.to_string(),
        DisconnectReason::ClosedUnheard => {
            let others = match is_encrypted {
                true => "or the server has no quorum",
                false => "the server has no quorum, or it expects TLS at this port",
            };
            format!(
                ". Likely causes: maxClientCnxns of the server is reached for the address of this \
                 client (60 connections by default), {others}"
            )
        }
        DisconnectReason::Frame(FrameError::TooLong { length, .. })
            if TLS_ALERT.contains(length) && !is_encrypted =>
        {
            ": does this port expect TLS?".to_owned()
        }
        _ => String::new(),
    };
    format!("something listens, but it opened no session: {cause}{hint}")
}

/// A host, and the addresses of its name that were tried.
fn shown(host: &Host, addresses: &[IpAddr]) -> String {
    if addresses.is_empty() {
        return host.name.clone();
    }
    if host.address().is_some() {
        return host.to_string();
    }
    let listed = addresses.iter().take(MAX_ADDRESSES);
    let listed: Vec<String> = listed.map(IpAddr::to_string).collect();
    let others = match addresses.len() - listed.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    format!("{host} ({}{others})", listed.join(", "))
}

#[cfg(test)]
#[path = "../../tests/unit/obstacle.rs"]
mod tests;
