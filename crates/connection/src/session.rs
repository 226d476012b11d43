//! A session as a state machine without I/O.

pub(crate) mod host;
pub(crate) mod hosts;
pub(crate) mod incoming;
pub(crate) mod machine;
pub(crate) mod names;
pub(crate) mod pauses;
pub(crate) mod phase;
pub(crate) mod refusal;
pub(crate) mod request_limit;
pub(crate) mod requests;
pub(crate) mod timing;
pub(crate) mod unsupported;
pub(crate) mod watches;
