//! A connection between a client and a server, as the network has it.

use std::time::Duration;

/// A connection between the client of a session and a server.
pub(crate) type ConnectionId = u64;

/// A machine that clients run on: the place of its link in the network.
pub(crate) type HostId = usize;

/// What both ends of a connection have in common.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) host: HostId,
    pub(crate) server: usize,
    pub(crate) client_open: bool,
    pub(crate) server_open: bool,
    /// When the last message to the server arrives.
    pub(crate) last_up: Duration,
    /// When the last message to the client arrives.
    pub(crate) last_down: Duration,
    /// What is sent to the server no longer arrives.
    pub(crate) up_broken: bool,
    /// What has been sent to the server and is under way no longer arrives either.
    pub(crate) deaf: bool,
    /// What is sent to the client no longer arrives.
    pub(crate) down_broken: bool,
}

impl Connection {
    pub(crate) fn new(host: HostId, server: usize) -> Connection {
        Connection {
            host,
            server,
            client_open: true,
            server_open: true,
            last_up: Duration::ZERO,
            last_down: Duration::ZERO,
            up_broken: false,
            deaf: false,
            down_broken: false,
        }
    }
}
