//! The view of a hold: its state, for tasks that do not own the hold.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, Stream, StreamExt};
use tokio::sync::SetOnce;

use crate::error::Error;
use crate::hold::grant_state::GrantState;
use crate::hold::own_znode::Znode;
use crate::hold_state::{Ended, FencingToken, HoldState, LossReason};
use crate::server::ensemble::SessionId;

/// The state of a [`Hold`](crate::Hold), for tasks that do not own the hold.
///
/// A view is cheap to clone, and [`Send`]. It does not keep the hold: one place owns the hold, and
/// the tasks that work under it take views. A view has no `lost`: its task must stop when the hold
/// is released, too. So it awaits [`ended`](Self::ended).
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
#[derive(Clone)]
pub struct HoldView {
    pub(crate) grant_state: GrantState,
    pub(crate) znode: Znode,
    token: FencingToken,
    acquired_at: Instant,
    /// How the hold ended, once the owner has released or dropped it. The views share it.
    pub(crate) owner_end: Arc<SetOnce<Ended>>,
}

impl HoldView {
    pub(crate) fn new(grant_state: GrantState, znode: Znode, token: FencingToken) -> HoldView {
        HoldView {
            grant_state,
            znode,
            token,
            acquired_at: Instant::now(),
            owner_end: Arc::default(),
        }
    }

    /// The path of the holder's znode. [`Recipe::path`](crate::Recipe::path) is its directory.
    pub fn node_path(&self) -> &str {
        self.znode.path()
    }

    /// The token by which a store distinguishes this holder from an older one.
    pub fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// The ZooKeeper session that the hold belongs to.
    ///
    /// The hold ends with it.
    pub fn session_id(&self) -> SessionId {
        self.grant_state.live.id
    }

    /// When the hold was acquired.
    pub fn acquired_at(&self) -> Instant {
        self.acquired_at
    }

    /// The state now, by the clock. The call sends nothing.
    ///
    /// The reason of a loss stays the same. If the holder's znode was deleted a moment ago, it is
    /// [`DeletedOrSessionOver`](LossReason::DeletedOrSessionOver), because no server has said yet
    /// how. [`ended`](Self::ended) waits for the answer.
    pub fn state(&self) -> HoldState {
        let ended = self.owner_end().map(HoldState::from);
        ended.unwrap_or_else(|| self.grant_state.state())
    }

    /// True if the recipe is certainly still held.
    ///
    /// False if, and only if, the [`state`](Self::state) is [`Lost`](HoldState::Lost) or
    /// [`Released`](HoldState::Released). The answer is right after a pause of the process of any
    /// length, because it comes from a clock that does not stop. It does not wait for an event from
    /// the server.
    ///
    /// If somebody deletes the holder's znode by hand, the answer is
    /// [late](crate::Hold#what-it-promises).
    pub fn is_held(&self) -> bool {
        self.owner_end().is_none() && self.grant_state.is_held()
    }

    /// How long the recipe is certainly held if the server sends no further answer.
    ///
    /// It is at most the rest of the hold's [time limit](crate::QueueOptions::at_most), and zero if
    /// the hold has ended.
    pub fn remaining(&self) -> Duration {
        match self.is_held() {
            true => self.grant_state.remaining(),
            false => Duration::ZERO,
        }
    }

    /// How long the owner has kept the hold since its loss was noticed.
    ///
    /// `None` if the hold is not lost, or once the owner has released or dropped it. It is for
    /// health checks: if work continues after its hold is lost, its owner keeps the hold.
    pub fn kept_after_loss(&self) -> Option<Duration> {
        if self.owner_end().is_some() {
            return None;
        }
        let noticed = self.grant_state.loss.get();
        let noticed = noticed.map(|loss| loss.noticed.elapsed());
        (!self.is_held()).then(|| noticed.unwrap_or_default())
    }

    /// Resolves when the hold has ended: when its owner releases or drops it, or when it is lost.
    ///
    /// A loss resolves the future before another contender can hold. A task with a view has to stop
    /// after either end: nothing protects its work any more.
    ///
    /// If somebody deletes the holder's znode by hand, the future resolves
    /// [late](crate::Hold#what-it-promises), once a server has answered if the session lasts. So it
    /// may resolve up to a twentieth of the session timeout later than [`is_held`](Self::is_held)
    /// turns false.
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
        tokio::select! {
            biased;
            ended = self.ended_by_owner() => ended,
            reason = self.grant_state.lost() => Ended::Lost(reason),
        }
    }

    /// Resolves as soon as the hold has ended. The reason may not be known yet.
    ///
    /// As [`ended`](Self::ended), but does not wait for the answer that says why the holder's znode
    /// was deleted.
    ///
    /// ```
    /// # use zookeeper_recipes_core::{Ended, HoldView};
    /// # async fn work() {}
    /// # async fn example(view: HoldView) -> Result<(), Ended> {
    /// tokio::select! {
    ///     biased;
    ///     () = view.not_held() => return Err(view.ended().await),
    ///     () = work() => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn not_held(&self) {
        tokio::select! {
            biased;
            _ = self.ended_by_owner() => {}
            () = self.grant_state.not_held() => {}
        }
    }

    /// The state now, and then each change.
    ///
    /// The stream ends after [`HoldState::Released`] or [`HoldState::Lost`]. It does not keep the
    /// hold. As [`ended`](Self::ended), it waits for the reason of a loss.
    pub fn states(&self) -> impl Stream<Item = HoldState> + Send + Unpin + 'static + use<> {
        let view = self.clone();
        stream::unfold((view, None), |(view, last)| async move {
            if last.is_some_and(|last: HoldState| last.ended().is_some()) {
                return None;
            }
            let state = tokio::select! {
                biased;
                ended = view.ended_by_owner() => ended.into(),
                state = view.grant_state.changed_from(last) => state,
            };
            Some((state, (view, Some(state))))
        })
        .boxed()
    }

    /// How the hold ended, if the owner has released or dropped the hold.
    pub(crate) fn owner_end(&self) -> Option<Ended> {
        self.owner_end.get().copied()
    }

    /// The error for work that depended on a lost hold.
    ///
    /// The reason is this one, unless an earlier one is known.
    pub(crate) fn lost_error(&self, reason: LossReason) -> Error {
        let reason = self.grant_state.lost_for(reason);
        Error::lost(self.node_path(), self.session_id(), reason)
    }

    /// The error for work that depended on a hold that has ended.
    pub(crate) fn ended_error(&self, ended: Ended) -> Error {
        match ended {
            Ended::Lost(reason) => self.lost_error(reason),
            Ended::Released => Error::Released {
                path: self.node_path().to_owned(),
                session: self.session_id(),
            },
        }
    }

    pub(crate) async fn ended_by_owner(&self) -> Ended {
        *self.owner_end.wait().await
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
