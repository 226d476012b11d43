//! A job that one process of a fleet runs in each time slot.

mod record;
mod slots;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use zookeeper_recipes_core::ensemble::Operation;
use zookeeper_recipes_core::{
    Contender, Directories, Error, Hold, HoldView, InvalidInput, LossReason, NodePath, Refusal,
    Rule, Session,
};

pub use self::record::{SlotRecord, SlotState};
use self::slots::Slots;
use crate::options::LockOptions;
use crate::recipe::ExclusiveLock;
use crate::rule::FirstInQueue;

/// A job that runs at most once in each time slot, over all processes that use the same path.
///
/// Each process calls [`run`](Self::run) at its own time in each slot, for example by a timer. The
/// first process that holds the lock at the path records the slot, and runs the job. The others
/// find the slot taken, also if the first one finished quickly.
///
/// # Clocks that differ
///
/// Each process reads the slot from its own clock. A slot is its beginning, and the recorded
/// beginning only grows. So no difference of clocks runs a job twice for one slot. It does this:
///
/// | a process's clock | effect |
/// |---|---|
/// | is ahead by `d`, less than a slot | a slot can begin up to `d` early. The other processes find it taken |
/// | is behind by `d`, less than a slot | a slot begins up to `d` late, if no other process has begun it before |
/// | is behind by a slot or more | this process runs no slot at or before the recorded one |
/// | is ahead by `n` slots | the job runs `n` slots early, once. The slots between are **not run**: each process finds them passed, until its own clock is beyond the recorded slot |
///
/// The job of one slot can end right before the job of the next begins, if the one began late and
/// the other early. To forget a slot that a wrong clock has recorded, set the data of the znode to
/// nothing while no job runs.
///
/// # A job that fails
///
/// | [`Again`] | the job of a slot begins again |
/// |---|---|
/// | [`Never`](Again::Never) (default) | never |
/// | [`AfterFailure`](Again::AfterFailure) | after a process has recorded that the job failed |
/// | [`UnlessDone`](Again::UnlessDone) | also after its process died or lost the hold. The earlier run may have done all its work |
///
/// It begins again only in its own slot, and never while another process holds.
///
/// # Compared to ShedLock
///
/// ShedLock keeps a lock for `lockAtLeastFor`, so that clocks that differ less find it taken, and
/// gives it to another process after `lockAtMostFor`, also if the job still runs. This recipe
/// records the slot. So no time has to be guessed. A hold that is lost is noticed before another
/// process holds.
///
/// # Znodes
///
/// The path is a persistent znode, whose data is the [`SlotRecord`]. Its children are the
/// contenders of an [`ExclusiveLock`]. The znode is never deleted. Use a path of its own: if the
/// path exists as a container, such as that of another lock, the server deletes it when it is
/// empty, and the record with it. The slot could then run twice. A client cannot see that a znode
/// is a container.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use zookeeper_recipes_lock::{OncePerSlot, Session};
///
/// # async fn write_report(day: std::time::SystemTime) -> std::io::Result<()> { Ok(()) }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
/// let day = Duration::from_secs(24 * 60 * 60);
/// let job = OncePerSlot::new(&session, "/jobs/report", day)?;
/// match job.run(|slot| write_report(slot.start())).await? {
///     Some(written) => written?,
///     None => println!("another process has this day's report"),
/// }
/// assert!(job.is_taken().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OncePerSlot {
    session: Session,
    lock: ExclusiveLock,
    slots: Slots,
    again: Again,
    clock: Clock,
}

/// Whether the job of a slot may begin again in the same slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Again {
    /// A slot that has begun is over.
    #[default]
    Never,
    /// After a run that has recorded its failure.
    AfterFailure,
    /// After each run that has not recorded that it is done.
    UnlessDone,
}

/// Options of a [`OncePerSlot`].
#[derive(Clone, Debug)]
#[must_use]
pub struct OncePerSlotOptions {
    lock: LockOptions,
    offset: Duration,
    again: Again,
    clock: Clock,
}

#[derive(Clone)]
struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}

impl OncePerSlotOptions {
    /// The defaults: slots begin at midnight of UTC, no job begins again, the clock of the system.
    pub fn new() -> OncePerSlotOptions {
        OncePerSlotOptions {
            lock: LockOptions::new(),
            offset: Duration::ZERO,
            again: Again::Never,
            clock: Clock(Arc::new(SystemTime::now)),
        }
    }

