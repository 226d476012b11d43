//! The record of a job, in the data of its directory.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zookeeper_recipes_core::{FencingToken, InvalidInput, NodePath};

use super::slots::Slots;

/// The end of the year 9999 in milliseconds since 1970. No record has a later time.
///
/// Each system has a time for it. A later one in the data would keep the job from running for good.
const LATEST: u64 = 253_402_300_799_999;

/// What an error calls the clock of this process.
pub(super) const CLOCK: &str = "clock of this process";

/// What is recorded of a job, over all processes: the slots, the last run, and the last claim.
///
/// As text, in the data of the znode: a line for the slots, then a line for the run and one for the
/// claim, if there is one. All times are in milliseconds since 1970.
///
/// ```text
/// slots <length> <offset>
/// <state> <beginning of the slot> <fencing token> <claimed at> <ended at, or -> <owner>
/// ```
///
/// ```
/// use zookeeper_recipes_lock::{JobRecord, SlotState};
///
/// let data = b"slots 3600000 0\n\
///     done 1774000800000 4294967310 1774000801234 1774000900000 report@node-7:4711\n";
/// let record = JobRecord::read(data).expect("a record");
/// let run = record.last_run.expect("a run");
/// assert_eq!((run.state, &*run.owner), (SlotState::Done, "report@node-7:4711"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobRecord {
    /// The length of a slot.
    pub every: Duration,
    /// How long after midnight of UTC, or after Monday, a slot begins.
    pub offset: Duration,
    /// The last run that has started. A slot is taken by a run alone.
    pub last_run: Option<SlotRecord>,
    /// The last claim, until its run starts. A claim that has not started takes no slot.
    pub claim: Option<SlotRecord>,
}

/// A slot, who claimed it, and how far its run came.
///
/// All times are by the clock of the process that claimed the slot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotRecord {
    /// When the slot begins.
    pub start: SystemTime,
    /// How far the run came.
    pub state: SlotState,
    /// The fencing token of the run.
    pub fencing_token: FencingToken,
    /// When the slot was claimed.
    pub claimed_at: SystemTime,
    /// When the run has ended, if it has recorded its end.
    pub ended_at: Option<SystemTime>,
    /// Who claimed the slot: the [owner](crate::Session::owner) of its session.
    pub owner: String,
}

/// How far the run of a slot came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotState {
    /// A process holds, or held, and its job has not started.
    Claimed,
    /// The job has started. It runs, or its process died, or its hold was lost.
    Started,
    /// The job has failed, and its process has recorded that.
    Failed,
    /// The job is done.
    Done,
}

const STATES: [SlotState; 4] = [
    SlotState::Claimed,
    SlotState::Started,
    SlotState::Failed,
    SlotState::Done,
];

impl SlotState {
    fn word(self) -> &'static str {
        match self {
            SlotState::Claimed => "claimed",
            SlotState::Started => "started",
            SlotState::Failed => "failed",
            SlotState::Done => "done",
        }
    }
}

impl SlotRecord {
    /// A claim of the slot that begins at `start`, both in milliseconds since 1970.
    pub(crate) fn claimed(
        start: u64,
        claimed_at: u64,
        fencing_token: FencingToken,
        owner: &str,
    ) -> SlotRecord {
        SlotRecord {
            start: time(start),
            state: SlotState::Claimed,
            fencing_token,
            claimed_at: time(claimed_at),
            ended_at: None,
            owner: owner.to_owned(),
        }
    }

    /// The beginning of the slot in milliseconds since 1970.
    pub(crate) fn begins(&self) -> u64 {
        milliseconds(self.start)
    }
}

impl JobRecord {
    /// A record of these slots.
    pub(crate) fn new(
        slots: Slots,
        last_run: Option<SlotRecord>,
        claim: Option<SlotRecord>,
    ) -> JobRecord {
        JobRecord {
            every: slots.every(),
            offset: slots.offset(),
            last_run,
            claim,
        }
    }

    /// Reads the data of a job's znode. `None` if the data is no record.
    pub fn read(data: &[u8]) -> Option<JobRecord> {
        let mut lines = std::str::from_utf8(data).ok()?.lines();
        let mut words = lines.next()?.strip_prefix("slots ")?.split(' ');
        let mut duration = || words.next()?.parse().ok().map(Duration::from_millis);
        let (every, offset) = (duration()?, duration()?);
        let records = lines.map(parse).collect::<Option<Vec<_>>>()?;
        let (mut claims, mut runs) = (None, None);
        for record in records {
            match record.state {
                SlotState::Claimed => claims = Some(record),
                _ => runs = Some(record),
            }
        }
        Some(JobRecord {
            every,
            offset,
            last_run: runs,
            claim: claims,
        })
    }

    /// Reads the data of the directory at this path. `None` if the data is empty.
    pub(crate) fn at(path: &NodePath, data: &[u8]) -> Result<Option<JobRecord>, InvalidInput> {
        if data.is_empty() {
            return Ok(None);
        }
        JobRecord::read(data).map(Some).ok_or_else(|| {
            let problem = format!("of {path} is no record of a job: use a path of its own");
            InvalidInput::new("data", String::from_utf8_lossy(data), problem)
        })
    }

    /// The text of the record.
    pub(crate) fn text(&self) -> String {
        let (every, offset) = (self.every.as_millis(), self.offset.as_millis());
        let mut text = format!("slots {every} {offset}\n");
        for record in self.last_run.iter().chain(&self.claim) {
            let ended = record.ended_at.map(|at| milliseconds(at).to_string());
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{} {} {} {} {} {}",
                record.state.word(),
                record.begins(),
                record.fencing_token,
                milliseconds(record.claimed_at),
                ended.as_deref().unwrap_or("-"),
                record.owner,
            );
        }
        text
    }
}

/// Refuses a time that no process would read again.
///
/// # Errors
///
/// [`InvalidInput`] if the time, in milliseconds since 1970, is after the year 9999.
pub(crate) fn refuse_unreadable(time: u64) -> Result<(), InvalidInput> {
    if time <= LATEST {
        return Ok(());
    }
    let problem = "is after the year 9999";
    Err(InvalidInput::new(CLOCK, time.to_string(), problem))
}

fn parse(line: &str) -> Option<SlotRecord> {
    let mut words = line.splitn(6, ' ');
    let word = words.next()?;
    let state = STATES.into_iter().find(|state| state.word() == word)?;
    let number = |word: &str| word.parse().ok().filter(|&number| number <= LATEST);
    let start = number(words.next()?)?;
    let token = FencingToken::from(words.next()?.parse::<i64>().ok()?);
    let claimed_at = number(words.next()?)?;
    let ended_at = match words.next()? {
        "-" => None,
        at => Some(time(number(at)?)),
    };
    let claim = SlotRecord::claimed(start, claimed_at, token, words.next()?);
    Some(SlotRecord {
        state,
        ended_at,
        ..claim
    })
}

/// The time so many milliseconds after the beginning of 1970.
pub(crate) fn time(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(milliseconds)
}

/// The milliseconds since 1970. A time before counts as 1970.
pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "../../tests/unit/record.rs"]
mod tests;
