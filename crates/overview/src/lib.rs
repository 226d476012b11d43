//! Which queues there are on a ZooKeeper ensemble, who holds, and who waits for whom.
//!
//! An [`Overview`] is one look at all queues below a path: of these recipes, of Apache Curator, of
//! kazoo and of go-zookeeper. It says who holds, as the rule of each recipe does. Sessions that wait for each
//! other over several queues are [circles](Overview::circles): possible deadlocks.
//!
//! # Example
//!
//! ```
//! use zookeeper_recipes_overview::{Overview, Session};
//! # use zookeeper_recipes_lock::ExclusiveLock;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let simulated = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
//! # let hold = ExclusiveLock::new(&simulated, "/locks/report")?.acquire().await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(connect_string).await?;
//! # session };
//! let overview = Overview::below(&session, "/locks").await?;
//! for queue in overview.queues() {
//!     println!("{}: {}", queue.path(), queue.kind());
//!     for contender in queue.contenders() {
//!         println!("  {:?}: {}", contender.state, contender.owner);
//!     }
//! }
//! for circle in overview.circles() {
//!     println!("{} sessions wait for each other", circle.waits.len());
//! }
//! # assert_eq!(overview.queues().len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # What a queue is
//!
//! | [kind](QueueKind) | recognised by | who holds |
//! |---|---|---|
//! | lock, read/write lock, election | the names of the contenders, of any of these clients | by the rule |
//! | semaphore | the names of our contenders | by the rule, if the directory records the number of permits; unknown otherwise |
//! | job per time slot | a lock, and the record in the data of its directory | by the rule |
//! | lock of a partition | a lock below an assignment, which has the directories `plan`, `owned`, `locks`, `partitions` and `orders` | by the rule |
//! | leases of Curator's semaphore | `lease-` in the names | unknown: no znode records the number |
//! | leases of kazoo's semaphore | names of 32 hex digits, and a number in the data of the directory | each lease is held |
//! | group | any other ephemeral znodes | each holds its name. They may be members, or locks of one znode |
//!
//! # Costs
//!
//! | | requests | in flight |
//! |---|---|---|
//! | a look | 1 (`sync`) | 1 |
//! | each znode that is no contender | 1 (`getChildren2`) | 64 |
//! | each 128 contenders or fewer, of one queue or of several | 1 (`multiRead`) | 8 |
//! | a read/write lock that a writer leaves between the two | 1 list, and the read of its contenders, again up to 8 times | 1, 8 |
//! | a possible circle: each queue in which stuck sessions wait | 1 list, and the read of its contenders | 64, 8 |
//!
//! A look writes nothing and sets no watch. The search for circles among 10,000 contenders or more runs
//! on a thread of tokio that may block. A contender costs less than 128 bytes of memory beside its
//! name, and a queue less than 256 beside its path. Each owner's text is stored once. Who holds is
//! judged once for each look, in one pass over the contenders of a queue.
//!
//! [`Overview::watch`] reads all once. Then it costs, after each pause:
//!
//! | | requests | in flight |
//! |---|---|---|
//! | always | 1 (`sync`) | 1 |
//! | each 128 znodes that were created or written, and still exist | 1 (`multiRead`) | 8 |
//! | the first contender in a directory that had none when all was read | 1 list, and the read of its contenders | 64, 8 |
//! | a possible circle of waits that have not been found twice | as for a look | |
//! | each 10 minutes, and after a reconnect | a look | |
//!
//! A deletion costs no request. The servers send 1 event for each change of a znode in the tree. The
//! overview of a change has the queues that have not changed in common with the one before. A look
//! at changes searches for circles only if one may have closed. That is so if a contender of a
//! changed queue is of a session that waits in one queue and is in another one, or if the search
//! before found a possible circle.
//!
//! # Limits
//!
//! * A look is not an atomic snapshot: it reads one queue after the other. What it shows of a queue was
//!   true when it had read the last contender of that queue. Contenders at its end may be missing if
//!   they left during the look.
//! * [`Overview::watch`] shows a change after the pause, and not at once.
//! * A candidate of an election that has to step back, for a named successor or because it is on
//!   standby, may lead until it does: [`ContenderState::Unknown`].
//! * [`ContenderStatus::created`] is when a contender queued. No znode records when it began to hold.
//! * A holder may be dead: its znode exists until its session expires.
//! * A server that is cut off from the other servers answers until it notices. A look at such a server
//!   shows the state at that moment.
//! * A [`Circle`] is a *possible* deadlock. Waits that no znode shows are not in it: kazoo's waiters
//!   for a semaphore, waiters for a lock of one znode, and waiters for Curator's leases.
//! * Paths that the session may not read are [counted](Overview::unread); they are not an error.

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-overview/latest")]

mod changes;
mod circle;
mod contender;
mod edges;
mod follower;
mod kind;
mod live;
mod mark;
mod mirror;
mod overview;
mod queue;
mod reader;
mod sessions;
mod standing;
mod walk;

pub use circle::{Circle, CircleWait};
pub use contender::{ContenderState, ContenderStatus, printable};
pub use kind::{QueueKind, is_contender};
pub use live::LiveOverview;
pub use mark::Mark;
pub use overview::{LARGEST_SESSION, Overview, SessionStatus};
pub use queue::QueueStatus;
pub use walk::Unread;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use zookeeper_recipes_core::TlsOptions;
pub use zookeeper_recipes_core::{
    self as common, AuthId, ConnectOptions, Error, ErrorKind, FencingToken, InvalidInput, NodePath,
    Refusal, Session, SessionId,
};
