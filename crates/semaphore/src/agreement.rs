//! The number of permits, on which all users of a semaphore must agree.

use std::sync::{Mutex, PoisonError};

use zookeeper_recipes_core::{InvalidInput, NodePath};

/// The number of permits that one [`Semaphore`](crate::Semaphore) value knows.
///
/// At first it is the caller's number. A strict value refuses another recorded number. Once the two
/// numbers have agreed, the recorded number counts, even if it changes later. A value that follows
/// the record agrees with each recorded number.
#[derive(Debug)]
pub(crate) struct Agreement {
    path: NodePath,
    known: Mutex<Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    permits: u32,
    /// True if the recorded number counts: it has been equal to this number, or any number may be
    /// recorded.
    agreed: bool,
}

impl Agreement {
    /// The number must equal the recorded one.
    pub(crate) fn strict(path: NodePath, permits: u32) -> Result<Agreement, InvalidInput> {
        Agreement::new(path, permits, false)
    }

    /// The recorded number counts, and this one is recorded if there is none.
    pub(crate) fn open(path: NodePath, permits: u32) -> Result<Agreement, InvalidInput> {
        Agreement::new(path, permits, true)
    }

    fn new(path: NodePath, permits: u32, agreed: bool) -> Result<Agreement, InvalidInput> {
        refuse_zero("number of permits", permits)?;
        let known = Mutex::new(Known { permits, agreed });
        Ok(Agreement { path, known })
    }

    pub(crate) fn path(&self) -> &NodePath {
        &self.path
    }

    /// The last known number.
    pub(crate) fn permits(&self) -> u32 {
        self.known().permits
    }

    /// The number in the directory's data. The number of this value does not matter.
    pub(crate) fn read(&self, data: &[u8]) -> Result<u32, InvalidInput> {
        parse(data).ok_or_else(|| {
            let problem = format!(
                "of {} is not a number of permits; if the znode was created by hand, \
                 resize records one",
                self.path
            );
            InvalidInput::new("data", String::from_utf8_lossy(data), problem)
        })
    }

    /// Reads the number from the directory's data, and notes it.
    pub(crate) fn learn(&self, data: &[u8]) -> Result<u32, InvalidInput> {
        let recorded = self.read(data)?;
        let mut known = self.known();
        if !known.agreed && known.permits != recorded {
            let problem = format!(
                "is not the {recorded} that {} is recorded with; open the semaphore with the \
                 recorded number, or resize it",
                self.path
            );
            let given = known.permits.to_string();
            return Err(InvalidInput::new("number of permits", given, problem));
        }
        *known = Known {
            permits: recorded,
            agreed: true,
        };
        Ok(recorded)
    }

    /// Notes the number that the directory records for certain.
    pub(crate) fn note(&self, permits: u32) {
        *self.known() = Known {
            permits,
            agreed: true,
        };
    }

    /// Refuses a weight that is known to be impossible, without a request.
    ///
    /// An agreed number may have been raised since, so it refuses no weight. If the caller's number
    /// is not agreed yet, a weight above it is refused. If the caller's number is wrong, no weight
    /// is right.
    pub(crate) fn refuse_at_once(&self, weight: u32) -> Result<(), InvalidInput> {
        refuse_zero("number of permits to acquire", weight)?;
        let known = *self.known();
        if known.agreed {
            return Ok(());
        }
        self.refuse_above(weight, known.permits)
    }

    pub(crate) fn refuse_above(&self, weight: u32, permits: u32) -> Result<(), InvalidInput> {
        if weight <= permits {
            return Ok(());
        }
        let problem = format!("is more than the {permits} that {} has", self.path);
        let weight = weight.to_string();
        Err(InvalidInput::new(
            "number of permits to acquire",
            weight,
            problem,
        ))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        // A poisoned lock is usable, because the number is never half-written.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn refuse_zero(subject: &'static str, number: u32) -> Result<(), InvalidInput> {
    match number {
        0 => Err(InvalidInput::new(subject, "0", "must not be zero")),
        _ => Ok(()),
    }
}

/// Reads a number in its only form: decimal digits, no sign, no leading zero, not zero.
pub(crate) fn parse(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    let number: u32 = text.parse().ok()?;
    (number > 0 && number.to_string() == text).then_some(number)
}
