//! The current ZooKeeper session of a handle.

use std::sync::Arc;

use crate::server::error::SessionEnd;
use crate::session::live::LiveSession;

/// The current ZooKeeper session of a handle, if one is open.
#[derive(Clone)]
pub(crate) enum Current {
    Opening,
    Live(Arc<LiveSession>),
    Over(SessionEnd),
}
