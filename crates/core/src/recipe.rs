//! The trait that all recipes share.

use std::fmt;
use std::time::{Duration, SystemTime};

use futures_util::future::{BoxFuture, FutureExt};

use crate::error::Error;
use crate::hold::{Hold, HoldView};
use crate::hold_state::{Ended, FencingToken};
use crate::owner;
use crate::path::NodePath;
use crate::server::ensemble::{Node, SessionId};
use crate::session::handle::Session;

/// The future of a method of a [`Recipe`].
pub type RecipeFuture<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// A recipe of any kind, for code that works with every recipe.
///
/// Such code takes `&dyn Recipe`. Code that uses one recipe does not need this trait: each recipe
/// has methods of the same names, with the costs of that recipe in their documentation.
///
/// A type that wraps another recipe implements this trait with
/// [`delegate_recipe!`](crate::delegate_recipe).
///
/// # Costs
///
/// Each method of a recipe has a table of its requests, its round trips, and the watches that it
/// sets. Requests that are sent together count as one round trip.
///
/// A session sends a `sync`, its probe, in each tenth of its timeout, for any number of recipes. A
/// hold that did not wait sets a watch on its own znode at the next probe, by one request.
///
/// # First use of a path
///
/// A contender enters a queue by its first requests, in one round trip: a create and a list, and a
/// read if the directory's data is part of the recipe. If the directory is missing, its creation
/// comes on top:
///
/// | | requests | round trips |
/// |---|---|---|
/// | the first requests are refused, then sent again behind the directory's create | 1 more, and the first ones again | 1 more |
/// | parents are missing, too: the first requests once more, and for each parent a refused create and its own | the first ones again, and 2 for each | 1 more, and 2 for each |
/// | the last path that the session used for the first time was beside this one and missing, too: the directory's create, with the first requests | 1 more | 0 more |
///
/// ```
/// use zookeeper_recipes_core::{Error, HoldView, Recipe, RecipeExt};
///
/// async fn report(recipe: &dyn Recipe) -> Result<(), Error> {
///     let write = async |hold: HoldView| {
///         hold.transaction().set_data("/report", b"done").commit().await
///     };
///     recipe.with(write).await??;
///     Ok(())
/// }
/// ```
pub trait Recipe: fmt::Debug + Send + Sync {
    /// Waits until the recipe is held.
    ///
    /// The wait has no deadline. While no server answers, it waits for one, until its session is
    /// over.
    ///
    /// # Errors
    ///
    /// * The attempt failed: [`Error::Refused`] (for example, no permission),
    ///   [`Error::ContenderDeleted`], [`Error::ContenderWritten`], [`Error::NoLease`],
    ///   [`Error::OtherRecipe`].
    /// * The session is over: [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// After each of these errors nothing stays in the queue. [`ErrorKind`](crate::ErrorKind) lists
    /// the kinds of errors, and what to do about each.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the place in the queue is lost. No znode and no watch remain: the
    /// session deletes the znode in the background. So it is for each other method.
    ///
    /// # Session loss
    ///
    /// If the session expires during the wait, the place in the queue is lost. The call fails with
    /// [`Error::SessionOver`], or queues anew if
    /// [`after_session_loss`](crate::QueueOptions::after_session_loss) says so.
    fn acquire(&self) -> RecipeFuture<'_, Hold>;

    /// As [`acquire`](Self::acquire), or [`Error::DeadlineElapsed`] after `timeout`.
    ///
    /// The timeout bounds everything: the wait for a connection, the server's answers, the queue.
    /// It runs on a monotonic clock.
    fn acquire_timeout(&self, timeout: Duration) -> RecipeFuture<'_, Hold> {
        Box::pin(async move { within(timeout, self.path(), self.acquire()).await })
    }

    /// Holds the recipe if it can hold at once; otherwise `None`.
    ///
    /// The call reads first, and writes nothing if other contenders are before it.
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`] if no server answers: at once if that is known, otherwise after the
    /// session timeout. Otherwise the errors of [`acquire`](Self::acquire).
    fn try_acquire(&self) -> RecipeFuture<'_, Option<Hold>>;

    /// Lists the contenders, holders included, in the order of the queue.
    ///
    /// The list shows one moment at the server. It is empty if the directory does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], [`Error::SessionOver`] and [`Error::NoSession`].
    /// [`Error::MissingChroot`] if the chroot does not exist.
    fn contenders(&self) -> RecipeFuture<'_, Vec<QueueEntry>>;

    /// The path that the recipe was created with.
    fn path(&self) -> &NodePath;

    /// The session that the recipe was created with.
    fn session(&self) -> &Session;
}

/// Methods of every recipe, even of a `dyn Recipe`.
pub trait RecipeExt: Recipe {
    /// Acquires, runs the work until it is done or the hold is lost, and releases.
    ///
    /// If the hold is lost first, the work is dropped at its current `await`. Work that blocks its
    /// thread is not stopped: see [`Hold::run_until_lost`]. The costs are those of an acquisition and
    /// a release.
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Recipe::acquire) and [`Hold::release`]. [`Error::Lost`] if the hold is
    /// lost before the work is done, also with its session.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the work is dropped. The hold is released in the background.
    ///
    /// ```
    /// use zookeeper_recipes_core::{Error, Recipe, RecipeExt};
    ///
    /// # async fn write_report() -> std::io::Result<()> { Ok(()) }
    /// # async fn example(recipe: &dyn Recipe) -> Result<(), Box<dyn std::error::Error>> {
    /// recipe.with(async |_| write_report().await).await??;
    /// # Ok(())
    /// # }
    /// ```
    fn with<T, F>(&self, work: impl FnOnce(HoldView) -> F) -> impl Future<Output = Result<T, Error>>
    where
        F: Future<Output = T>,
    {
        async move {
            let hold = self.acquire().await?;
            let work = work(hold.view());
            match hold.run_until_lost(work).await {
                Ok(done) => hold.release().await.map(|()| done),
                Err(reason) => Err(hold.view.ended_error(Ended::Lost(reason))),
            }
        }
    }
}

