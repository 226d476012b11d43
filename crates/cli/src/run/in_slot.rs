//! One run of the command in a time slot, unless another process has run it.

use std::time::Instant;

use zookeeper_recipes_core::{InvalidInput, Session};
use zookeeper_recipes_lock::{OncePerSlot, SlotRun};

use super::signals::Signals;
use super::supervise::{Ending, supervise};
use super::under_hold::{UnderHold, lost};
use crate::exit::Exit;
use crate::failure::Failure;

impl UnderHold<'_> {
    /// Runs the command under the job's hold, unless the slot is taken, and records how it ended.
    pub(crate) async fn run_in_slot(
        &self,
        make: impl FnOnce(&Session) -> Result<OncePerSlot, InvalidInput>,
    ) -> Result<Exit, Failure> {
        let began = Instant::now();
        self.in_session(async |session, signals| {
            let job = make(session)?;
            let run = tokio::select! {
                biased;
                signal = signals.end() => return Ok(Exit::Signal(signal)),
                run = self.take(session, &job, began) => run?,
            };
            match run {
                Some(run) => self.run_and_record(session, run, &job, signals).await,
                None => Ok(self.wait.taken(&job)),
            }
        })
        .await
    }

    /// Takes the slot, unless it is taken.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no contender remains. The slot may be recorded as begun.
    async fn take(
        &self,
        session: &Session,
        job: &OncePerSlot,
        began: Instant,
    ) -> Result<Option<SlotRun>, Failure> {
        if job.is_taken().await? {
            return Ok(None);
        }
        let answers_within = session.timeout().unwrap_or_default();
        let lock = job.lock();
        let hold = self.wait.acquire(lock, began, answers_within).await?;
        Ok(job.claim(hold).await?)
    }

    async fn run_and_record(
        &self,
        session: &Session,
        run: SlotRun,
        job: &OncePerSlot,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        let view = run.hold().view();
        let path = job.path().as_str();
        let task = self.task.in_session(self.connection, session);
        let ended = match &task {
            Ok(task) => supervise(&view, std::future::pending(), task, path, signals).await,
            Err(failure) => Err(failure.clone()),
        };
        let (exit, recorded) = match ended {
            Ok(Ending::ByItself(exit @ Exit::Code(0))) => (Ok(exit), run.done().await),
            Ok(Ending::ByItself(exit)) => (Ok(exit), run.failed().await),
            // Nobody asks for it before it is lost.
            Ok(Ending::Asked | Ending::Lost) => return Err(lost(&view, &task?).await),
            Err(failure) => (Err(failure), run.failed().await),
        };
        if let Err(error) = recorded {
            Failure::from(error).print();
        }
        exit
    }
}
