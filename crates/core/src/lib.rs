//! The core of all ZooKeeper recipes: sessions, paths, contenders, the queue, holds.
//!
//! Most users want a recipe, and get this crate with it: `zookeeper-recipes-lock` for an exclusive
//! lock, or the facade `zookeeper-recipes` for all recipes. Use this crate to write a recipe of
//! your own, or code that runs with any recipe.
//!
//! # One idea
//!
//! A contender is an ephemeral sequential znode. A recipe is a [`Queue`] with a [`Rule`]. The rule
//! is a pure function from the ordered contenders to a verdict, "hold" or "wait on these". The
//! queue does the rest for every recipe: it enters, recovers from a lost reply, waits, gives up,
//! holds, loses and releases. Each recipe implements the trait [`Recipe`] and returns the same
//! [`Hold`], whose page says what a hold guarantees, and what it does not.
//!
//! ```
//! use std::borrow::Cow;
//! use zookeeper_recipes_core::{InvalidInput, Queue, QueueView, Rule, Session, Verdict};
//!
//! /// At most three hold at a time, FIFO.
//! #[derive(Debug)]
//! struct ThreeAtATime;
//!
//! impl Rule for ThreeAtATime {
//!     fn label(&self) -> Cow<'_, str> {
//!         "seat-".into()
//!     }
//!
//!     fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
//!         Ok(match view.place() {
//!             0..3 => Verdict::Hold,
//!             // Any of the three contenders before it may leave first.
//!             me => Verdict::wait_on_any(me - 3..me),
//!         })
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let simulated = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(connect_string).await?;
//! # session };
//! let seats = Queue::new(&session, "/seats", ThreeAtATime)?;
//! let hold = seats.acquire().await?;
//! assert!(hold.is_held());
//! hold.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`ErrorKind`] says how to handle each error. [The guide](docs) has a page for each question of a
//! service, and begins with [your first week](docs::first_week).

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-core/latest")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// The double of the traits, in the test kit, names this crate as other crates do.
#[cfg(test)]
extern crate self as zookeeper_recipes_core;

mod contender;
pub mod docs;
mod error;
mod events;
mod hold;
mod hold_state;
mod invalid_input;
mod live;
mod named_znode;
mod owner;
mod path;
mod queue;
mod recipe;
mod retry;
mod rule;
mod server;
mod session;
mod sync;

pub use contender::{Contender, Identity, Sequence, order, ordered_by_czxid};
pub use error::{Error, ErrorKind};
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use events::meter::describe_metrics;
#[doc(no_inline)]
pub use futures_util::future::BoxFuture;
pub use hold::{GuardedTransaction, Hold, HoldView};
pub use hold_state::{Ended, FencingToken, HoldState, LossReason};
pub use invalid_input::InvalidInput;
pub use named_znode::NamedZnode;
pub use path::NodePath;
pub use queue::Queue;
pub use queue::options::{AfterSessionLoss, Directories, QueueOptions};
pub use recipe::{QueueEntry, Recipe, RecipeExt, RecipeFuture};
pub use retry::Backoff;
pub use rule::{QueueView, Rule, Verdict, WaitStrategy};
pub use server::ensemble::{
    self, Acl, AuthId, CreateMode, Ensemble, Operation, Outcome, Permission, SessionId, Stat,
};
pub use server::error::{Refusal, ServerError, SessionEnd};
pub use server::options::ConnectOptions;
// Hidden: only a simulation implements it, for `ZookeeperEnsemble::within`.
#[doc(hidden)]
pub use server::ensemble::Environment;
pub use server::zookeeper::ZookeeperEnsemble;
pub use session::handle::Session;
pub use session::state::{SessionHealth, SessionState};
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use zookeeper_recipes_connection::TlsOptions;
