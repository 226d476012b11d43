//! What happens to processes at a time.

use std::time::Duration;

use crate::process::machine::ProcessId;

#[derive(Debug)]
pub(crate) enum Action {
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
