//! How a hold stands, asked without keeping it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use tokio::sync::watch;

use crate::error::Error;
use crate::hold::own_znode::OwnNode;
use crate::hold::standing::Standing;
use crate::hold_state::{FencingToken, HoldState, LossReason};
use crate::server::ensemble::SessionId;

/// What a [`Hold`](crate::Hold) can tell, without keeping it.
///
/// Cheap to clone, and [`Send`]: for the tasks that work under a hold, while one place owns it.
/// Once the hold has been released, its view is [`Lost`](HoldState::Lost) with
/// [`LossReason::Released`].
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
    node: Arc<OwnNode>,
    token: FencingToken,
    acquired_at: Instant,
    /// How it was lost when its owner let go of it, or that it was released.
    end: watch::Receiver<Option<LossReason>>,
}

impl HoldView {
    pub(crate) fn new(
        standing: Standing,
        node: OwnNode,
        token: FencingToken,
        end: watch::Receiver<Option<LossReason>>,
    ) -> HoldView {
        HoldView {
            standing,
            node: Arc::new(node),
            token,
            acquired_at: Instant::now(),
            end,
        }
    }

    /// The path of the holder's znode. [`Recipe::path`](crate::Recipe::path) is its directory.
    pub fn node_path(&self) -> &str {
        self.node.path()
    }

    /// The number by which a store can tell this holder from an older one.
    pub fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// The ZooKeeper session that the hold belongs to and ends with.
    pub fn session_id(&self) -> SessionId {
        self.standing.live.id()
    }

    /// When it was acquired.
    pub fn acquired_at(&self) -> Instant {
        self.acquired_at
    }

    /// How it stands now. Looks at the clock; sends nothing.
    pub fn state(&self) -> HoldState {
        match self.end() {
            Some(reason) => HoldState::Lost(reason),
            None => self.standing.state(),
        }
    }

    /// Whether it is certainly held still: `false` just when the [`state`](Self::state) is
    /// [`Lost`](HoldState::Lost).
    ///
    /// Right after a pause of the process, too, however long: the answer comes from a clock that
    /// does not stop, and not from an event that has yet to arrive. If somebody deletes the holder's
    /// znode by hand, this says yes for a sixth of the session timeout more at most.
    pub fn is_held(&self) -> bool {
        !matches!(self.state(), HoldState::Lost(_))
    }

    /// For how long it is certainly held if no answer comes from the server any more; zero when
    /// it is lost.
    pub fn remaining(&self) -> Duration {
        match self.state() {
            HoldState::Lost(_) => Duration::ZERO,
            HoldState::Held | HoldState::Suspended => self.standing.live.remaining(),
        }
    }

    /// Resolves when the hold is lost, before anyone else can hold. If somebody deletes the
    /// holder's znode by hand, within a sixth of the session timeout at most.
    ///
    /// "Before" is by the clock of the runtime that it is awaited in: needs that runtime to run
    /// and to have its time enabled, and not the session's. Looks at the clock each time that it is
    /// polled.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again.
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

    pub(crate) fn node(&self) -> &OwnNode {
        &self.node
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Why it was lost, or that it was released, if its owner has let go of it.
    pub(crate) fn end(&self) -> Option<LossReason> {
        *self.end.borrow()
    }

    /// What to tell somebody whose work depended on the hold.
    pub(crate) fn lost_by(&self, reason: LossReason) -> Error {
        Error::Lost {
            path: self.node_path().to_owned(),
            session: self.session_id(),
            reason,
        }
    }

    /// Resolves when its owner has let go of it.
    async fn ended(&self) -> LossReason {
        let mut end = self.end.clone();
        // An error means that it has ended, too.
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
