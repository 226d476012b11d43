//! An overview that a task keeps up to date.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::sync::watch;
use tokio::time::Instant;
use zookeeper_recipes_core::{Error, InvalidInput, Session};

use crate::follower::Follower;
use crate::overview::{Overview, Root};

/// The last overview, and what became of the looks since.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveOverview {
    /// What the last look has shown.
    pub overview: Arc<Overview>,
    /// When that look ended, by the clock of tokio.
    pub looked_at: Instant,
    /// How many looks have failed, of all.
    pub failures: u64,
    /// Why the last look has failed. `None` if it has not.
    pub error: Option<Error>,
    /// True if a watch reports what changes, false if each look reads all.
    pub is_watched: bool,
}

impl LiveOverview {
    /// How long ago the last look ended.
    pub fn age(&self) -> Duration {
        Instant::now().saturating_duration_since(self.looked_at)
    }
}

impl Overview {
    /// Looks at once, and then keeps the overview up to date, with this pause between two looks.
    ///
    /// A task on the current tokio runtime does so, until all receivers are dropped or the session is
    /// closed. Each look is sent, also if nothing has changed: the [`Arc`] is then the same one. While
    /// no server answers, the last overview stays: see [`LiveOverview::age`].
    ///
    /// The first look reads all. A watch of the tree then reports what changes, and a look reads only
    /// that: see the [costs](crate#costs). Many changes of one znode during a pause are one read. All
    /// is read again after a reconnect, in a new session, if more changes come than are noted, and
    /// every ten minutes: no event says that the rights to a znode have changed.
    ///
    /// Servers before ZooKeeper 3.6 have no such watches, nor have the sessions of another client
    /// (`zookeeper-recipes-adapter`). Then each look costs what [`below`](Self::below) costs:
    /// [`LiveOverview::is_watched`] is false. The watch is asked for again every ten minutes, because
    /// the servers may be newer by then, unless a session has ended as it asked.
    ///
    /// # Errors
    ///
    /// Those of [`below`](Self::below), of the first look. [`Error::InvalidInput`] if the pause is
    /// zero.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing remains.
    ///
    /// ```
    /// use std::time::Duration;
    /// use zookeeper_recipes_overview::Overview;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
    /// let mut live = Overview::watch(&session, "/", Duration::from_secs(10)).await?;
    /// live.changed().await?; // after each look
    /// println!("{} queues", live.borrow_and_update().overview.queues().len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn watch(
        session: &Session,
        path: impl AsRef<str>,
        pause: Duration,
    ) -> Result<watch::Receiver<LiveOverview>, Error> {
        if pause.is_zero() {
            let problem = "would leave no pause between two looks";
            return Err(InvalidInput::new("interval", "0", problem).into());
        }
        let mut follower = Follower::new(session, Root::new(path.as_ref())?);
        let overview = follower.look().await?;
        let (sender, receiver) = watch::channel(LiveOverview {
            overview,
            looked_at: Instant::now(),
            failures: 0,
            error: None,
            is_watched: follower.is_watched(),
        });
        let ensemble = session.ensemble().clone();
        let task = async move {
            tokio::select! {
                biased;
                () = sender.closed() => {}
                () = look_again(&sender, follower, pause) => {}
            }
        };
        tokio::spawn(ensemble.task(task.boxed()));
        Ok(receiver)
    }
}

/// Returns when the session is closed.
async fn look_again(sender: &watch::Sender<LiveOverview>, mut follower: Follower, pause: Duration) {
    loop {
        follower.pause(pause).await;
        let looked = follower.look().await;
        let is_over = matches!(looked, Err(Error::NoSession { .. }));
        sender.send_modify(|live| match looked {
            Ok(overview) => {
                live.overview = overview;
                live.looked_at = Instant::now();
                live.error = None;
                live.is_watched = follower.is_watched();
            }
            Err(error) => {
                live.failures += 1;
                live.error = Some(error);
            }
        });
        if is_over {
            return;
        }
    }
}
