//! The trait that all recipes share.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::Error;
use crate::hold::Hold;
use crate::hold::view::HoldView;
use crate::hold_state::FencingToken;
use crate::path::NodePath;
use crate::server::ensemble::SessionId;

/// Something that can be held by as many at a time as its rule allows.
///
/// Dyn-compatible: code that runs something "while held" takes `&dyn Recipe` and need not know
/// which. Each method that yields a boxed future is an `async fn`.
///
/// ```
/// use zookeeper_recipes_core::{Error, Recipe};
///
/// async fn report(recipe: &dyn Recipe) -> Result<(), Error> {
///     let write = async |hold: zookeeper_recipes_core::HoldView| {
///         hold.transaction().set_data("/report", b"done").commit().await
///     };
///     recipe.with(write).await??;
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait Recipe: fmt::Debug + Send + Sync {
    /// Waits until the recipe is held.
    ///
    /// # Errors
    ///
    /// See [`Error`] for the three kinds. There is no deadline: without a server it waits for one,
    /// or until its session is over.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any moment, it leaves no znode and no watch, and its place in the queue is lost.
    /// What has already been sent is undone in the background, by the session.
    ///
    /// # Session loss
    ///
    /// A session that ends while one waits in it takes the place in the queue with it:
    /// [`Error::SessionOver`].
    async fn acquire(&self) -> Result<Hold, Error>;

    /// Waits until the recipe is held, for at most `timeout`.
    ///
    /// The timeout runs on a monotonic clock and bounds everything: the wait for a connection, the
    /// server's round trips, the queue. Otherwise as [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// [`Error::DeadlineElapsed`], and those of [`acquire`](Self::acquire).
    async fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        match tokio::time::timeout(timeout, self.acquire()).await {
            Ok(result) => result,
            Err(_) => {
                let path = self.path().to_string();
                Err(Error::DeadlineElapsed { path, timeout })
            }
        }
    }

    /// Holds the recipe if that is possible at once; `None` where others are before:
    /// [`contenders`](Self::contenders) tells who.
    ///
    /// Looks first, and writes nothing where it cannot win: a failed try costs one read. It waits
    /// for the server's answers, and where no server answers, for a connection; bound it with
    /// [`tokio::time::timeout`] where that is too long.
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// As for [`acquire`](Self::acquire).
    async fn try_acquire(&self) -> Result<Option<Hold>, Error>;

    /// Those who hold or wait, first in the queue first.
    ///
    /// Two requests: the names, then all their data in one read. It is a look at one moment.
    ///
    /// # Errors
    ///
    /// Those of the two requests. An absent directory is an empty queue.
    ///
    /// # Cancel safety
    ///
    /// Leaves nothing behind.
    async fn contenders(&self) -> Result<Vec<QueueEntry>, Error>;

    /// The znode that the recipe is about.
    fn path(&self) -> &NodePath;
}

impl dyn Recipe + '_ {
    /// Acquires, works until the work is done or the hold is lost, and releases.
    ///
    /// The recipes of this project have a method of this name, too; for another, `recipe` is a
    /// `let recipe: &dyn Recipe = &mine;`. The work is dropped where it waits when the hold is lost: see [`Hold::guard`].
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Recipe::acquire) and [`Hold::release`]; [`Error::Lost`] when the hold
    /// was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it drops the work, and what is held is released in the background.
    pub async fn with<T, F>(&self, work: impl FnOnce(HoldView) -> F) -> Result<T, Error>
    where
        F: Future<Output = T>,
    {
        let hold = self.acquire().await?;
        let work = work(hold.view());
        match hold.guard(work).await {
            Ok(done) => hold.release().await.map(|()| done),
            Err(reason) => Err(hold.lost_by(reason)),
        }
    }
}

/// One of those who hold or wait, as [`Recipe::contenders`] saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueEntry {
    /// How many are before it.
    pub position: usize,
    /// The name of its znode.
    pub name: String,
    /// The data of its znode: what its owner says of itself.
    pub data: Vec<u8>,
    /// The session that it ends with.
    pub session_id: SessionId,
    /// The token that it holds with, or will.
    pub fencing_token: FencingToken,
}

/// Makes a type a [`Recipe`] through a field of it that is one, such as a
/// [`Queue`](crate::Queue).
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
        impl $type {
            /// Acquires, works until the work is done or the hold is lost, and releases. The work
            /// is dropped where it waits when the hold is lost.
            ///
            /// # Errors
            ///
            /// Those of [`acquire`]($crate::Recipe::acquire) and
            /// [`release`]($crate::Hold::release); [`Lost`]($crate::Error::Lost) when the hold was
            /// lost before the work was done.
            ///
            /// # Cancel safety
            ///
            /// Dropped, it drops the work, and what is held is released in the background.
            pub async fn with<T, F>(
                &self,
                work: impl ::std::ops::FnOnce($crate::HoldView) -> F,
            ) -> ::std::result::Result<T, $crate::Error>
            where
                F: ::std::future::Future<Output = T>,
            {
                let recipe: &dyn $crate::Recipe = self;
                recipe.with(work).await
            }
        }

        // Spelt out as `#[async_trait]` would, so that the futures are boxed once.
        impl $crate::Recipe for $type {
            fn acquire<'a, 'f>(&'a self) -> $crate::delegated::BoxFuture<'f, $crate::Hold>
            where
                'a: 'f,
                Self: 'f,
            {
                $crate::Recipe::acquire(&self.$field)
            }

            fn try_acquire<'a, 'f>(
                &'a self,
            ) -> $crate::delegated::BoxFuture<'f, ::std::option::Option<$crate::Hold>>
            where
                'a: 'f,
                Self: 'f,
            {
                $crate::Recipe::try_acquire(&self.$field)
            }

            fn contenders<'a, 'f>(
                &'a self,
            ) -> $crate::delegated::BoxFuture<'f, ::std::vec::Vec<$crate::QueueEntry>>
            where
                'a: 'f,
                Self: 'f,
            {
                $crate::Recipe::contenders(&self.$field)
            }

            fn path(&self) -> &$crate::NodePath {
                $crate::Recipe::path(&self.$field)
            }
        }
    };
}
