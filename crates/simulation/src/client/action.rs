//! What processes and their clients have to do at a time.

use std::time::Duration;

use crate::process::machine::ProcessId;
use crate::wire::connection::{ClientId, ConnectionId};

#[derive(Debug)]
pub(crate) enum Action {
    /// A client takes one of the messages that were held back from it.
    Release {
        connection: ConnectionId,
    },
    ClientTimer {
        client: ClientId,
    },
    Reconnect {
        client: ClientId,
        attempt: u64,
    },
    AttemptFailed {
        client: ClientId,
        attempt: u64,
    },
    Wake {
        process: ProcessId,
        at: Duration,
    },
    Unblock {
        process: ProcessId,
        at: Duration,
    },
    /// Things go wrong by chance.
    RollDice,
}
