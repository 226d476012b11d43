//! The view of a hold: its state, for tasks that do not own the hold.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, Stream, StreamExt};
use tokio::sync::watch;

use crate::error::Error;
use crate::events::holding::LostAt;
use crate::hold::own_znode::OwnZnode;
use crate::hold::standing::Standing;
use crate::hold::unanswered::UnansweredWrites;
use crate::hold_state::{Ended, FencingToken, HoldState, LossReason};
use crate::server::ensemble::SessionId;

/// The state of a [`Hold`](crate::Hold), for tasks that do not own the hold.
///
/// Cheap to clone, and [`Send`]. Does not keep the hold: one place owns the hold, and the tasks
/// that work under it take views. A view has no `lost`: its task must stop when the hold is
/// released, too. So it awaits [`ended`](Self::ended).
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
    standing: Standing,
    znode: Arc<OwnZnode>,
    token: FencingToken,
    acquired_at: Instant,
    /// How the hold ended, once the owner has released or dropped the hold.
    end: watch::Receiver<Option<Ended>>,
    lost_at: LostAt,
    unanswered: Arc<UnansweredWrites>,
}

impl HoldView {
    pub(crate) fn new(
        standing: Standing,
        znode: OwnZnode,
        token: FencingToken,
        end: watch::Receiver<Option<Ended>>,
        lost_at: LostAt,
    ) -> HoldView {
        HoldView {
            standing,
            znode: Arc::new(znode),
            token,
            acquired_at: Instant::now(),
            end,
            lost_at,
            unanswered: Arc::new(UnansweredWrites::new()),
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
        self.standing.live.id()
    }

    /// When the hold was acquired.
    pub fn acquired_at(&self) -> Instant {
        self.acquired_at
    }

    /// The state now. Looks at the clock, and sends nothing.
    pub fn state(&self) -> HoldState {
        match self.end() {
            Some(Ended::Released) => HoldState::Released,
            Some(Ended::Lost(reason)) => HoldState::Lost(reason),
            None => self.standing.state(),
        }
    }

    /// True if the recipe is certainly still held.
    ///
    /// False if, and only if, the [`state`](Self::state) is [`Lost`](HoldState::Lost) or
    /// [`Released`](HoldState::Released). The answer is right after a pause of the process of any
    /// length, because it comes from a clock that does not stop. It does not wait for an event from
    /// the server.
    ///
    /// Does not notice at once that somebody deletes the holder's znode by hand. The answer may
    /// then stay true for up to a sixth of the session timeout. In a session with thousands of
    /// holds it may stay true for longer: see [`docs::failures`](crate::docs::failures).
    pub fn is_held(&self) -> bool {
        self.state().ended().is_none()
    }

    /// How long the recipe is certainly held if the server sends no further answer.
    ///
    /// Not longer than the rest of the hold's [time limit](crate::QueueOptions::at_most). Zero if
    /// the hold has ended.
    pub fn remaining(&self) -> Duration {
        match self.is_held() {
            true => self.standing.remaining(),
            false => Duration::ZERO,
        }
    }

    /// How long the owner has kept the hold since its loss was noticed.
    ///
    /// `None` if the hold is not lost, or once the owner has released or dropped it. It is for
    /// health checks: if work goes on after its hold is lost, its owner keeps the hold.
    pub fn kept_after_loss(&self) -> Option<Duration> {
        if self.end().is_some() {
            return None;
        }
        let noticed = self.lost_at.get().map(tokio::time::Instant::elapsed);
        (!self.is_held()).then(|| noticed.unwrap_or_default())
    }

    /// Resolves when the hold has ended: when its owner releases or drops it, or when it is lost.
    ///
    /// A loss resolves the future before another contender can hold. A task with a view has to stop
    /// after either end: nothing protects its work any more.
    ///
    /// Does not resolve in time if somebody deletes the holder's znode by hand. It then resolves
    /// within a sixth of the session timeout, or later in a session with thousands of holds. Another
    /// contender may hold before that.
    ///
    /// The time is measured in the runtime that polls this future. That runtime must run, and its
    /// time must be enabled. The session's runtime need not run. The future looks at the clock each
    /// time it is polled.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
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
            reason = self.standing.lost() => Ended::Lost(reason),
        }
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
            let state = view.changed_from(last).await;
            Some((state, (view, Some(state))))
        })
        .boxed()
    }

    pub(crate) fn znode(&self) -> &OwnZnode {
        &self.znode
    }

    /// The guarded writes of this hold that have no answer.
    pub(crate) fn unanswered(&self) -> &UnansweredWrites {
        &self.unanswered
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    /// How the hold ended, if the owner has released or dropped the hold.
    pub(crate) fn end(&self) -> Option<Ended> {
        *self.end.borrow()
    }

    /// The error for work that depended on the hold.
    pub(crate) fn lost_by(&self, reason: LossReason) -> Error {
        Error::Lost {
            path: self.node_path().to_owned(),
            session: self.session_id(),
            reason,
        }
    }

    /// The error for work that depended on a hold that has ended.
    pub(crate) fn ended_by(&self, ended: Ended) -> Error {
        match ended {
            Ended::Lost(reason) => self.lost_by(reason),
            Ended::Released => Error::Released {
                path: self.node_path().to_owned(),
                session: self.session_id(),
            },
        }
    }

    /// Resolves when the owner has released or dropped the hold.
    pub(crate) async fn ended_by_owner(&self) -> Ended {
        let mut end = self.end.clone();
        // An error means that the hold has ended, too.
        let end = end.wait_for(Option::is_some).await.ok();
        end.and_then(|end| *end).unwrap_or(Ended::Released)
    }

    /// Resolves with the first state that is not `last`.
    async fn changed_from(&self, last: Option<HoldState>) -> HoldState {
        tokio::select! {
            biased;
            ended = self.ended_by_owner() => match ended {
                Ended::Released => HoldState::Released,
                Ended::Lost(reason) => HoldState::Lost(reason),
            },
            state = self.standing.changed_from(last) => state,
        }
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
