//! Free ports of 127.0.0.1.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use crate::error::Error;

/// How many random ports are tried before the operating system is asked for one.
const TRIES: usize = 64;

/// The lowest port that a server is given.
const LOWEST: u16 = 10_000;

/// The first port of outgoing connections, unless the system says otherwise.
const DEFAULT_EPHEMERAL: u16 = 32_768;

/// The ports that this process has given to servers: two servers that start at the same time must
/// not get the same port.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Finds a port that is free now and was not given to another server of this process.
///
/// If possible, the port is below the ports of outgoing connections. So no client's connection
/// takes the port of a server that is down for a while. Also, a client that dials a port of that
/// range can be connected to itself if no server listens.
///
/// # Errors
///
/// [`Error::NoFreePort`].
pub fn free_port() -> Result<u16, Error> {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let end = ephemeral_start().max(LOWEST + 1);
    for _ in 0..TRIES {
        let [high, low, ..] = *uuid::Uuid::new_v4().as_bytes();
        let port = LOWEST + u16::from_be_bytes([high, low]) % (end - LOWEST);
        if !given.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            given.insert(port);
            return Ok(port);
        }
    }
    let bound = |listener: TcpListener| -> io::Result<u16> { Ok(listener.local_addr()?.port()) };
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(bound)
        .map_err(Error::NoFreePort)?;
    given.insert(port);
    Ok(port)
}

fn ephemeral_start() -> u16 {
    fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(DEFAULT_EPHEMERAL)
}

#[cfg(test)]
#[path = "../tests/unit/ports.rs"]
mod tests;
