//! A ZooKeeper session as a state machine without I/O, and its driver on tokio.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod driver;
mod error;
mod session;

pub use driver::clock::now;
pub use driver::connection::{Connection, Pending, PendingWatch};
pub use driver::network::{Connecting, Network, Stream};
pub use driver::task::Driver;
pub use driver::tcp::{Host, Tcp};
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use driver::tls::TlsOptions;
pub use driver::watch::{Watch, WatchEvent};
pub use error::{Break, End, RequestError};
pub use session::avoided::Avoided;
pub use session::machine::{Answer, Config, Machine, Output, Resumable, State, WatchedRead};
pub use session::requests::RequestId;
pub use session::watches::WatchId;
