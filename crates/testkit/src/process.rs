//! The process of one server.

#[cfg(not(unix))]
mod absent;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use absent::Process;
#[cfg(unix)]
pub(crate) use unix::Process;
