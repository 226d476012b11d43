//! The present ZooKeeper session of a handle.

use std::sync::Arc;

use crate::server::error::SessionEnd;
use crate::session::live::LiveSession;

/// The present ZooKeeper session, if there is one.
#[derive(Clone)]
pub(crate) enum Current {
    Opening,
    Live(Arc<LiveSession>),
    Over(SessionEnd),
}