    /// Options of the lock. Its directory is a persistent znode, whatever they say.
    pub fn lock(mut self, lock: LockOptions) -> OncePerSlotOptions {
        self.lock = lock;
        self
    }

    /// How long after midnight of UTC a slot begins. All processes must use the same offset.
    pub fn offset(mut self, offset: Duration) -> OncePerSlotOptions {
        self.offset = offset;
        self
    }

    /// Whether the job of a slot may begin again in the same slot.
    pub fn again(mut self, again: Again) -> OncePerSlotOptions {
        self.again = again;
        self
    }

    /// The clock from which the slot is read, for tests, or if there is a better one.
    pub fn clock(
        mut self,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> OncePerSlotOptions {
        self.clock = Clock(Arc::new(clock));
        self
    }
}

impl Default for OncePerSlotOptions {
    fn default() -> OncePerSlotOptions {
        OncePerSlotOptions::new()
    }
}

/// A slot that this process has taken, and the hold under which its job runs.
///
/// If it is dropped, the hold is released in the background, and the record keeps
/// [`SlotState::Begun`].
#[derive(Debug)]
#[must_use = "if it is dropped, the slot has begun and nothing is run"]
pub struct SlotRun {
    hold: Hold,
    record: SlotRecord,
    /// The version of the directory's data.
    version: i32,
    job: OncePerSlot,
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

impl OncePerSlot {
    /// A job for slots of this length, which begin at midnight of UTC. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], or `every` is shorter than a
    /// millisecond.
    pub fn new(
        session: &Session,
        path: impl AsRef<str>,
        every: Duration,
    ) -> Result<OncePerSlot, InvalidInput> {
        OncePerSlot::with_options(session, path, every, OncePerSlotOptions::new())
    }

    /// A job for slots of this length. The call sends nothing.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), and [`InvalidInput`] if an option has a value that cannot work.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        every: Duration,
        options: OncePerSlotOptions,
    ) -> Result<OncePerSlot, InvalidInput> {
        let lock = options.lock.directories(Directories::Persistent);
        Ok(OncePerSlot {
            session: session.clone(),
            lock: ExclusiveLock::with_options(session, path, lock)?,
            slots: Slots::new(every, options.offset)?,
            again: options.again,
            clock: options.clock,
        })
    }

    /// Runs the job, unless the slot is taken: `None`. The job gets its [`Slot`].
    ///
    /// If another process holds and its run may fail, the call waits for it. If the slot is taken
    /// for certain, the call does not wait.
    ///
    /// `Ok` of the job records that it is done, and `Err` that it failed. If the hold is lost
    /// first, the job is dropped at its current `await`, and nothing is recorded.
    ///
    /// If the job panics, the record keeps [`SlotState::Begun`], as after a death. Only
    /// [`Again::UnlessDone`] begins it again.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the slot is taken: a read | 1 | 1 | 0 |
    /// | the slot is free: the read, the rows of [`ExclusiveLock::acquire`], a read, a write, and at the end a write and a deletion | 5 more | 5 more | as there |
    ///
    /// # Errors
    ///
    /// * Those of [`ExclusiveLock::acquire`].
    /// * [`Error::InvalidInput`] if the znode at the path records something else.
    /// * [`Error::Lost`] if the hold is lost before the end of the job is recorded. The job may
    ///   have done all its work.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the job is dropped, and the hold is released in the background.
    /// The slot may be recorded as begun.
    ///
    /// # Session loss
    ///
    /// During the wait as for [`ExclusiveLock::acquire`]. During the job: [`Error::Lost`].
    pub async fn run<T, E, F>(
        &self,
        job: impl FnOnce(Slot) -> F,
    ) -> Result<Option<Result<T, E>>, Error>
    where
        F: Future<Output = Result<T, E>>,
    {
        let Some(run) = self.begin().await? else {
            return Ok(None);
        };
        let job = job(Slot {
            start: run.start(),
            hold: run.hold.view(),
        });
        match run.hold.run_until_lost(job).await {
            Ok(Ok(done)) => run.done().await.map(|()| Some(Ok(done))),
            Ok(Err(failure)) => run.failed().await.map(|()| Some(Err(failure))),
            Err(reason) => Err(lost(&run.hold, reason)),
        }
    }

