//! The record of the last slot, in the data of the directory.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zookeeper_recipes_core::{FencingToken, InvalidInput, NodePath};

/// The end of the year 9999 in milliseconds since 1970. No record begins later.
///
/// Each system has a time for it. A later one in the data would keep the job from running for good.
const LATEST: u64 = 253_402_300_799_999;

/// The last slot for which a job has begun, over all processes.
///
/// As text: the beginning of the slot in milliseconds since 1970, the state, the fencing token and
/// the owner, such as `1774000800000 done 4294967310 report@node-7:4711`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotRecord {
    /// When the slot begins, by the clock of the process that ran the job.
    pub start: SystemTime,
    /// How far the job came.
    pub state: SlotState,
    /// The fencing token of the run.
    pub fencing_token: FencingToken,
    /// Who ran the job: the [owner](crate::Session::owner) of its session.
    pub owner: String,
}

/// How far a job came in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotState {
    /// The job has begun. It runs, or its process died, or its hold was lost.
    Begun,
    /// The job has failed, and its process has recorded that.
    Failed,
    /// The job is done.
    Done,
}

impl SlotState {
    fn word(self) -> &'static str {
        match self {
            SlotState::Begun => "begun",
            SlotState::Failed => "failed",
            SlotState::Done => "done",
        }
    }
}

impl SlotRecord {
    /// A job that begins.
    pub(crate) fn begun(start: u64, fencing_token: FencingToken, owner: &str) -> SlotRecord {
        SlotRecord {
            start: UNIX_EPOCH + Duration::from_millis(start),
            state: SlotState::Begun,
            fencing_token,
            owner: owner.to_owned(),
        }
    }

    /// The beginning of the slot in milliseconds since 1970.
    pub(crate) fn begins(&self) -> u64 {
        let start = self.start.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(start.as_millis()).unwrap_or(u64::MAX)
    }

    /// Refuses a record that no process would read again.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the slot begins after the year 9999.
    pub(crate) fn refuse_unreadable(&self) -> Result<(), InvalidInput> {
        if self.begins() <= LATEST {
            return Ok(());
        }
        let problem = "of this process is after the year 9999";
        Err(InvalidInput::new(
            "clock",
            self.begins().to_string(),
            problem,
        ))
    }

    /// The text of the record.
    pub(crate) fn text(&self) -> String {
        let (state, token) = (self.state.word(), self.fencing_token);
        format!("{} {state} {token} {}", self.begins(), self.owner)
    }

    /// Reads the data of the directory at this path. `None` if the data is empty.
    pub(crate) fn read(data: &[u8], path: &NodePath) -> Result<Option<SlotRecord>, InvalidInput> {
        if data.is_empty() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(data);
        parse(&text).map(Some).ok_or_else(|| {
            let problem = format!("of {path} is no record of a slot: use a path of its own");
            InvalidInput::new("data", text, problem)
        })
    }
}

fn parse(text: &str) -> Option<SlotRecord> {
    let mut words = text.splitn(4, ' ');
    let start = words.next()?.parse().ok()?;
    if start > LATEST {
        return None;
    }
    let word = words.next()?;
    let states = [SlotState::Begun, SlotState::Failed, SlotState::Done];
    let state = states.into_iter().find(|state| state.word() == word)?;
    let token = words.next()?;
    let (number, turn) = token.split_once(':').unwrap_or((token, "0"));
    let token = FencingToken::from(number.parse::<i64>().ok()?).with_turn(turn.parse().ok()?);
    let record = SlotRecord::begun(start, token, words.next()?);
    Some(SlotRecord { state, ..record })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_read_as_it_is_written() -> Result<(), InvalidInput> {
        let path = NodePath::new("/job")?;
        for state in [SlotState::Begun, SlotState::Failed, SlotState::Done] {
            for (turn, owner) in [(0, "report@node-7:4711"), (3, "of several words"), (0, "")] {
                let token = FencingToken::from(7).with_turn(turn);
                let record = SlotRecord::begun(3_600_000, token, owner);
                let record = SlotRecord { state, ..record };
                let read = SlotRecord::read(record.text().as_bytes(), &path)?;
                assert_eq!(read, Some(record));
            }
        }
        assert_eq!(SlotRecord::read(b"", &path)?, None);
        Ok(())
    }

    #[test]
    fn other_data_is_refused_with_its_path() -> Result<(), InvalidInput> {
        let path = NodePath::new("/job")?;
        for data in [
            "5",
            "1 gone 2 me",
            "x done 2 me",
            "1 done x me",
            "1 done 2",
            "253402300800000 done 2 me",
            "18446744073709551615 done 2 me",
        ] {
            let refused = SlotRecord::read(data.as_bytes(), &path).expect_err("no record");
            assert!(refused.to_string().contains("/job"), "{refused}");
        }
        Ok(())
    }
}
