//! A job that at most one process of a fleet runs in each time slot.

mod clock;
mod record;
mod run;
mod slots;
mod znode;

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use zookeeper_recipes_core::{
    Contender, Directories, Error, Hold, InvalidInput, NodePath, Rule, Session,
};

use self::clock::Clock;
use self::record::refuse_unreadable;
pub use self::record::{JobRecord, SlotRecord, SlotState};
pub use self::run::{Slot, SlotClaim, SlotRun};
use self::slots::Slots;
use self::znode::{JobZnode, lost, while_held};
use crate::LockOptions;
use crate::recipe::ExclusiveLock;
use crate::rule::FirstInQueue;

/// Runs a job at most once in each time slot, over all processes that use the same path.
///
/// Each process calls [`run`](Self::run) at its own time in each slot, for example by a timer. The
/// first process that holds the lock at the path claims the slot, records the start, and runs the
/// job. The others get the [record](SlotRecord) of that run, also if it finished quickly.
///
/// *At most once* is not *once*: if the process dies in the middle of the job, no other process
/// runs the job in that slot, unless [`Again::UnlessDone`] is set.
///
/// # Slots
///
/// | length | slots begin |
/// |---|---|
/// | divides a day, such as a minute, 6 hours or a day | at midnight of UTC, and each length after |
/// | whole weeks | on Mondays at midnight of UTC |
/// | other whole days | at midnight of UTC, counted from 1970-01-01 |
/// | any other, such as 7 hours | refused |
///
/// [`offset`](OncePerSlotOptions::offset) moves them. The first run records the length and the
/// offset. A process with another length or offset is refused: with `6h` and `1d` on one path, the
/// job would run more than once a day.
///
/// # How a claim ends
///
/// | what happens | the record | the slot |
/// |---|---|---|
/// | before the start is recorded: the claim is given back or dropped, its process dies or loses the hold, or its clock is wrong | [`Claimed`](SlotState::Claimed) | free, once the hold is released or its session has ended |
/// | another client writes to the record before the start | as that client wrote | nothing starts |
/// | the hold is lost before the answer to the write of the start | [`Claimed`](SlotState::Claimed) or [`Started`](SlotState::Started) | nothing starts. Taken if the write was applied |
/// | the job cannot start, and the slot is [given back](SlotRun::give_back) | as before the claim | free |
/// | after the start: the process dies, loses the hold, panics, or is dropped | [`Started`](SlotState::Started) | taken. [`Again::UnlessDone`] begins it again |
/// | the job fails | [`Failed`](SlotState::Failed) | taken. [`Again::AfterFailure`] begins it again |
/// | the job is done | [`Done`](SlotState::Done) | taken |
///
/// No slot has two runs. The start is written under the hold: the server refuses the write once
/// the holder's znode is gone. The write also demands the version that the claim was written with.
/// If another process has claimed the slot since, the version is a later one, and the earlier
/// claimant does not start. If the earlier claimant has recorded its start first, the claim of the
/// other process fails by its version. That process reads the record again, and finds the start.
///
/// # Clocks
///
/// Each process reads the slot from its own clock. A slot is its beginning, and the recorded
/// beginning only grows. So no difference of clocks runs a job twice for one slot.
///
/// Each claim compares the clock of its process with the ensemble's: with the time that the servers
/// give to the write of the claim. If they differ by more than a minute, the claim is refused and
/// takes no slot. [`clock_may_differ`](OncePerSlotOptions::clock_may_differ) sets another limit.
/// Within the limit:
///
/// | a process's clock | effect |
/// |---|---|
/// | is ahead by `d`, less than a slot | a slot can begin up to `d` early. The other processes find it taken |
/// | is behind by `d`, less than a slot | a slot begins up to `d` late, if no other process has begun it before |
/// | is behind by a slot or more | this process runs no slot at or before the recorded one |
/// | is ahead by `n` slots | the job runs `n` slots early, once. The slots between are **not run** |
///
/// The job of one slot can end right before the job of the next begins, if the one began late and
/// the other early. To forget all runs, set the data of the znode to nothing while no job runs.
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
/// The path is a persistent znode, whose data is the [`JobRecord`]. Its children are the
/// contenders of an [`ExclusiveLock`]. The znode is never deleted. Use a path of its own: if the
/// path exists as a container, such as that of another lock, the server deletes it when it is
/// empty, and the record with it. The slot could then run twice. A client cannot see that a znode
/// is a container.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use zookeeper_recipes_lock::{OncePerSlot, Session, SlotOutcome, SlotState};
/// # use zookeeper_recipes_lock::OncePerSlotOptions;
///
/// # async fn write_report(day: std::time::SystemTime) -> std::io::Result<()> { Ok(()) }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = zookeeper_recipes_simulation::Simulation::default();
/// # let session = simulation.session("docs").await?;
/// let day = Duration::from_secs(24 * 60 * 60);
/// let job = OncePerSlot::new(&session, "/jobs/report", day)?;
/// # let options = OncePerSlotOptions::new().clock(move || simulation.system_time());
/// # let job = OncePerSlot::with_options(&session, "/jobs/report", day, options)?;
/// match job.run(|slot| write_report(slot.start())).await? {
///     SlotOutcome::Own(written) => written?,
///     SlotOutcome::Taken(run) => match run.state {
///         SlotState::Done => println!("{} has written this day's report", run.owner),
///         // It runs, has failed, or its process died.
///         state => println!("{}: {state:?}", run.owner),
///     },
/// }
/// assert!(job.taken().await?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OncePerSlot {
    lock: ExclusiveLock,
    slots: Slots,
    again: Again,
    clock: Clock,
    znode: JobZnode,
}

