//! What the tests share: one list of the recipes, one judge, one set of helpers.
//!
//! A [`TestedRecipe`] says how a recipe is made and what a judge must know of it. A [`Kind`] is a
//! kind of contender for it, with the rival that cannot hold beside it. A [`Judge`] fails the test
//! when holders break a promise. The rest starts servers, opens sessions and waits for conditions.
//!
//! All of it fails the test, by a panic, if something is not as it must be or takes longer than
//! [`PATIENCE`].

#![allow(missing_docs, reason = "names that say all stand for themselves")]

mod conformance;
mod judge;
mod kind;
pub mod log;
mod options;
mod pooled_lock;
pub mod raw;
mod recipe;
mod sasl;
mod server;
mod simulated;
mod test_server;
#[cfg(feature = "tls")]
pub mod tls;
mod waiting;

pub use conformance::{conformance, conforms, conforms_on};
pub use judge::Judge;
pub use kind::{KINDS, Kind, POLL};
pub use options::RecipeOptions;
pub use recipe::{
    Downgrade, ELECTION, LOCK, LOCK_BY_PARENT, LOCK_BY_POLLING, LOCK_OF_A_NAME, LOCK_OF_A_POOL,
    LOCK_OF_ONE_ZNODE, RWLOCK, SEMAPHORE, TestedRecipe, WRITER, candidate, downgrade, resize,
};
pub use sasl::requiring_sasl;
pub use server::{
    Address, LATE, LONG, QUIET, SHORT, TICK, administrator, assert_directory_empty,
    assert_no_watch_left, assert_nothing_left, assert_nothing_left_in, children, create, exists,
    notifications, proxy, queue_length, server, server_with, session, session_with_tick, watchers,
};
pub use simulated::simulated_session;
pub use test_server::TestServer;
pub use waiting::{PATIENCE, dropped_after, eventually, in_time, number};
