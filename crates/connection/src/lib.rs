#![doc = include_str!("../README.md")]
#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-connection/latest")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod sync;

/// The handle of a session, and the task that moves bytes between the machine and a network.
mod driver {
    pub(crate) mod clock;
    pub(crate) mod connection;
    pub(crate) mod network;
    pub(crate) mod resolver;
    pub(crate) mod shared;
    pub(crate) mod task;
    pub(crate) mod tcp;
    #[cfg(feature = "tls")]
    pub(crate) mod tls;
}

/// A session as a state machine without I/O.
mod session {
    pub(crate) mod digest_md5;
    pub(crate) mod handshake;
    pub(crate) mod host;
    pub(crate) mod hosts;
    pub(crate) mod incoming;
    pub(crate) mod machine;
    pub(crate) mod names;
    pub(crate) mod obstacle;
    pub(crate) mod output;
    pub(crate) mod pauses;
    pub(crate) mod phase;
    pub(crate) mod refusal;
    pub(crate) mod requests;
    pub(crate) mod timing;
    pub(crate) mod trees;
    pub(crate) mod unsupported;
    pub(crate) mod watch_requests;
    pub(crate) mod watches;
}

pub use driver::clock::{now, tokio_is_paused};
pub use driver::connection::{Connection, PendingAnswer, TreeEvents, Watch};
pub use driver::network::{Connecting, LookingUp, Network, Stream};
pub use driver::task::Driver;
pub use driver::tcp::Tcp;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use driver::tls::TlsOptions;
pub use error::{DisconnectReason, RequestError, SessionEnd};
pub use session::digest_md5::{DigestMd5, SaslStep};
pub use session::host::Host;
pub use session::machine::{Config, Machine};
pub use session::obstacle::Obstacle;
pub use session::output::{Answer, ConnectionState, Exchange, Output};
pub use session::requests::check_length;
pub use session::trees::TreeEvent;
pub use session::unsupported::UnsupportedRequests;
pub use session::watches::{WatchEvent, WatchId, WatchedRead};
