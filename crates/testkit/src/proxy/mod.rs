//! A proxy that breaks connections on purpose.
//!
//! A [`Proxy`] is between clients and one server, on a port of its own. It reads ZooKeeper's
//! frames, so it can break a connection at a chosen request, before or after the server has
//! applied it. It counts the requests and bytes that pass. It tests what your service does when
//! connections fail, with any client:
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use zookeeper_client::{Acls, Client, CreateMode};
//! use zookeeper_recipes_testkit::proxy::{Fault, Operation, Proxy};
//! use zookeeper_recipes_testkit::{Server, ServerOptions};
//!
//! let server = Server::start(ServerOptions::new()).await?;
//! let proxy = Proxy::start(server.connect_string()).await?;
//! let client = Client::connect(&proxy.connect_string()).await?;
//!
//! let lost = proxy.fault(Fault::on(Operation::Create).under("/jobs").reply_lost());
//! let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
//! let outcome = client.create("/jobs", b"", &options).await;
//! assert!(outcome.is_err(), "the client cannot know");
//! assert_eq!(lost.count(), 1);
//! assert!(client.check_stat("/jobs").await?.is_some(), "and yet it was created");
//! assert_eq!(proxy.counters().of(Operation::Create).requests, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # What a proxy does to connections
//!
//! | the connection is | at a chosen request or reply | to all of them, now |
//! |---|---|---|
//! | ended in good order (FIN) | [`Breakage::Cut`] | [`Proxy::cut`] |
//! | reset (RST) | [`Breakage::Reset`] | [`Proxy::reset`] |
//! | ended in one direction | [`Breakage::HalfClose`] | [`Proxy::half_close`] |
//! | open, and nothing passes | [`Breakage::Freeze`] | [`Proxy::freeze`], [`Proxy::freeze_direction`] |
//! | late | [`Breakage::Delay`] | [`Proxy::delay`] |
//! | none | `Fault::on(Operation::Connect)` | [`Proxy::refuse_connections`] |
//!
//! # Servers that are not Apache's
//!
//! Some servers that speak ZooKeeper's protocol close the connection at a request that they do not
//! know, or answer a reconnect with a new session. With a proxy in front of it, a real server does
//! the same:
//!
//! ```
//! # use zookeeper_recipes_testkit::proxy::{Fault, Operation, Proxy};
//! # fn like_an_old_keeper(proxy: &Proxy) {
//! const CREATE_CONTAINER: i32 = 19;
//! proxy.fault(Fault::on_code(CREATE_CONTAINER).repeatedly().request_lost());
//! proxy.fault(Fault::on(Operation::Connect).repeatedly().session_forgotten());
//! # }
//! ```
//!
//! A fault at a request breaks the connection of that request. The client can connect again.

mod connection;
mod counters;
mod fault;
mod frame;
mod link;
mod operation;
mod queue;
mod replies;
mod requests;
mod running;
mod shared;

pub use counters::{Counters, Tally};
pub use fault::{Breakage, Direction, Fault, Occasion, Strikes};
pub use operation::Operation;
pub use running::Proxy;
pub(crate) use shared::Protocol;