/// What became of the slot of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotOutcome<T> {
    /// This process has claimed the slot, or has run its job.
    Own(T),
    /// This run has taken the slot: that of another process, or an earlier one of this process.
    ///
    /// If its state is [`SlotState::Started`], it runs, or its process died or lost the hold.
    Taken(SlotRecord),
}

impl<T> SlotOutcome<T> {
    /// What this process has, if the slot was not taken.
    pub fn own(self) -> Option<T> {
        match self {
            SlotOutcome::Own(own) => Some(own),
            SlotOutcome::Taken(_) => None,
        }
    }
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

impl OncePerSlotOptions {
    /// The defaults: no offset, no job begins again, the clock of the system, which may differ from
    /// the ensemble's by a minute.
    pub fn new() -> OncePerSlotOptions {
        OncePerSlotOptions {
            lock: LockOptions::new(),
            offset: Duration::ZERO,
            again: Again::Never,
            clock: Clock::default(),
        }
    }

    /// Options of the lock. Its directory is a persistent znode, whatever they say.
    pub fn lock(mut self, lock: LockOptions) -> OncePerSlotOptions {
        self.lock = lock;
        self
    }

    /// How long after midnight of UTC a slot begins, or after Monday for slots of whole weeks.
    ///
    /// All processes must use the same offset. An offset of several slots is one of less than a
    /// slot.
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
        self.clock.now = Arc::new(clock);
        self
    }

    /// How much the clock may differ from the ensemble's: by default a minute.
    ///
    /// A claim of a process whose clock differs more is refused. See [`OncePerSlot`].
    pub fn clock_may_differ(mut self, most: Duration) -> OncePerSlotOptions {
        self.clock.may_differ = most;
        self
    }
}

impl Default for OncePerSlotOptions {
    fn default() -> OncePerSlotOptions {
        OncePerSlotOptions::new()
    }
}

