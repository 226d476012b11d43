//! The interface to the servers, and its implementation over the library's own connection.

mod check_options;
pub(crate) mod connect_string;
pub mod ensemble;
pub(crate) mod error;
pub(crate) mod options;
pub(crate) mod raw_session;
pub(crate) mod scope;
pub(crate) mod session;
pub(crate) mod zookeeper;