    /// Takes the slot, unless it is taken: `None`. End the run by [`SlotRun::done`] or
    /// [`SlotRun::failed`].
    ///
    /// Costs, errors, cancel safety and session loss are those of [`run`](Self::run), without the
    /// end of the job.
    pub async fn begin(&self) -> Result<Option<SlotRun>, Error> {
        if self.is_taken().await? {
            return Ok(None);
        }
        self.claim(self.lock.acquire().await?).await
    }

    /// As [`begin`](Self::begin), and also `None` if another process holds.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Self::begin), and [`Error::Disconnected`] if no server answers the try.
    pub async fn try_begin(&self) -> Result<Option<SlotRun>, Error> {
        if self.is_taken().await? {
            return Ok(None);
        }
        match self.lock.try_acquire().await? {
            Some(hold) => self.claim(hold).await,
            None => Ok(None),
        }
    }

    /// True if the slot of now is taken for certain.
    ///
    /// False if its job runs, and may begin again ([`Again`]).
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a read | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// Those of [`recorded`](Self::recorded).
    pub async fn is_taken(&self) -> Result<bool, Error> {
        let recorded = self.recorded().await?;
        Ok(recorded
            .is_some_and(|recorded| self.passed(&recorded, self.slot(), Look::BeforeTheHold)))
    }

    /// The last slot that has begun, over all processes. `None` if no slot has begun.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a read | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if the znode at the path records something else; [`Error::Refused`],
    /// [`Error::SessionOver`], [`Error::NoSession`].
    pub async fn recorded(&self) -> Result<Option<SlotRecord>, Error> {
        Ok(self.read().await?.0)
    }

    /// Takes the slot under a hold of [`lock`](Self::lock), unless the slot is taken: `None`, and
    /// the hold is released.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if the hold is not one of [`lock`](Self::lock), and the errors of
    /// [`run`](Self::run). The hold is released then.
    pub async fn claim(&self, hold: Hold) -> Result<Option<SlotRun>, Error> {
        let claimed = hold.run_until_lost(self.claim_under(&hold)).await;
        let claimed = claimed.unwrap_or_else(|reason| Err(lost(&hold, reason)))?;
        let Some((record, version)) = claimed else {
            hold.release().await?;
            return Ok(None);
        };
        Ok(Some(SlotRun {
            hold,
            record,
            version,
            job: self.clone(),
        }))
    }

    /// The lock under which the job runs.
    pub fn lock(&self) -> &ExclusiveLock {
        &self.lock
    }

    /// The path of the record and of the contenders.
    pub fn path(&self) -> &NodePath {
        self.lock.path()
    }
}

/// From where the record is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// A run may be under way.
    BeforeTheHold,
    /// No other run is under way.
    UnderTheHold,
}

/// Before a request whose outcome is unknown is sent again.
const PAUSE: Duration = Duration::from_millis(100);

impl OncePerSlot {
    /// The slot of now, by its beginning.
    fn slot(&self) -> u64 {
        self.slots.at((self.clock.0)())
    }

    /// True if this slot has passed or is taken.
    fn passed(&self, recorded: &SlotRecord, slot: u64, look: Look) -> bool {
        if recorded.begins() != slot {
            return recorded.begins() > slot;
        }
        match (self.again, recorded.state) {
            (Again::Never, _) | (_, SlotState::Done) => true,
            (_, SlotState::Begun) if look == Look::BeforeTheHold => false,
            (Again::AfterFailure, state) => state == SlotState::Begun,
            (Again::UnlessDone, _) => false,
        }
    }

    /// Refuses a hold of another lock, under which two processes could run one slot at once.
    ///
    /// In a session of another ensemble or chroot, the same path is another lock.
    fn refuse_another_lock(&self, hold: &Hold) -> Result<(), InvalidInput> {
        let refuse = |problem| Err(InvalidInput::new("hold", hold.node_path(), problem));
        let contender = hold
            .node_path()
            .strip_prefix(self.path().as_str())
            .and_then(|name| name.strip_prefix('/'))
            .and_then(|name| Contender::parse(name, |label| FirstInQueue.counts(label)));
        if contender.is_none() {
            return refuse("is not one of this job's lock");
        }
        let is_of_this_session = self.session.id() == Some(hold.session_id());
        // After the end of its session the hold is lost, and the claim reports the loss.
        if !is_of_this_session && hold.is_held() {
            return refuse("is of another session than this job's lock");
        }
        Ok(())
    }

