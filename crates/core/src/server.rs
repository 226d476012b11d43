//! The interface to the servers, and its implementation over the crate `zookeeper-client`.

pub(crate) mod acl;
pub(crate) mod checks;
pub(crate) mod client_session;
pub(crate) mod client_values;
pub(crate) mod clock;
pub(crate) mod connect_string;
pub mod ensemble;
pub(crate) mod error;
pub(crate) mod options;
pub(crate) mod own_identity;
pub(crate) mod reach;
pub(crate) mod request_limit;
pub(crate) mod stat;
pub(crate) mod zookeeper;
