//! The state that the clones of a queue share.

use std::sync::Arc;

use crate::events::Source;
use crate::path::NodePath;
use crate::queue::alone::LastAlone;
use crate::queue::local::LocalQueue;
use crate::queue::options::QueueOptions;
use crate::rule::Rule;
use crate::session::handle::Session;

/// The state that the clones of a queue share.
pub(crate) struct Shared {
    pub(crate) session: Session,
    pub(crate) directory: NodePath,
    pub(crate) rule: Arc<dyn Rule>,
    pub(crate) options: QueueOptions,
    pub(crate) local: Option<LocalQueue>,
    pub(crate) last_alone: LastAlone,
    /// What the events of the queue's attempts and holds have in common.
    pub(crate) source: Arc<Source>,
}