    async fn claim_under(&self, hold: &Hold) -> Result<Option<(SlotRecord, i32)>, Error> {
        self.refuse_another_lock(hold)?;
        loop {
            let (recorded, version) = self.read().await?;
            // One look at the clock: between two looks it may be set back.
            let slot = self.slot();
            if recorded.is_some_and(|recorded| self.passed(&recorded, slot, Look::UnderTheHold)) {
                return Ok(None);
            }
            let record = SlotRecord::begun(slot, hold.fencing_token(), self.session.owner());
            record.refuse_unreadable()?;
            if let Some(version) = self.write(hold, &record, version).await? {
                return Ok(Some((record, version)));
            }
        }
    }

    /// Writes the record over this version, and returns the new version. Asks again until the
    /// outcome is known. `None` if another client has written meanwhile.
    async fn write(
        &self,
        hold: &Hold,
        record: &SlotRecord,
        mut version: i32,
    ) -> Result<Option<i32>, Error> {
        loop {
            let set = Operation::SetData {
                path: self.path().to_string(),
                data: record.text().into_bytes(),
                version: Some(version),
            };
            match hold.transaction().operation(set).commit().await {
                Ok(_) => return Ok(Some(version.wrapping_add(1))),
                Err(Error::OutcomeUnknown { .. }) => tokio::time::sleep(PAUSE).await,
                Err(Error::Refused {
                    refusal: Refusal::BadVersion,
                    ..
                }) => {}
                Err(error) => return Err(error),
            }
            let (recorded, now) = self.read().await?;
            match recorded {
                // The write whose answer was lost.
                Some(recorded) if recorded == *record => return Ok(Some(now)),
                _ if now == version => {}
                // The writer may be the next holder.
                _ => return prove(hold).await.map(|()| None),
            }
            version = now;
        }
    }

    /// Reads the record and its version. Asks again if no answer comes.
    async fn read(&self) -> Result<(Option<SlotRecord>, i32), Error> {
        let path = self.path();
        loop {
            let server = self.session.server(path).await?;
            let error = match server.get(path.as_str()).await {
                Ok((data, stat)) => return Ok((SlotRecord::read(&data, path)?, stat.version)),
                Err(error) if error.is(Refusal::NoNode) => return Ok((None, 0)),
                Err(error) => Error::at(path.as_str(), server.id(), error),
            };
            match error {
                Error::OutcomeUnknown { .. } => {
                    drop(server);
                    tokio::time::sleep(PAUSE).await;
                }
                error => return Err(error),
            }
        }
    }
}

/// Asks the servers if the hold is held. Asks again until the outcome is known.
async fn prove(hold: &Hold) -> Result<(), Error> {
    loop {
        match hold.transaction().commit().await {
            Err(Error::OutcomeUnknown { .. }) => tokio::time::sleep(PAUSE).await,
            held => return held.map(drop),
        }
    }
}

/// The error of a run whose hold was lost.
fn lost(hold: &Hold, reason: LossReason) -> Error {
    Error::Lost {
        path: hold.node_path().to_owned(),
        session: hold.session_id(),
        reason,
    }
}

impl SlotRun {
    /// When the slot begins, by the clock of this process.
    pub fn start(&self) -> SystemTime {
        self.record.start
    }

    /// The hold under which the job runs.
    pub fn hold(&self) -> &Hold {
        &self.hold
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
    /// [`Hold::release`]. The record may keep [`SlotState::Begun`].
    /// [`Error::Refused`] with [`Refusal::BadVersion`] if another client has written to the record
    /// meanwhile, such as an operator.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the hold is released in the background, and the record may keep
    /// [`SlotState::Begun`].
    pub async fn done(self) -> Result<(), Error> {
        self.end(SlotState::Done).await
    }

    /// Records that the job has failed, and releases the hold.
    ///
    /// Costs, errors and cancel safety are those of [`done`](Self::done).
    pub async fn failed(self) -> Result<(), Error> {
        self.end(SlotState::Failed).await
    }

    async fn end(self, state: SlotState) -> Result<(), Error> {
        let SlotRun {
            hold,
            record,
            version,
            job,
        } = self;
        let record = SlotRecord { state, ..record };
        let written = hold
            .run_until_lost(job.write(&hold, &record, version))
            .await;
        let written = written.unwrap_or_else(|reason| Err(lost(&hold, reason)))?;
        let session = hold.session_id();
        hold.release().await?;
        match written {
            Some(_) => Ok(()),
            None => Err(Error::Refused {
                path: job.path().to_string(),
                session,
                refusal: Refusal::BadVersion,
            }),
        }
    }
}
