//! Campaign, work while leading, stop in time, campaign again.

use std::pin::pin;
use std::time::Duration;

use futures_util::stream::StreamExt;
use tokio::time::Instant;
use zookeeper_recipes_core::{Error, HoldState, HoldView};

use crate::backoff::Backoff;
use crate::hold::{Leadership, Term};
use crate::recipe::LeaderElection;

/// A term that ends sooner is followed by a pause: work that returns at once is no busy loop.
const SHORT_TERM: Duration = Duration::from_secs(1);

/// When [`LeaderElection::run`] takes the work away from a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StopWork {
    /// As soon as no answer comes from the server ([`HoldState::Suspended`]): there is time then
    /// to end it in good order before another can lead. The safe choice.
    #[default]
    WhenSuspended,
    /// Only when the leadership is lost ([`HoldState::Lost`]): a disconnection that is over in
    /// time disturbs nothing. What the work still does at that moment, such as a request to
    /// another service that is under way, may meet what the next leader does.
    WhenLost,
}

/// Why [`LeaderElection::run`] ended, when it was not told to.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E> {
    /// It cannot campaign, or not resign, and trying again would not help.
    #[error(transparent)]
    Election(#[from] Error),
    /// The work failed, with this.
    #[error("the leader's work failed: {0}")]
    Work(E),
}

/// How a leader's term came to its end.
enum End<E> {
    ShutDown,
    Stopped,
    Worked(Result<(), E>),
}

impl LeaderElection {
    /// Campaigns, does the work while it leads, and campaigns again, until `shutdown` resolves or
    /// the work fails.
    ///
    /// Each [`Term`], `work` is called with it, and its future is polled only while the leadership is
    /// held. The future is dropped when the leadership may be about to go
    /// ([`stop_work`](Self::stop_work) says when), before another can lead. Then this candidate
    /// resigns, and campaigns again once there is a connection: under the same session or, after
    /// an expiry, under a new one.
    ///
    /// * When the work returns `Ok`, it resigns and campaigns again: a term was enough, and others
    ///   get theirs. If a term lasts less than a second, a pause follows, from 20 ms after the first
    ///   such term in a row up to a second.
    /// * When the work returns an error, it resigns and returns that error.
    /// * When the work panics, it resigns, and the panic goes on to the caller.
    /// * When `shutdown` resolves, the work is dropped, it resigns, and returns `Ok`.
    ///
    /// So it never ends without telling. However it ends, it has resigned; unless it was dropped
    /// or panicked, the server has confirmed that, or the session is over. Without a server that
    /// is waited for, at most until the session is over: bound it with
    /// `tokio::time::timeout` if a process must end sooner.
    ///
    /// Dropping a future stops it where it waits. Work that blocks its thread, or that was spawned
    /// elsewhere, goes on until it looks: let it ask [`is_held`](HoldView::is_held), and let what it writes be
    /// checked against the [`fencing_token`](HoldView::fencing_token) ([`Hold`](crate::Hold) says what that is
    /// worth).
    ///
    /// To show elsewhere that this process leads, hand the [`Term`] out, for example through a
    /// `tokio::sync::watch` channel, and ask [`is_held`](HoldView::is_held).
    ///
    /// Where this is part of a task that is spawned, let the closure own what it uses, as in
    /// `async move |term| …`: the compiler cannot tell yet that it is `Send` where it borrows.
    ///
    /// # Errors
    ///
    /// [`RunError::Work`] with the work's error. [`RunError::Election`] when trying again would not
    /// help: no permission ([`Error::Refused`]), the session closed ([`Error::NoSession`]). What may
    /// pass is tried again: a session that has expired, no answer, a server that is overloaded or
    /// only reads, a candidate's znode that somebody has deleted.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it drops the work and resigns in the background.
    ///
    /// ```
    /// # use zookeeper_recipes_core::ConnectOptions;
    /// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
    /// use tokio::sync::oneshot;
    /// use zookeeper_recipes_election::{LeaderElection, Session};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulation = Simulation::new(SimulationOptions::default());
    /// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
    /// let election = LeaderElection::new(&session, "/app/leader", "node-7")?;
    /// let (shut_down, shutdown) = oneshot::channel::<()>();
    /// let mut shut_down = Some(shut_down);
    ///
    /// election
    ///     .run(
    ///         async {
    ///             let _ = shutdown.await;
    ///         },
    ///         async |term| {
    ///             println!("{} leads with token {}", term.id(), term.fencing_token());
    ///             shut_down.take();
    ///             std::future::pending::<std::io::Result<()>>().await
    ///         },
    ///     )
    ///     .await?;
    /// assert_eq!(election.leader().await?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run<E>(
        &self,
        shutdown: impl Future<Output = ()>,
        mut work: impl AsyncFnMut(Term) -> Result<(), E>,
    ) -> Result<(), RunError<E>> {
        let mut shutdown = pin!(shutdown);
        let mut pause = Backoff::new();
        loop {
            let leadership = tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                elected = self.until_elected() => elected?,
            };
            let began = Instant::now();
            let term = tokio::select! {
                // The work is not even polled once it has to stop.
                biased;
                () = &mut shutdown => End::ShutDown,
                () = must_stop(&leadership, self.stop_work) => End::Stopped,
                result = work(leadership.term()) => End::Worked(result),
            };
            let resigned = resign(leadership).await;
            match term {
                End::Worked(Err(error)) => return Err(RunError::Work(error)),
                End::ShutDown => return Ok(resigned?),
                End::Stopped | End::Worked(Ok(())) => resigned?,
            }
            if began.elapsed() >= SHORT_TERM {
                pause = Backoff::new();
                continue;
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                () = pause.wait() => {}
            }
        }
    }

    /// Campaigns until it leads, or until there is no use in trying again.
    async fn until_elected(&self) -> Result<Leadership, Error> {
        let mut backoff = Backoff::new();
        loop {
            // If the session is over, the campaign says so.
            let _ = self.queue.session().wait_connected().await;
            match self.campaign().await {
                Err(error) if may_pass(&error) => {
                    tracing::warn!(%error, "campaigning again");
                    backoff.wait().await;
                }
                elected => return elected,
            }
        }
    }
}

/// Whether another attempt may go better. What is over for good, the next attempt is told.
fn may_pass(error: &Error) -> bool {
    error.is_retryable() || matches!(error, Error::SessionOver { .. })
}

/// Resolves when the work has to stop. Looks at the hold, clock and all, each time it is polled,
/// and so never lets the work run on after a pause of the process.
async fn must_stop(hold: &HoldView, when: StopWork) {
    let mut states = hold.states();
    while let Some(state) = states.next().await {
        match (state, when) {
            (HoldState::Held, _) | (HoldState::Suspended, StopWork::WhenLost) => {}
            (HoldState::Suspended, StopWork::WhenSuspended) | (HoldState::Lost(_), _) => return,
        }
    }
}

/// Gives up what may have been lost already.
///
/// # Errors
///
/// When the server would not let the candidate go: it would stand in its own way.
async fn resign(leadership: Leadership) -> Result<(), Error> {
    match leadership.resign().await {
        Err(error @ Error::Refused { .. }) => {
            tracing::warn!(%error, "the leadership was not given up");
            Err(error)
        }
        Err(error) => {
            tracing::debug!(%error, "the leadership had gone before it was given up");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
