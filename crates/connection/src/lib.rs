//! A ZooKeeper session as a state machine without I/O, and its driver on tokio.
//!
//! A [`Machine`] takes bytes, requests and the time, and yields bytes, [`Output`]s and its next
//! deadline. It has names looked up, connects, reconnects, pings, sends credentials and sets watches again. A
//! [`Connection`] is its handle over a [`Network`], and a [`Driver`] is the task that moves the bytes.
//!
//! | | promise |
//! |---|---|
//! | requests | Each has one reply or one [`RequestError`]. The replies come in the order of the calls. |
//! | a broken connection | [`RequestError::Broken`]: the request was sent, and its outcome is unknown. Requests that were not sent wait for the next connection. |
//! | watches | Each fires, is set again after a reconnect, or is [`Unwatched`](Output::Unwatched). |
//! | the end of a session | A server expires it, refuses it and opens others, refuses its credentials, or this process closes it: see [`End`]. It does not expire on this side while no server is reached. |
//! | a server that breaks the protocol | The connection breaks with a [`DisconnectReason`] that names why, and another host is tried. Any bytes; no panic. |
//! | a slow handshake | The time of a host grows, once T has passed without a server, until the handshake succeeds or the session has expired meanwhile. |
//! | memory | A reply takes what was received of it, at most the limit in [`Config`]. Requests that wait for a connection or a reply are not limited: each is kept once, also if the server stops reading. A server that sends nothing is left after 2/5 of T. |
//!
//! The machine without a network:
//!
//! ```
//! use std::time::Duration;
//!
//! use zookeeper_recipes_connection::{Config, Host, Machine, Output, UnsupportedRequests};
//! use zookeeper_recipes_protocol::{ConnectRequest, RequestBody};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Duration::ZERO;
//! let config = Config {
//!     hosts: vec![Host { name: "10.0.0.7".to_owned(), port: 2181 }],
//!     session_timeout: Duration::from_secs(10),
//!     auth: Vec::new(),
//!     reply_limit: 1 << 20,
//!     seed: 7,
//!     unsupported: UnsupportedRequests::default(),
//! };
//! let mut machine: Machine<&str, ()> = Machine::new(now, config);
//! machine.request(now, RequestBody::WhoAmI, "a caller");
//! let Some(Output::Connect { address, .. }) = machine.poll() else {
//!     panic!("a name that is an address is not looked up");
//! };
//! assert_eq!(address.to_string(), "10.0.0.7:2181");
//!
//! // The host accepts, and the machine asks it for a session.
//! machine.connected(now);
//! let mut sent = Vec::new();
//! machine.transmit(now, &mut sent);
//! let asked = ConnectRequest::decode(&sent[4..])?;
//! assert_eq!((asked.session_id, asked.timeout), (0, 10_000));
//!
//! // The answer goes in by `received`. Without one, the machine tries the next host then:
//! assert!(machine.deadline() < Some(Duration::from_secs(10)));
//! # Ok(())
//! # }
//! ```

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-connection/latest")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod driver;
mod error;
mod session;
mod sync;

pub use driver::clock::{now, tokio_is_paused};
pub use driver::connection::{Connection, Pending};
pub use driver::network::{Connecting, LookingUp, Network, Stream};
pub use driver::task::Driver;
pub use driver::tcp::Tcp;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use driver::tls::TlsOptions;
pub use driver::watch::{Watch, WatchEvent};
pub use error::{DisconnectReason, End, RequestError};
pub use session::host::{Host, Obstacle};
pub use session::machine::{Answer, Config, Machine, Output, State, WatchedRead};
pub use session::request_limit::check_length;
pub use session::unsupported::UnsupportedRequests;
pub use session::watches::WatchId;
