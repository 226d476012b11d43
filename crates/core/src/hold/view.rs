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
use crate::hold::unanswered::Unanswered;
use crate::hold_state::{FencingToken, HoldState, LossReason};
use crate::server::ensemble::SessionId;

/// The state of a [`Hold`](crate::Hold), for tasks that do not own the hold.
///
/// Cheap to clone, and [`Send`]. Does not keep the hold: one place owns the hold, and the tasks
/// that work under it take views. Once the hold is released, its views are
/// [`Lost`](HoldState::Lost) with [`LossReason::Released`].
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
    /// The reason of the end, once the owner has released or dropped the hold.
    end: watch::Receiver<Option<LossReason>>,
    lost_at: LostAt,
    unanswered: Arc<Unanswered>,
}

impl HoldView {
    pub(crate) fn new(
        standing: Standing,
        znode: OwnZnode,
        token: FencingToken,
        end: watch::Receiver<Option<LossReason>>,
        lost_at: LostAt,
    ) -> HoldView {
        HoldView {
            standing,
            znode: Arc::new(znode),
            token,
            acquired_at: Instant::now(),
            end,
            lost_at,
            unanswered: Arc::new(Unanswered::new()),
        }
    }

    /// The path of the holder's znode. [`Recipe::path`](crate::Recipe::path) is its directory.
    pub fn node_path(&self) -> &str {
        self.znode.path()
    }

    /// The token by which a store tells this holder from an older one.
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
            Some(reason) => HoldState::Lost(reason),
            None => self.standing.state(),
        }
    }

    /// True if the recipe is certainly still held.
    ///
    /// False if, and only if, the [`state`](Self::state) is [`Lost`](HoldState::Lost). The answer
    /// is right after a pause of the process of any length, because it comes from a clock that does
    /// not stop. It does not wait for an event from the server.
    ///
    /// Does not notice at once that somebody deletes the holder's znode by hand. The answer may
    /// then stay true for up to a sixth of the session timeout. In a session with thousands of
    /// holds it may stay true for longer: see [`docs::failures`](crate::docs::failures).
    pub fn is_held(&self) -> bool {
        !matches!(self.state(), HoldState::Lost(_))
    }

    /// How long the recipe is certainly held if the server sends no further answer.
    ///
    /// Zero if the hold is lost.
    pub fn remaining(&self) -> Duration {
        match self.state() {
            HoldState::Lost(_) => Duration::ZERO,
            HoldState::Held | HoldState::Suspended => self.standing.live.remaining(),
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

    /// Resolves when the hold is lost, before another contender can hold.
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
    /// # use zookeeper_recipes_core::{Hold, LossReason};
    /// # async fn work() -> Result<(), LossReason> { Ok(()) }
    /// # async fn example(hold: Hold) -> Result<(), LossReason> {
    /// tokio::select! {
    ///     done = work() => done?,
    ///     reason = hold.lost() => return Err(reason),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) -> LossReason {
        tokio::select! {
            biased;
            reason = self.ended() => reason,
            reason = self.standing.lost() => reason,
        }
    }

    /// The state now, and then each change.
    ///
    /// Ends after [`HoldState::Lost`]. Does not keep the hold.
    pub fn states(&self) -> impl Stream<Item = HoldState> + Send + Unpin + 'static + use<> {
        let view = self.clone();
        stream::unfold((view, None), |(view, last)| async move {
            if matches!(last, Some(HoldState::Lost(_))) {
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
    pub(crate) fn unanswered(&self) -> &Unanswered {
        &self.unanswered
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The reason of the end, if the owner has released or dropped the hold.
    pub(crate) fn end(&self) -> Option<LossReason> {
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

    /// Resolves when the owner has released or dropped the hold.
    async fn ended(&self) -> LossReason {
        let mut end = self.end.clone();
        // An error means that the hold has ended, too.
        let end = end.wait_for(Option::is_some).await.ok();
        end.and_then(|end| *end).unwrap_or(LossReason::Released)
    }

    /// Resolves with the first state that is not `last`.
    async fn changed_from(&self, last: Option<HoldState>) -> HoldState {
        tokio::select! {
            biased;
            reason = self.ended() => HoldState::Lost(reason),
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
