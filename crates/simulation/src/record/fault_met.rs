//! A fault that meets a client.

use std::sync::Arc;

use zookeeper_recipes_core::ensemble::SessionId;

use super::request_kind::RequestKind;

/// A fault that meets the connection of a client, and what the client was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultMet {
    /// The fault, in words.
    pub fault: &'static str,
    /// The session of the connection. `None` before the client has learned of it.
    pub session: Option<SessionId>,
    /// The requests whose replies had not come, oldest first.
    pub asked: Vec<RequestKind>,
}

/// Is called with each fault that meets a client.
pub(crate) type FaultObserver = Arc<dyn Fn(&FaultMet) + Send + Sync>;
