//! The rule of a semaphore.

use std::borrow::Cow;
use std::sync::Arc;

use zookeeper_recipes_core::{Contender, InvalidInput, NodePath, QueueView, Rule, Verdict};

use crate::agreement::{Agreement, parse};

/// Holds if the permits suffice for all contenders up to this one.
///
/// Let `N` be the number of permits. Let `w` be the weight of this contender, that is, the number
/// of permits that it wants. Let `T` be the sum of the weights of the contenders before it. The
/// contender holds if `T <= N - w`. Otherwise it waits on the *window*: the shortest run of
/// contenders directly before it whose weights sum to more than `N - w`. There is such a run,
/// because `T > N - w`.
///
/// # Why the window is enough
///
/// Let `W` be the weight of the window, so `W > N - w`. While all contenders of the window are in
/// the queue, `T >= W > N - w`, so this contender may not hold. So at least one contender of the
/// window leaves no later than the moment when this contender may hold. The waiter watches all
/// contenders of the window, so it wakes no later than that moment. After each wake the rule
/// decides again. If the contender may still not hold, the rule draws a new window, and the same
/// argument applies to it.
///
/// One watch is not enough. Let all weights be one, and let a waiter watch only the contender `N`
/// places before it. If another of the `N` contenders before the waiter leaves first, a permit is
/// free, and nothing wakes the waiter.
///
/// # Why the window is not too much
///
/// Every weight is at least one. The window without its earliest contender weighs at most `N - w`,
/// so it has at most `N - w` contenders. So a window has at most `N - w + 1` contenders, however
/// long the queue is.
///
/// A contender is in the windows of at most `N` waiters. If a contender is in the window of a
/// waiter, then the waiter and the contenders between the two weigh at most `N` together, so they
/// are at most `N`. Take the last waiter whose window contains the contender. All other such
/// waiters are between the two. So a release wakes at most `N` waiters.
///
/// The window consists of the latest contenders. If all contenders hold for about the same time,
/// the latest leave last. So few waiters wake in vain.
///
/// # When the number of permits changes
///
/// The number of permits is the directory's data. Each decision reads it, and each waiter watches
/// it. A change wakes each waiter, and the rule decides again. So the argument above need only
/// cover the time between two changes.
///
/// The list of contenders is read before the number. Between the two reads contenders before this
/// one may leave, but none can be added. So a decision to hold is right for the number at the
/// moment when the number was read.
///
/// The verdict depends on the view alone. An error depends also on the number that the semaphore was
/// made with: until it has once been equal to the recorded number, another recorded number is an
/// error. This does not apply to [`Semaphore::open`](crate::Semaphore::open).
///
/// # Names
///
/// The names are `_c_<uuid>-permit-<weight>-<number>`, with the weight in decimal digits. A znode
/// is not a contender if its weight is zero, is above 4294967295, or has a sign or leading zeros. A
/// znode with a weight above `N` is a contender: it may be a holder from the time before the number
/// was lowered.
#[derive(Debug)]
pub struct WithinPermits {
    weight: u32,
    agreement: Arc<Agreement>,
}

impl WithinPermits {
    /// The rule of a contender that wants `weight` permits of a semaphore.
    ///
    /// The semaphore is at `path`, and has `permits` permits.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `permits` or `weight` is zero, or if `weight` is above `permits`.
    pub fn new(path: &NodePath, permits: u32, weight: u32) -> Result<WithinPermits, InvalidInput> {
        let agreement = Agreement::strict(path.clone(), permits)?;
        WithinPermits::by(&Arc::new(agreement), weight)
    }

    pub(crate) fn by(
        agreement: &Arc<Agreement>,
        weight: u32,
    ) -> Result<WithinPermits, InvalidInput> {
        agreement.refuse_at_once(weight)?;
        Ok(WithinPermits {
            weight,
            agreement: agreement.clone(),
        })
    }
}

impl Rule for WithinPermits {
    fn label(&self) -> Cow<'_, str> {
        format!("permit-{}-", self.weight).into()
    }

    fn counts(&self, label: &str) -> bool {
        weight(label).is_some()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let permits = match view.directory_data() {
            Some(data) => self.agreement.learn(data)?,
            // A missing directory is no agreement: another process may record another number.
            None => self.agreement.permits(),
        };
        self.agreement.refuse_above(self.weight, permits)?;
        // A sum of 64 bits holds the weights of 4,294,967,296 contenders.
        let weight = |contender: &Contender| u64::from(weight_of(contender));
        let permits = u64::from(permits);
        let own = weight(view.me());
        let before: u64 = view.before().iter().map(weight).sum();
        if before + own <= permits {
            return Ok(Verdict::Hold);
        }
        let mut window = own;
        let me = view.place();
        let mut earliest = me;
        for contender in view.before().iter().rev() {
            if window > permits {
                break;
            }
            earliest -= 1;
            window += weight(contender);
        }
        Ok(Verdict::Wait {
            on: (earliest..me).collect(),
        })
    }

    /// True if the permits suffice for all contenders up to this one, of any weight.
    ///
    /// The rule decides by the recorded number of permits, and not by the number that this
    /// semaphore was made with. If the number was lowered, a contender may still hold from before,
    /// and the answer for it is false: its znode does not record that it holds. The answer is false
    /// if the record is not a number.
    fn holds(&self, view: &QueueView<'_>) -> bool {
        let recorded = view.directory_data().map(parse);
        let permits = recorded.unwrap_or_else(|| Some(self.agreement.permits()));
        let contenders = view.before().iter().chain([view.me()]);
        let wanted: u64 = contenders.map(|one| u64::from(weight_of(one))).sum();
        permits.is_some_and(|permits| wanted <= u64::from(permits))
    }

    fn directory_data(&self) -> Vec<u8> {
        self.agreement.permits().to_string().into_bytes()
    }

    fn reads_directory(&self) -> bool {
        true
    }

    fn recipe(&self, _label: &str) -> &'static str {
        "semaphore"
    }
}

/// The weight of a contender; zero if it is not a contender of a semaphore.
pub(crate) fn weight_of(contender: &Contender) -> u32 {
    weight(contender.label()).unwrap_or(0)
}

pub(crate) fn weight(label: &str) -> Option<u32> {
    parse(label.strip_prefix("permit-")?.strip_suffix('-')?.as_bytes())
}
