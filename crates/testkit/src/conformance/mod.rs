//! The promises of every recipe, as a test for any recipe.
//!
//! A few lines test your own recipe, as they test each of ours:
//!
//! ```
//! use std::borrow::Cow;
//! use zookeeper_recipes_core::{InvalidInput, Queue, QueueView, Rule, Verdict};
//! use zookeeper_recipes_testkit::conformance::Conformance;
//! use zookeeper_recipes_testkit::{Server, ServerOptions};
//!
//! /// Holds when nobody is before it.
//! #[derive(Debug)]
//! struct First;
//!
//! impl Rule for First {
//!     fn label(&self) -> Cow<'_, str> {
//!         "turn-".into()
//!     }
//!
//!     fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
//!         Ok(view.place().checked_sub(1).map_or(Verdict::Hold, Verdict::wait_on))
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::start(ServerOptions::new()).await?;
//! let made = |session: &_, path: &str| Box::new(Queue::new(session, path, First).unwrap()) as _;
//! Conformance::new(&server, made).check().await?;
//! # Ok(())
//! # }
//! ```

mod checked_server;
mod leave;
mod loss;
mod promise;
mod running_ensemble;
mod suite;
mod tries;
mod turns;

pub use checked_server::CheckedServer;
pub use promise::{BrokenPromise, Outcome};
pub use running_ensemble::RunningEnsemble;
pub use suite::Conformance;
