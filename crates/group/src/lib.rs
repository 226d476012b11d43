//! Group membership on ZooKeeper.
//!
//! A process joins a [`Group`] under a name, and is a member until it leaves or its session ends.
//! Every process can watch who is there.
//!
//! # Example
//!
//! ```
//! use zookeeper_recipes_group::{Group, Session};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connect_string = "zk1:2181,zk2:2181";
//! # let simulated = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
//! # let session = if true { simulated } else {
//! let session = Session::connect(connect_string).await?;
//! # session };
//! let group = Group::new(&session, "/app/members")?;
//! let membership = group.join("node-7", "10.0.0.7:8080").await?;
//! for member in group.members().await? {
//!     println!("{} at {}", member.name, String::from_utf8_lossy(&member.data));
//! }
//! membership.leave().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! A member that dies is in the group until its session expires. A process that is cut off from the
//! servers learns from [`Membership::is_joined`] that it is not a member any more, before the
//! servers remove it. A watch of the group shows what one server knew: a member may be gone when
//! the list is read. For work that two processes must not do at once, use a lock or an election.
//!
//! # Other languages
//!
//! | client | sees our members | our watch sees its members |
//! |---|---|---|
//! | Curator's `GroupMember` | yes: the id is our name, the payload our data | yes: the name is its id |
//! | kazoo's `ShallowParty` | yes: it shows our name behind its first hyphen, if it has one | yes: the name is 32 hex digits, a hyphen and the identifier |
//! | kazoo's `Party` | only if our name contains `__party__`; it shows our data | yes: the name is 32 hex digits and `__party__`, the data the identifier |
//!
//! The table comes from the source code of Curator 5.9 and kazoo 2.11, and was not run.
//! A `GroupMember` of Curator that finds its name taken does not wait: it writes its payload to
//! the other member's znode. So no name may be used by a process with Curator and one of ours at
//! once.

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-group/latest")]

mod group;
mod members;
mod membership;
mod names;
mod own_member;

pub use group::Group;
pub use members::{GroupState, Member};
pub use membership::Membership;
#[doc(inline)]
pub use zookeeper_recipes_core::QueueOptions as GroupOptions;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use zookeeper_recipes_core::TlsOptions;
pub use zookeeper_recipes_core::{
    self as common, Acl, AuthId, ConnectOptions, Directories, Error, ErrorKind, FencingToken,
    HoldView, InvalidInput, NodePath, Permission, Refusal, Session, SessionId,
};
