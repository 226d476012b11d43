//! The kinds of requests at which servers close the connection, because they do not know them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_protocol::{ErrorCode, OpCode};

use crate::sync::{Mutex, lock};

/// The first pause. Each further break at the request doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(600);
const MAX_DOUBLINGS: u32 = 10;

/// What is known of the servers of one ensemble: which kinds of requests they do not support.
///
/// Some servers close the connection at a request that they do not know, and answer the reconnect
/// with a new session. So share this between the sessions of an ensemble, one after the other: a
/// clone shares what is known.
///
/// Connections break for other reasons, too. So a kind counts as unsupported after three such breaks
/// in a row, or eight if nothing replaces the request. It is tried again after ten minutes, and
/// then after pauses that double. Once a server has answered a request, its kind is supported for
/// good.
#[derive(Clone, Debug, Default)]
pub struct UnsupportedRequests(Arc<Mutex<BTreeMap<i32, Support>>>);

#[derive(Clone, Copy, Debug)]
enum Support {
    Supported,
    Broke { times: u32, last: Duration },
}

impl UnsupportedRequests {
    /// True if a request of this kind must not be sent now.
    pub(crate) fn contains(&self, opcode: OpCode, now: Duration) -> bool {
        if !may_be_unknown(opcode) {
            return false;
        }
        let Some(Support::Broke { times, last }) = lock(&self.0).get(&i32::from(opcode)).copied()
        else {
            return false;
        };
        let doublings = times.saturating_sub(breaks_of(opcode)).min(MAX_DOUBLINGS);
        times >= breaks_of(opcode) && now < last + FIRST_PAUSE * 2_u32.pow(doublings)
    }

    /// The server closed the connection while such a request was the oldest without a reply.
    pub(crate) fn closed(&self, opcode: OpCode, now: Duration) {
        let mut known = lock(&self.0);
        let support = known.entry(i32::from(opcode)).or_insert(Support::Broke {
            times: 0,
            last: now,
        });
        if let Support::Broke { times, last } = support {
            *times = times.saturating_add(1);
            *last = now;
        }
    }

    /// A server has answered such a request. A server that has too much to do has not looked at it.
    pub(crate) fn answered(&self, opcode: OpCode, error: ErrorCode) {
        if may_be_unknown(opcode) && error != ErrorCode::ThrottledOp {
            lock(&self.0).insert(i32::from(opcode), Support::Supported);
        }
    }
}

/// How many breaks in a row show that a kind of request is not supported.
fn breaks_of(opcode: OpCode) -> u32 {
    match opcode {
        // A persistent znode replaces a container, and a watch can stay until it fires.
        OpCode::CreateContainer | OpCode::RemoveWatches => 3,
        _ => 8,
    }
}

/// True if some servers close the connection because they do not know the request.
pub(crate) fn may_be_unknown(opcode: OpCode) -> bool {
    matches!(
        opcode,
        OpCode::Create2
            | OpCode::CreateContainer
            | OpCode::CreateTtl
            | OpCode::MultiRead
            | OpCode::RemoveWatches
            | OpCode::CheckWatches
            | OpCode::SetWatches
            | OpCode::AddWatch
            | OpCode::WhoAmI
            | OpCode::GetEphemerals
            | OpCode::GetAllChildrenNumber
    )
}

#[cfg(test)]
#[path = "../../tests/unit/unsupported.rs"]
mod tests;
