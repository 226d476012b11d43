//! A slot that this process has claimed, and its run.

use std::time::SystemTime;

use zookeeper_recipes_core::{Error, Hold, HoldView, Refusal};

use super::clock::Clock;
use super::record::{JobRecord, SlotRecord, SlotState, time};
use super::znode::JobZnode;

/// A slot that this process has claimed. It takes no slot before it is [started](Self::start).
///
/// If it is dropped, or its process dies, the slot is free once the hold is released or its session
/// has ended.
#[derive(Debug)]
#[must_use = "if it is dropped, nothing is run and the slot is free"]
pub struct SlotClaim {
    pub(super) hold: Hold,
    /// With the claim of this process.
    pub(super) record: JobRecord,
    pub(super) claim: SlotRecord,
    /// The version of the directory's data.
    pub(super) version: i32,
    pub(super) znode: JobZnode,
    pub(super) clock: Clock,
}

/// A slot that is recorded as started by this process, and the hold under which its job runs.
///
/// If it is dropped, the hold is released in the background, and the record keeps
/// [`SlotState::Started`].
#[derive(Debug)]
#[must_use = "if it is dropped, the slot is taken and nothing is run"]
pub struct SlotRun {
    claim: SlotClaim,
}

/// The slot that a job runs in, and a view of the hold under which it runs.
#[derive(Clone, Debug)]
pub struct Slot {
    start: SystemTime,
    hold: HoldView,
}

impl Slot {
    /// When the slot begins, by the clock of this process. Each run of one slot has the same.
    pub fn start(&self) -> SystemTime {
        self.start
    }

    /// A view of the hold under which the job runs.
    pub fn hold(&self) -> &HoldView {
        &self.hold
    }
}

impl SlotClaim {
    /// When the slot begins, by the clock of this process.
    pub fn slot_start(&self) -> SystemTime {
        self.claim.start
    }

    /// The hold under which the job will run.
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Records that the job starts. Start the job only if this returns [`Ok`].
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a write | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the hold is lost before the server answers. The slot may be recorded as
    /// started then. [`Error::Refused`] with [`Refusal::BadVersion`] if another client has written
    /// to the record meanwhile, such as an operator: nothing is recorded.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the hold is released in the background, and the slot may be
    /// recorded as started.
    ///
    /// # Session loss
    ///
    /// [`Error::Lost`].
    pub async fn start(mut self) -> Result<SlotRun, Error> {
        let run = SlotRecord {
            state: SlotState::Started,
            ..self.claim.clone()
        };
        self.write(Some(run)).await?;
        Ok(SlotRun { claim: self })
    }

    /// Releases the hold, and leaves the slot to the next process.
    ///
    /// Costs, errors and cancel safety are those of [`Hold::release`].
    pub async fn give_back(self) -> Result<(), Error> {
        self.hold.release().await
    }

    /// Writes the record with this last run, and without a claim.
    async fn write(&mut self, last_run: Option<SlotRecord>) -> Result<(), Error> {
        let record = JobRecord {
            last_run,
            claim: None,
            ..self.record.clone()
        };
        let written = self.znode.write(&self.hold, &record, self.version).await?;
        let stat = written.ok_or_else(|| Error::Refused {
            path: self.znode.path.to_string(),
            session: self.hold.session_id(),
            refusal: Refusal::BadVersion,
        })?;
        self.version = stat.version;
        Ok(())
    }
}

impl SlotRun {
    /// The slot, and a view of the hold.
    pub fn slot(&self) -> Slot {
        Slot {
            start: self.claim.slot_start(),
            hold: self.hold().view(),
        }
    }

    /// The hold under which the job runs.
    pub fn hold(&self) -> &Hold {
        &self.claim.hold
    }

    /// Records that the job is done, and releases the hold.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a write and a deletion | 2 | 2 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the hold is lost before the server answers, and the errors of
    /// [`Hold::release`]. The record may keep [`SlotState::Started`].
    /// [`Error::Refused`] with [`Refusal::BadVersion`] if another client has written to the record
    /// meanwhile, such as an operator.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the hold is released in the background, and the record may keep
    /// [`SlotState::Started`].
    pub async fn done(self) -> Result<(), Error> {
        self.end(SlotState::Done).await
    }

    /// Records that the job has failed, and releases the hold.
    ///
    /// Costs, errors and cancel safety are those of [`done`](Self::done).
    pub async fn failed(self) -> Result<(), Error> {
        self.end(SlotState::Failed).await
    }

    /// Gives the slot back, because the job could not start, and releases the hold.
    ///
    /// Call this only if nothing of the job has run: another process then runs the job in the same
    /// slot. A process that asks while [`SlotState::Started`] is recorded finds the slot taken.
    ///
    /// Costs, errors and cancel safety are those of [`done`](Self::done).
    pub async fn give_back(self) -> Result<(), Error> {
        let before = self.claim.record.last_run.clone();
        self.end_with(before).await
    }

    async fn end(self, state: SlotState) -> Result<(), Error> {
        let run = SlotRecord {
            state,
            ended_at: Some(time(self.claim.clock.now())),
            ..self.claim.claim.clone()
        };
        self.end_with(Some(run)).await
    }

    /// Records this last run, and releases the hold, also if another client has written meanwhile.
    async fn end_with(mut self, last_run: Option<SlotRecord>) -> Result<(), Error> {
        match self.claim.write(last_run).await {
            Err(error @ Error::Refused { .. }) => {
                self.claim.hold.release().await?;
                Err(error)
            }
            Err(error) => Err(error),
            Ok(()) => self.claim.hold.release().await,
        }
    }
}
