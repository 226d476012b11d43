//! Campaign, work while leading, stop in time, campaign again.

use std::pin::pin;
use std::time::Duration;

use futures_util::stream::StreamExt;
use tokio::time::Instant;
use zookeeper_recipes_core::{Backoff, Error, HoldState, HoldView, InvalidInput};

use crate::leadership::{Leadership, Term};
use crate::recipe::{LeaderElection, StopWork};

/// After a shorter term `run` pauses, so that work that returns at once is no busy loop.
const SHORT_TERM: Duration = Duration::from_secs(1);

/// Why [`LeaderElection::run`] ended before the shutdown.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E> {
    /// The candidate cannot campaign or resign, and another try would not help.
    #[error(transparent)]
    Election(#[from] Error),
    /// The work returned this error.
    #[error("the leader's work failed: {0}")]
    Work(E),
}

impl<E> From<InvalidInput> for RunError<E> {
    fn from(error: InvalidInput) -> RunError<E> {
        RunError::Election(error.into())
    }
}

/// How a leader's term ended.
enum End<E> {
    ShutDown,
    Stopped,
    Worked(Result<(), E>),
}

impl LeaderElection {
    /// Campaigns, works while this candidate leads, and campaigns again, until `shutdown`.
    ///
    /// For each leadership `run` calls `work` with the [`Term`], and polls the future while the
    /// leadership is held. `run` drops the future before another candidate can lead:
    /// [`stop_work`](Self::stop_work) sets when. Then this candidate resigns, waits for a
    /// connection, and campaigns again. After an expiry it campaigns in a new session.
    ///
    /// | what happens | what `run` does |
    /// |---|---|
    /// | the leadership may be lost | drops the work, resigns, campaigns again |
    /// | another candidate should lead: a [transfer](Self::transfer_to), or this candidate is on [standby](Self::standby) | drops the work, resigns, campaigns again |
    /// | the session expires | drops the work, campaigns again in a new session |
    /// | `work` returns `Ok` | resigns, and campaigns again behind the other candidates |
    /// | `work` returns an error | resigns, and returns [`RunError::Work`] |
    /// | `work` panics | resigns in the background, and passes the panic on |
    /// | `shutdown` resolves | drops the work, resigns, and returns `Ok`: see [below](#drain-at-the-shutdown) |
    ///
    /// If a term lasts less than a second, a pause follows: 20 ms after the first short term, twice
    /// as long after each further one, up to a second.
    ///
    /// `run` resigns before it returns, and waits until the server confirms the resignation, the
    /// leadership is lost, or the session is over. If no server answers, this takes as long as the
    /// lease runs. The znode of a lost leadership is deleted in the background. If the process must
    /// end sooner, bound `run` with [`tokio::time::timeout`].
    ///
    /// `run` does not stop work that blocks its thread, or work in a task of its own. Such work must
    /// ask [`is_held`](crate::HoldView::is_held), and the store that it writes to must check the
    /// [`fencing_token`](crate::HoldView::fencing_token). See [`Hold`](crate::Hold) for what each promises.
    ///
    /// Elsewhere in the process, ask [`is_leader`](Self::is_leader) of a clone of this election.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | each term: as [`acquire`](Self::acquire), a read of the directory, and the release | 3 or 4, and more to wait | 2 or 3, and more to wait | 1 or 3 |
    /// | on standby, or a successor is named: those of [`asked_to_resign`](Leadership::asked_to_resign) | 1 or more | 1 or more | 1 |
    ///
    /// # Drain at the shutdown
    ///
    /// `run` polls the work until `shutdown` resolves. So if work that is under way should finish
    /// first, let `shutdown` wait for it. The leadership is held meanwhile, and a loss still drops
    /// the work:
    ///
    /// ```
    /// # use tokio::sync::watch;
    /// # use zookeeper_recipes_election::{LeaderElection, RunError, Term};
    /// # async fn serve(term: Term, drain: watch::Receiver<bool>) -> std::io::Result<()> { Ok(()) }
    /// # async fn example(election: LeaderElection, sigterm: impl Future<Output = ()>)
    /// #     -> Result<(), RunError<std::io::Error>> {
    /// let (draining, _) = watch::channel(false);
    /// let shutdown = async {
    ///     sigterm.await;
    ///     draining.send_replace(true); // `serve` takes no further request, and returns later
    ///     draining.closed().await; // it has dropped its receiver
    /// };
    /// election.run(shutdown, async |term| serve(term, draining.subscribe()).await).await
    /// # }
    /// ```
    ///
    /// Bound the wait in `shutdown` by a time limit if the process must end.
    ///
    /// # In a spawned task
    ///
    /// The future that `work` returns owns what it needs, so the closure clones it for each term:
    ///
    /// ```
    /// use std::sync::Arc;
    /// use zookeeper_recipes_election::{LeaderElection, Term};
    /// # trait Store: Send + Sync {}
    ///
    /// struct Service {
    ///     region: &'static str,
    ///     store: Arc<dyn Store>,
    /// }
    ///
    /// impl Service {
    ///     async fn lead(&self, term: Term) -> std::io::Result<()> {
    ///         # let _ = (&self.store, self.region, term);
    ///         # Ok(())
    ///     }
    /// }
    ///
    /// # async fn shutdown() {}
    /// # fn example(election: LeaderElection, service: Arc<Service>) {
    /// tokio::spawn(async move {
    ///     let work = move |term| {
    ///         let service = service.clone();
    ///         async move { service.lead(term).await }
    ///     };
    ///     election.run(shutdown(), work).await
    /// });
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`RunError::Work`] with the work's error.
    /// * [`RunError::Election`] if another try would not help: no permission
    ///   ([`Error::Refused`]), the session is closed ([`Error::NoSession`]).
    ///
    /// After any other error `run` tries again: an expired session, no answer, answers that are too
    /// late for a lease ([`Error::NoLease`]), an overloaded or read-only server, a candidate's znode
    /// that is deleted by hand. Before it campaigns again it pauses, 20 ms at first and up to a
    /// second, and others lead meanwhile.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the work is dropped, and the leadership is released in the
    /// background.
    ///
    /// # Session loss
    ///
    /// `run` continues in the new session.
    ///
    /// # Example
    ///
    /// [The page of the crate](crate#example) has a service that works on one of its instances at a
    /// time, until Ctrl-C.
    pub async fn run<F, E>(
        &self,
        shutdown: impl Future<Output = ()>,
        mut work: impl FnMut(Term) -> F,
    ) -> Result<(), RunError<E>>
    where
        F: Future<Output = Result<(), E>>,
    {
        let mut shutdown = pin!(shutdown);
        let mut pause = Backoff::default();
        loop {
            let leadership = tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                elected = self.until_elected() => elected?,
            };
            let began = Instant::now();
            let term = tokio::select! {
                // The work is not polled once it has to stop.
                biased;
                () = &mut shutdown => End::ShutDown,
                () = must_stop(leadership.view(), self.stop_work) => End::Stopped,
                result = work(leadership.term()) => End::Worked(result),
                // This branch is last, because work that blocks the thread after a request was sent
                // would delay the client's task, which tokio runs next on this thread.
                () = leadership.asked_to_resign() => End::Stopped,
            };
            let resigned = resign(leadership).await;
            match term {
                End::Worked(Err(error)) => return Err(RunError::Work(error)),
                End::ShutDown => return Ok(resigned?),
                End::Stopped | End::Worked(Ok(())) => resigned?,
            }
            if began.elapsed() >= SHORT_TERM {
                pause = Backoff::default();
                continue;
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                () = pause.wait() => {}
            }
        }
    }

    /// Campaigns until this candidate leads, or until another try would not help.
    async fn until_elected(&self) -> Result<Leadership, Error> {
        let mut backoff = Backoff::default();
        loop {
            // If the session is closed, the campaign returns the error.
            let _ = self.session().wait_connected().await;
            match self.acquire().await {
                Err(error) if error.is_retryable() => {
                    let path = self.path();
                    tracing::warn!(target: "zookeeper_recipes", %path, %error, "campaigning again");
                    backoff.wait().await;
                }
                // No session follows, for example after the own close. The next attempt says so.
                Err(Error::SessionOver { .. }) => backoff.wait().await,
                elected => return elected,
            }
        }
    }
}

/// Resolves when the work has to stop.
///
/// The future reads the hold's clock at each poll, so the work does not run after a pause of the
/// process.
async fn must_stop(hold: HoldView, when: StopWork) {
    let mut states = hold.states();
    let suspended = async {
        while let Some(state) = states.next().await {
            if state == HoldState::Suspended && when == StopWork::WhenSuspended {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        _ = hold.ended() => {}
        () = suspended => {}
    }
}

/// Releases a leadership that may have been lost already.
///
/// # Errors
///
/// If the server refuses to delete the znode: the next campaign would wait for that znode.
async fn resign(leadership: Leadership) -> Result<(), Error> {
    match leadership.release().await {
        Err(error @ Error::Refused { .. }) => {
            tracing::warn!(target: "zookeeper_recipes", %error, "the leadership was not released");
            Err(error)
        }
        Err(error) => {
            tracing::debug!(target: "zookeeper_recipes", %error, "the leadership was lost before it was released");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
