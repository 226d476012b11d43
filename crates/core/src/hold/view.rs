//! The public view of a hold.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};

use crate::error::Error;
use crate::hold::grant::Grant;
use crate::hold_state::{Ended, FencingToken, HoldState};
use crate::server::ensemble::SessionId;

/// The state of a [`Hold`](crate::Hold), for tasks that do not own the hold.
///
/// A view is cheap to clone. It does not keep the hold: one place owns the hold, and the tasks that
/// work under it take views. Such a task must stop when the hold is released, too, so it awaits
/// [`ended`](Self::ended).
///
/// # Cancel safety
///
/// Each future of a view may be dropped, and its method called again.
///
/// ```
/// use zookeeper_recipes_core::{Error, Recipe};
///
/// async fn import(recipe: &dyn Recipe, files: Vec<String>) -> Result<(), Error> {
///     let hold = recipe.acquire().await?;
///     let view = hold.view();
///     let work = tokio::task::spawn_blocking(move || {
///         for file in files.iter().take_while(|_| view.is_held()) {
///             println!("{file}, with token {}", view.fencing_token());
///         }
///     });
///     work.await.expect("the work does not panic");
///     hold.release().await
/// }
/// ```
pub struct HoldView {
    pub(crate) grant: Arc<Grant>,
}

impl HoldView {
    /// A view of this grant, which counts as long as it lives.
    pub(crate) fn new(grant: Arc<Grant>) -> HoldView {
        grant.views.fetch_add(1, Ordering::Relaxed);
        HoldView { grant }
    }

    /// The path of the holder's znode. [`Recipe::path`](crate::Recipe::path) is its directory.
    pub fn node_path(&self) -> &str {
        self.grant.znode.path()
    }

    /// The token by which a store distinguishes this holder from an older one.
    pub fn fencing_token(&self) -> FencingToken {
        self.grant.terms.token
    }

    /// The ZooKeeper session that the hold belongs to. The hold ends with it.
    pub fn session_id(&self) -> SessionId {
        self.grant.live().id
    }

    /// When the hold was acquired.
    pub fn acquired_at(&self) -> std::time::Instant {
        self.grant.acquired_at
    }

    /// The state now, by the clock. The call sends nothing.
    ///
    /// The reason of a loss stays the same.
    pub fn state(&self) -> HoldState {
        self.grant.state()
    }

    /// True if the recipe is certainly still held. The call sends nothing.
    ///
    /// False if, and only if, the [`state`](Self::state) is [`Lost`](HoldState::Lost) or
    /// [`Released`](HoldState::Released). The answer is right after a pause of the process of any
    /// length, because it comes from a clock that does not stop. It does not wait for an event from
    /// the server.
    ///
    /// If somebody deletes the holder's znode by hand, the answer is
    /// [late](crate::Hold#what-it-promises).
    pub fn is_held(&self) -> bool {
        self.grant.ended().is_none()
    }

    /// How long the recipe is certainly held if the server sends no further answer.
    ///
    /// It is at most the rest of the hold's [time limit](crate::QueueOptions::max_hold), and zero if
    /// the hold has ended.
    pub fn remaining(&self) -> Duration {
        match self.grant.ended() {
            Some(_) => Duration::ZERO,
            None => self.grant.remaining_until(self.grant.terms.deadline),
        }
    }

    /// How long the owner has kept the hold since its loss was noticed.
    ///
    /// `None` if the hold is not lost, or once the owner has released or dropped it. It is for
    /// health checks: if work continues after its hold is lost, its owner keeps the hold.
    pub fn kept_after_loss(&self) -> Option<Duration> {
        self.grant.kept_after_loss()
    }

    /// Resolves when the hold has ended: when its owner releases or drops it, or when it is lost.
    ///
    /// A loss resolves the future before another contender can hold, unless somebody deletes the
    /// holder's znode by hand ([late](crate::Hold#what-it-promises)). A task with a view has to stop
    /// after either end: nothing protects its work any more.
    ///
    /// The time is measured in the runtime that polls this future. That runtime must run, and its
    /// time must be enabled. The session's runtime need not run. The future looks at the clock each
    /// time it is polled.
    ///
    /// ```
    /// # use zookeeper_recipes_core::{Ended, HoldView};
    /// # async fn work() -> Result<(), Ended> { Ok(()) }
    /// # async fn example(view: HoldView) -> Result<(), Ended> {
    /// tokio::select! {
    ///     done = work() => done?,
    ///     ended = view.ended() => return Err(ended),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ended(&self) -> Ended {
        self.grant.until_ended().await
    }

    /// The state now, and then each change.
    ///
    /// The stream ends after [`HoldState::Released`] or [`HoldState::Lost`]. It does not keep the
    /// hold.
    pub fn states(&self) -> impl Stream<Item = HoldState> + Send + Unpin + 'static + use<> {
        let view = self.clone();
        stream::unfold((view, None), |(view, last)| async move {
            if last.is_some_and(|last: HoldState| last.ended().is_some()) {
                return None;
            }
            let is_new = |state: &HoldState| Some(*state) != last;
            let changed = || Some(view.state()).filter(is_new);
            let state = view.grant.until(changed).await;
            Some((state, (view, Some(state))))
        })
        .boxed()
    }

    /// The error for work that depended on a hold that has ended.
    pub(crate) fn ended_error(&self, ended: Ended) -> Error {
        let (path, session) = (self.node_path(), self.session_id());
        match ended {
            Ended::Lost(reason) => Error::lost(path, session, reason),
            Ended::Released => Error::Released {
                path: path.to_owned(),
                session,
            },
        }
    }
}

impl Clone for HoldView {
    fn clone(&self) -> HoldView {
        HoldView::new(self.grant.clone())
    }
}

impl Drop for HoldView {
    fn drop(&mut self) {
        // What this view has said comes before all that its last reader does then.
        self.grant.views.fetch_sub(1, Ordering::Release);
    }
}

impl fmt::Debug for HoldView {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HoldView")
            .field("node_path", &self.node_path())
            .field("fencing_token", &self.fencing_token())
            .field("session_id", &self.session_id())
            .field("state", &self.state())
            .finish()
    }
}
