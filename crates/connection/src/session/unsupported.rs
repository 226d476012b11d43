//! The kinds of requests at which servers close the connection, because they do not know them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_protocol::{ErrorCode, OpCode};

use crate::sync::{Mutex, lock};

/// The first pause. Each further break at the request doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(600);
const MAX_DOUBLINGS: u32 = 10;
/// How many breaks in a row show that a kind of request is not supported that nothing replaces.
const MAX_BREAKS: u32 = 8;
/// The least time between the first and the last of them.
const MIN_TIME: Duration = Duration::from_secs(30);

/// What is known of the servers of one ensemble: which kinds of requests they do not support.
///
/// Some servers close the connection at a request that they do not know, and answer the reconnect
/// with a new session. So share this between the sessions of an ensemble, one after the other: a
/// clone shares what is known.
///
/// Connections break for other reasons, too. So a kind that something replaces counts as unsupported
/// after three such breaks in a row, and a watch of a tree after one. It is tried again after ten
/// minutes, and then after pauses that double. A request that nothing replaces is refused once after
/// eight breaks in a row over half a minute or more, and the next one is sent. Once a server has
/// answered a request, its kind is supported for good.
#[derive(Clone, Debug, Default)]
pub struct UnsupportedRequests {
    known: Arc<Mutex<BTreeMap<OpCode, Support>>>,
    /// The kinds that servers have answered to this clone, which are looked up with no lock.
    answered: Vec<OpCode>,
}

#[derive(Clone, Copy, Debug)]
enum Support {
    Supported,
    Broke {
        times: u32,
        first: Duration,
        last: Duration,
    },
}

impl UnsupportedRequests {
    /// True if this request is not to be sent.
    ///
    /// If nothing replaces the request, its breaks are counted anew from here on.
    pub(crate) fn refuses(&self, opcode: OpCode, now: Duration) -> bool {
        if !may_be_unknown(opcode) || self.answered.contains(&opcode) {
            return false;
        }
        let mut known = lock(&self.known);
        let broke = known.get(&opcode).copied();
        let Some(Support::Broke { times, first, last }) = broke else {
            return false;
        };
        let Some(most) = replaced_after(opcode) else {
            let is_refused = times >= MAX_BREAKS && last >= first + MIN_TIME;
            if is_refused {
                known.remove(&opcode);
            }
            return is_refused;
        };
        let doublings = times.saturating_sub(most).min(MAX_DOUBLINGS);
        times >= most && now < last + FIRST_PAUSE * 2_u32.pow(doublings)
    }

    /// The server closed the connection, perhaps because of such a request.
    pub(crate) fn closed(&self, opcode: OpCode, now: Duration) {
        let mut known = lock(&self.known);
        let support = known.entry(opcode).or_insert(Support::Broke {
            times: 0,
            first: now,
            last: now,
        });
        if let Support::Broke { times, last, .. } = support {
            *times = times.saturating_add(1);
            *last = now;
        }
    }

    /// A server has answered such a request. A server that has too much to do has not looked at it.
    pub(crate) fn answered(&mut self, opcode: OpCode, error: ErrorCode, now: Duration) {
        if !may_be_unknown(opcode) || self.answered.contains(&opcode) {
            return;
        }
        match error {
            ErrorCode::ThrottledOp => {}
            // Apache's servers say so, and close the connection then.
            ErrorCode::Unimplemented => self.closed(opcode, now),
            _ => {
                lock(&self.known).insert(opcode, Support::Supported);
                self.answered.push(opcode);
            }
        }
    }
}

/// After how many breaks in a row callers go on without such a request. `None` if nothing replaces it.
///
/// A persistent znode replaces a container, and a watch can stay until it fires. A tree can be read
/// from time to time, and a break can cost the session.
pub(crate) fn replaced_after(opcode: OpCode) -> Option<u32> {
    match opcode {
        OpCode::CreateContainer | OpCode::RemoveWatches => Some(3),
        OpCode::AddWatch => Some(1),
        _ => None,
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
            | OpCode::AddWatch
            | OpCode::WhoAmI
            | OpCode::GetEphemerals
            | OpCode::GetAllChildrenNumber
    )
}

#[cfg(test)]
#[path = "../../tests/unit/unsupported.rs"]
mod tests;
