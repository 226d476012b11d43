//! Requests that some servers do not know.

use zookeeper_recipes_core::ensemble::{CreateMode, Operation};

use crate::wire::request::Request;

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
        let is_container = |operation: &Operation| {
            let Operation::Create { mode, .. } = operation else {
                return false;
            };
            *mode == CreateMode::Container
        };
        match (self, request) {
            (Opcode::Create, Request::Create { .. })
            | (Opcode::SetWatches, Request::SetWatches { .. })
            | (Opcode::RemoveWatches, Request::RemoveWatch { .. }) => true,
            (Opcode::CreateContainer, Request::Create { mode, .. }) => {
                *mode == CreateMode::Container
            }
            (Opcode::CreateContainer, Request::Transact(operations)) => {
                operations.iter().any(is_container)
            }
            _ => false,
        }
    }
}
