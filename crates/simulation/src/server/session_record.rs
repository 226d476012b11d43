//! A session, as the leader knows it.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct SessionRecord {
    /// The timeout that was negotiated last.
    pub(crate) timeout: Duration,
    pub(crate) expires: Duration,
    /// The server through which it came last.
    pub(crate) owner: Option<usize>,
    pub(crate) closing: bool,
}
