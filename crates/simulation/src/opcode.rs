//! Requests that some servers do not know.

use zookeeper_recipes_core::ensemble::CreateMode;

use crate::wire::read::Read;
use crate::wire::request::Request;
use crate::wire::write::Write;

/// A request that some servers do not know: older versions of ClickHouse Keeper and RaftKeeper
/// close the connection at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A create that is answered with the metadata: every one that this client sends.
    Create,
    /// A create of a container.
    CreateContainer,
    /// Watches that are set anew on a reconnect.
    SetWatches,
    /// A watch that is taken off.
    RemoveWatches,
}

impl Opcode {
    pub(crate) fn is_of(self, request: &Request) -> bool {
        let writes = match request {
            Request::Write(write) => std::slice::from_ref(write),
            Request::WriteAll(writes) => writes.as_slice(),
            _ => &[],
        };
        let mut modes = writes.iter().filter_map(Write::creates);
        match self {
            Opcode::Create => matches!(request, Request::Write(_)) && modes.next().is_some(),
            Opcode::CreateContainer => modes.any(|mode| mode == CreateMode::Container),
            Opcode::SetWatches => matches!(request, Request::Read(Read::SetWatches(_))),
            Opcode::RemoveWatches => matches!(request, Request::Read(Read::RemoveWatches { .. })),
        }
    }
}
