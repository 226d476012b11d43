//! What all processes of a run are set to.

use std::time::Duration;

pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(4);
pub(crate) const TICK: Duration = Duration::from_millis(500);

pub(crate) const PATH: &str = "/app/queues";
pub(crate) const PARTITIONS: usize = 6;
