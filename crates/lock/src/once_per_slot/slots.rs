//! The time slots, by the clock of this process.

use std::time::Duration;

use zookeeper_recipes_core::InvalidInput;

/// In milliseconds.
const DAY: u64 = 86_400_000;
const WEEK: u64 = 7 * DAY;

/// The first Monday of 1970.
const MONDAY: u64 = 4 * DAY;

/// How time is divided into slots of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    /// In milliseconds.
    every: u64,
    /// In milliseconds, and shorter than a slot.
    offset: u64,
}

impl Slots {
    /// Slots of this length, the offset after midnight of UTC, or after Monday for weeks.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if a length neither divides a day nor is a whole number of days, or if a
    /// duration is not a whole number of milliseconds.
    pub(crate) fn new(every: Duration, offset: Duration) -> Result<Slots, InvalidInput> {
        let length = whole_milliseconds("length of a slot", every)?;
        if length == 0 || (DAY % length != 0 && length % DAY != 0) {
            let problem = "neither divides a day nor is a whole number of days";
            let length = format!("{every:?}");
            return Err(InvalidInput::new("length of a slot", length, problem));
        }
        Ok(Slots {
            every: length,
            offset: whole_milliseconds("offset of a slot", offset)? % length,
        })
    }

    /// The length of a slot.
    pub(crate) fn every(self) -> Duration {
        Duration::from_millis(self.every)
    }

    /// The offset, shorter than a slot.
    pub(crate) fn offset(self) -> Duration {
        Duration::from_millis(self.offset)
    }

    /// When the slot begins in which this time is, both in milliseconds since 1970.
    ///
    /// The first slot also has all times before it.
    pub(crate) fn at(self, now: u64) -> u64 {
        let first = match self.every % WEEK {
            0 => MONDAY + self.offset,
            _ => self.offset,
        };
        let Some(since) = now.checked_sub(first) else {
            return 0;
        };
        now - since % self.every
    }
}

fn whole_milliseconds(subject: &'static str, duration: Duration) -> Result<u64, InvalidInput> {
    let milliseconds = u64::try_from(duration.as_millis()).ok();
    let whole = milliseconds.filter(|&it| Duration::from_millis(it) == duration);
    whole.ok_or_else(|| {
        let problem = "is not a whole number of milliseconds";
        InvalidInput::new(subject, format!("{duration:?}"), problem)
    })
}

#[cfg(test)]
#[path = "../../tests/unit/slots.rs"]
mod tests;