impl OncePerSlot {
    /// A job for slots of this length. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], or if `every` neither divides a day
    /// nor is a whole number of days.
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
        let lock = ExclusiveLock::with_options(session, path, lock)?;
        let znode = JobZnode {
            session: session.clone(),
            path: lock.path().clone(),
        };
        Ok(OncePerSlot {
            lock,
            slots: Slots::new(every, options.offset)?,
            again: options.again,
            clock: options.clock,
            znode,
        })
    }

    /// Runs the job, unless the slot is taken. The job gets its [`Slot`].
    ///
    /// If another process holds and may not take the slot, the call waits for it. If the slot is
    /// taken for certain, the call does not wait.
    ///
    /// `Ok` of the job records that it is done, and `Err` that it failed. If the hold is lost
    /// first, the job is dropped at its current `await`, and nothing is recorded.
    ///
    /// If the job panics, the record keeps [`SlotState::Started`], as after a death. Only
    /// [`Again::UnlessDone`] begins it again.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the slot is taken: a read | 1 | 1 | 0 |
    /// | the slot is free: the read, the rows of [`ExclusiveLock::acquire`], a read, two writes, and at the end a write and a deletion | 6 more | 6 more | as there |
    ///
    /// # Errors
    ///
    /// * Those of [`ExclusiveLock::acquire`].
    /// * [`Error::InvalidInput`] if the znode at the path records other slots or something else, or
    ///   if the clock differs too much from the ensemble's: its [subject](InvalidInput::subject) is
    ///   `clock of this process` then.
    /// * [`Error::Lost`] if the hold is lost before the end of the job is recorded. The job may
    ///   have done all its work.
    /// * [`Error::Refused`] with [`Refusal::BadVersion`](crate::Refusal::BadVersion) if another
    ///   client has written to the record meanwhile.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the job is dropped, and the hold is released in the background.
    /// The slot may be recorded as started.
    ///
    /// # Session loss
    ///
    /// During the wait as for [`ExclusiveLock::acquire`]. During the job: [`Error::Lost`].
    pub async fn run<T, E, F>(
        &self,
        job: impl FnOnce(Slot) -> F,
    ) -> Result<SlotOutcome<Result<T, E>>, Error>
    where
        F: Future<Output = Result<T, E>>,
    {
        let claim = match self.begin().await? {
            SlotOutcome::Own(claim) => claim,
            SlotOutcome::Taken(run) => return Ok(SlotOutcome::Taken(run)),
        };
        let run = claim.start().await?;
        let job = job(run.slot());
        let ended = match run.hold().run_until_lost(job).await {
            Ok(ended) => ended,
            Err(reason) => return Err(lost(run.hold(), reason)),
        };
        match &ended {
            Ok(_) => run.done().await?,
            Err(_) => run.failed().await?,
        }
        Ok(SlotOutcome::Own(ended))
    }

    /// Claims the slot, unless it is taken. [`SlotClaim::start`] then takes it.
    ///
    /// Costs, errors, cancel safety and session loss are those of [`run`](Self::run), without the
    /// start and the end of the job. A claim takes no slot.
    pub async fn begin(&self) -> Result<SlotOutcome<SlotClaim>, Error> {
        match self.taken().await? {
            Some(run) => Ok(SlotOutcome::Taken(run)),
            None => self.claim(self.lock.acquire().await?).await,
        }
    }

    /// As [`begin`](Self::begin), and `None` if another process holds.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Self::begin), and [`Error::Disconnected`] if no server answers the try.
    pub async fn try_begin(&self) -> Result<Option<SlotOutcome<SlotClaim>>, Error> {
        if let Some(run) = self.taken().await? {
            return Ok(Some(SlotOutcome::Taken(run)));
        }
        match self.lock.try_acquire().await? {
            Some(hold) => self.claim(hold).await.map(Some),
            None => Ok(None),
        }
    }

    /// The run that has taken the slot of now for certain.
    ///
    /// `None` if no run has, or if the run of the slot may begin again ([`Again`]).
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a read | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// Those of [`recorded`](Self::recorded), and [`Error::InvalidInput`] if the znode at the path
    /// records other slots.
    pub async fn taken(&self) -> Result<Option<SlotRecord>, Error> {
        let (recorded, _) = self.znode.read().await?;
        let slot = self.slots.at(self.clock.now());
        Ok(self.taken_by(recorded.as_ref(), slot, Look::BeforeTheHold)?)
    }

    /// What is recorded of the job, over all processes. `None` if nothing is.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a read | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if the znode at the path records something else; [`Error::Refused`],
    /// [`Error::SessionOver`], [`Error::NoSession`].
    pub async fn recorded(&self) -> Result<Option<JobRecord>, Error> {
        Ok(self.znode.read().await?.0)
    }

    /// Claims the slot under a hold of [`lock`](Self::lock), unless the slot is taken. The hold is
    /// released then.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if the hold is not one of [`lock`](Self::lock), and the errors of
    /// [`run`](Self::run). The hold is released then.
    pub async fn claim(&self, hold: Hold) -> Result<SlotOutcome<SlotClaim>, Error> {
        self.refuse_another_lock(&hold)?;
        loop {
            let (recorded, stat) = while_held(&hold, self.znode.read()).await?;
            // One look at the clock: between two looks it may be set back.
            let now = self.clock.now();
            let slot = self.slots.at(now);
            let taken = self.taken_by(recorded.as_ref(), slot, Look::UnderTheHold)?;
            if let Some(run) = taken {
                hold.release().await?;
                return Ok(SlotOutcome::Taken(run));
            }
            refuse_unreadable(now)?;
            let owner = self.znode.session.owner();
            let claim = SlotRecord::claimed(slot, now, hold.fencing_token(), owner);
            let last_run = recorded.and_then(|recorded| recorded.last_run);
            let record = JobRecord::new(self.slots, last_run, Some(claim.clone()));
            let written = self.znode.write(&hold, &record, stat.version).await?;
            // Another client has written meanwhile.
            let Some(stat) = written else { continue };
            self.clock.refuse_if_wrong(now, stat.mtime)?;
            return Ok(SlotOutcome::Own(SlotClaim {
                hold,
                record,
                claim,
                version: stat.version,
                znode: self.znode.clone(),
                clock: self.clock.clone(),
            }));
        }
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

impl OncePerSlot {
    /// The run that has taken this slot, or a later one.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if a run of other slots is recorded.
    fn taken_by(
        &self,
        recorded: Option<&JobRecord>,
        slot: u64,
        look: Look,
    ) -> Result<Option<SlotRecord>, InvalidInput> {
        let Some((recorded, run)) = recorded.and_then(|it| Some((it, it.last_run.as_ref()?)))
        else {
            return Ok(None);
        };
        self.refuse_other_slots(recorded)?;
        let is_taken = match (run.begins().cmp(&slot), self.again, run.state) {
            (Ordering::Less, ..) => false,
            (Ordering::Greater, ..) => true,
            (_, Again::Never, _) | (_, _, SlotState::Done) => true,
            (_, _, SlotState::Started) if look == Look::BeforeTheHold => false,
            (_, Again::AfterFailure, state) => state == SlotState::Started,
            (_, Again::UnlessDone, _) => false,
        };
        Ok(is_taken.then(|| run.clone()))
    }

    /// Refuses a record of other slots, by which the job would run at other times.
    fn refuse_other_slots(&self, recorded: &JobRecord) -> Result<(), InvalidInput> {
        let refuse = |subject, given: Duration, recorded: Duration| {
            let problem = format!(
                "is not the {recorded:?} that {} is recorded with; use the recorded one, or another \
                 path",
                self.path()
            );
            Err(InvalidInput::new(subject, format!("{given:?}"), problem))
        };
        let (every, offset) = (self.slots.every(), self.slots.offset());
        if every != recorded.every {
            return refuse("length of a slot", every, recorded.every);
        }
        if offset != recorded.offset {
            return refuse("offset of a slot", offset, recorded.offset);
        }
        Ok(())
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
        let is_of_this_session = self.znode.session.id() == Some(hold.session_id());
        // After the end of its session the hold is lost, and the claim reports the loss.
        if !is_of_this_session && hold.is_held() {
            return refuse("is of another session than this job's lock");
        }
        Ok(())
    }
}