impl<R: Recipe + ?Sized> RecipeExt for R {}

/// Bounds an attempt at the recipe with this path by a deadline. The time begins with the call.
///
/// No `async fn`: see [`sync`](crate::sync).
pub(crate) fn within<T>(
    timeout: Duration,
    path: &NodePath,
    acquire: impl Future<Output = Result<T, Error>>,
) -> impl Future<Output = Result<T, Error>> {
    tokio::time::timeout(timeout, acquire).map(move |result| {
        result.unwrap_or_else(|_| {
            let path = path.to_string();
            Err(Error::DeadlineElapsed { path, timeout })
        })
    })
}

/// A contender in the queue, as [`Recipe::contenders`] lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueEntry {
    /// The number of contenders before this one.
    pub position: usize,
    /// The name of the contender's znode.
    pub name: String,
    /// The data of the contender's znode. The owner describes itself by it.
    pub data: Vec<u8>,
    /// Who the contender is, if the data is one line of printable text.
    ///
    /// | client | text |
    /// |---|---|
    /// | these recipes | `service@host:pid`: see [`ConnectOptions::owner`](crate::ConnectOptions::owner) |
    /// | an election of these recipes, Curator's `LeaderLatch` | the candidate's id |
    /// | Curator's locks | the address of the host, by default |
    /// | kazoo | the contender's identifier |
    pub owner: Option<String>,
    /// When the contender's znode was created, by the clock of the leading server.
    ///
    /// A hold may have begun later: ZooKeeper does not record that.
    pub created: SystemTime,
    /// True if the rule lets the contender hold at this moment: see
    /// [`Rule::holds`](crate::Rule::holds).
    ///
    /// The contender may not know it yet, and its process may be dead: the znode
    /// of a dead process exists until its session expires.
    pub holds: bool,
    /// The session that the contender's znode belongs to.
    pub session_id: SessionId,
    /// The fencing token of the contender's hold, present or future.
    pub fencing_token: FencingToken,
}

impl QueueEntry {
    /// The entry of a contender with a znode of this name, data and metadata.
    pub fn new(position: usize, name: &str, (data, stat): Node, holds: bool) -> QueueEntry {
        QueueEntry {
            position,
            name: name.to_owned(),
            owner: owner::in_data(&data),
            data,
            created: stat.created(),
            holds,
            session_id: SessionId(stat.ephemeral_owner),
            fencing_token: FencingToken::from(stat.czxid),
        }
    }
}

/// Makes a type a [`Recipe`] by one of its fields, such as a [`Queue`](crate::Queue).
///
/// ```
/// use zookeeper_recipes_core::{Queue, delegate_recipe};
///
/// #[derive(Clone, Debug)]
/// pub struct Seats {
///     queue: Queue,
/// }
///
/// delegate_recipe!(Seats, queue);
/// ```
#[macro_export]
macro_rules! delegate_recipe {
    ($type:ty, $field:ident) => {
        // The field's futures are returned as they are, so each future is boxed once.
        impl $crate::Recipe for $type {
            fn acquire(&self) -> $crate::RecipeFuture<'_, $crate::Hold> {
                $crate::Recipe::acquire(&self.$field)
            }

            fn acquire_timeout(
                &self,
                timeout: ::std::time::Duration,
            ) -> $crate::RecipeFuture<'_, $crate::Hold> {
                $crate::Recipe::acquire_timeout(&self.$field, timeout)
            }

            fn try_acquire(&self) -> $crate::RecipeFuture<'_, ::std::option::Option<$crate::Hold>> {
                $crate::Recipe::try_acquire(&self.$field)
            }

            fn contenders(&self) -> $crate::RecipeFuture<'_, ::std::vec::Vec<$crate::QueueEntry>> {
                $crate::Recipe::contenders(&self.$field)
            }

            fn path(&self) -> &$crate::NodePath {
                $crate::Recipe::path(&self.$field)
            }

            fn session(&self) -> &$crate::Session {
                $crate::Recipe::session(&self.$field)
            }
        }
    };
}
