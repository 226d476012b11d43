//! An overview that a task keeps up to date.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::{Error, InvalidInput, Session};

use crate::overview::Overview;

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
}

impl Overview {
    /// Looks at once, and then again and again, with this pause between two looks.
    ///
    /// A task on the current tokio runtime does so, until all receivers are dropped or the session is
    /// closed. Each look costs what [`below`](Self::below) costs. While no server answers, the last
    /// overview stays: see [`LiveOverview::looked_at`].
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
        let path = path.as_ref().to_owned();
        let overview = Overview::below(session, &path).await?;
        let (sender, receiver) = watch::channel(LiveOverview {
            overview: Arc::new(overview),
            looked_at: Instant::now(),
            failures: 0,
            error: None,
        });
        let (session, ensemble) = (session.clone(), session.ensemble().clone());
        let task = async move {
            tokio::select! {
                biased;
                () = sender.closed() => {}
                () = look_again(&sender, session, &path, pause) => {}
            }
        };
        tokio::spawn(ensemble.task(task.boxed()));
        Ok(receiver)
    }
}

/// Returns when the session is closed.
async fn look_again(
    sender: &watch::Sender<LiveOverview>,
    session: Session,
    path: &str,
    pause: Duration,
) {
    loop {
        sleep(pause).await;
        let looked = Overview::below(&session, path).await;
        let is_over = matches!(looked, Err(Error::NoSession { .. }));
        sender.send_modify(|live| match looked {
            Ok(overview) => {
                live.overview = Arc::new(overview);
                live.looked_at = Instant::now();
                live.error = None;
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
