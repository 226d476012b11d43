//! The time slots, by the clock of this process.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zookeeper_recipes_core::InvalidInput;

/// How time is divided into slots of one length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    /// In milliseconds.
    every: u64,
    /// In milliseconds, and shorter than a slot.
    offset: u64,
}

impl Slots {
    /// Slots of this length. One of them begins at this time after the beginning of 1970, in UTC.
    pub(crate) fn new(every: Duration, offset: Duration) -> Result<Slots, InvalidInput> {
        let refuse = |problem| InvalidInput::new("length of a slot", format!("{every:?}"), problem);
        let length = u64::try_from(every.as_millis()).map_err(|_| refuse("is too long"))?;
        if length == 0 {
            return Err(refuse("must be at least a millisecond"));
        }
        let offset = offset.as_millis() % u128::from(length);
        Ok(Slots {
            every: length,
            offset: u64::try_from(offset).unwrap_or_default(),
        })
    }

    /// When the slot begins in which this time is, in milliseconds since 1970.
    ///
    /// The first slot also has all times before it.
    pub(crate) fn at(self, now: SystemTime) -> u64 {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let Some(since) = now.checked_sub(self.offset) else {
            return 0;
        };
        now - since % self.every
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn begins(every: Duration, offset: Duration, at: Duration) -> u64 {
        let slots = Slots::new(every, offset).expect("good slots");
        slots.at(UNIX_EPOCH + at) / 1_000
    }

    #[test]
    fn slot_begins_at_a_multiple_of_its_length_after_its_offset() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(begins(HOUR, Duration::ZERO, minutes(60)), 3_600);
        assert_eq!(begins(HOUR, Duration::ZERO, minutes(119)), 3_600);
        assert_eq!(begins(HOUR, minutes(15), minutes(74)), 900);
        assert_eq!(begins(HOUR, minutes(15), minutes(75)), 4_500);
        // An offset of several lengths is one of less than a length.
        assert_eq!(begins(HOUR, minutes(135), minutes(75)), 4_500);
        assert_eq!(begins(HOUR, minutes(15), minutes(3)), 0);
    }

    #[test]
    fn slot_without_a_length_is_refused() {
        for every in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
            assert!(Slots::new(every, Duration::ZERO).is_err(), "{every:?}");
        }
    }
}
