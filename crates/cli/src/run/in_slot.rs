//! One run of the command in a time slot, unless another process has run it.

use std::future::pending;
use std::time::Instant;

use zookeeper_recipes_core::{InvalidInput, Session};
use zookeeper_recipes_lock::{OncePerSlot, SlotClaim, SlotOutcome, SlotRecord};

use super::signals::Signals;
use super::supervise::{Ending, supervise};
use super::under_hold::{UnderHold, lost};
use crate::exit::Exit;
use crate::failure::Failure;

impl UnderHold<'_> {
    /// Runs the command under the job's hold, unless the slot is taken, and records how it ended.
    ///
    /// `taken` says what to end with if another run has taken the slot.
    pub(crate) async fn run_in_slot(
        &self,
        make: impl FnOnce(&Session) -> Result<OncePerSlot, InvalidInput>,
        taken: impl AsyncFnOnce(&OncePerSlot, SlotRecord) -> Exit,
    ) -> Result<Exit, Failure> {
        let began = Instant::now();
        self.in_session(async |session, signals| {
            let job = make(session)?;
            let claim = tokio::select! {
                biased;
                signal = signals.end() => return Ok(Exit::Signal(signal)),
                claim = self.claim(session, &job, began) => claim?,
            };
            match claim {
                SlotOutcome::Own(claim) => self.run_and_record(session, claim, &job, signals).await,
                SlotOutcome::Taken(run) => tokio::select! {
                    biased;
                    signal = signals.end() => Ok(Exit::Signal(signal)),
                    exit = taken(&job, run) => Ok(exit),
                },
            }
        })
        .await
    }

    /// Claims the slot, unless it is taken. What would keep the command from starting comes first.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no contender remains, and the slot is not taken.
    async fn claim(
        &self,
        session: &Session,
        job: &OncePerSlot,
        began: Instant,
    ) -> Result<SlotOutcome<SlotClaim>, Failure> {
        self.task.in_session(self.connection, session)?;
        if let Some(run) = job.taken().await? {
            return Ok(SlotOutcome::Taken(run));
        }
        let answers_within = session.timeout().unwrap_or_default();
        let lock = job.lock();
        let hold = self.wait.acquire(lock, began, answers_within).await?;
        // The wait may have been long.
        self.task.in_session(self.connection, session)?;
        Ok(job.claim(hold).await?)
    }

    /// Records the start when the command's process is ready, and then how the command ended.
    ///
    /// If the command has not begun, the slot is given back.
    async fn run_and_record(
        &self,
        session: &Session,
        claim: SlotClaim,
        job: &OncePerSlot,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        let task = self.task.in_session(self.connection, session)?;
        let (view, path) = (claim.hold().view(), job.path().as_str());
        let (mut claim, mut run) = (Some(claim), None);
        let start = async {
            if let Some(claim) = claim.take() {
                run = Some(claim.start().await?);
            }
            Ok(())
        };
        let ended = supervise(&view, start, pending(), &task, path, signals).await;
        let Some(run) = run else {
            if let Some(claim) = claim {
                print_failure(claim.give_back().await);
            }
            return match ended? {
                Ending::NotBegun(why) => why,
                // The command begins after the start is recorded.
                ending => unreachable!("the command has begun without a start: {ending:?}"),
            };
        };
        match ended {
            Ok(Ending::ByItself(exit)) => {
                print_failure(match exit {
                    Exit::Code(0) => run.done().await,
                    _ => run.failed().await,
                });
                Ok(exit)
            }
            Ok(Ending::NotBegun(why)) => {
                print_failure(run.give_back().await);
                why
            }
            // Nobody asks for it before it is lost.
            Ok(Ending::Asked | Ending::Lost) => Err(lost(path, &view, &task).await),
            Err(failure) => {
                print_failure(run.failed().await);
                Err(failure)
            }
        }
    }
}

/// Says what could not be recorded. The code of the command counts all the same.
fn print_failure(recorded: Result<(), zookeeper_recipes_core::Error>) {
    if let Err(error) = recorded {
        Failure::from(error).print();
    }
}
