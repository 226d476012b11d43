//! Who holds permits of a semaphore.

use std::borrow::Cow;
use std::sync::Arc;

use zookeeper_recipes_core::{Contender, InvalidInput, NodePath, QueueView, Rule, Verdict};

use crate::agreement::{Agreement, parse};

/// Holds when the permits are enough for it and all before it, and waits on the latest of those
/// whose going can make them so.
///
/// Let `N` be the number of permits, `w` the weight of this contender, that is how many permits it
/// wants, and `T` the sum of the weights of those before it. It holds when `T <= N - w`. Else it
/// waits on the *window*: the latest contenders before it, as few of them as have a sum of weights
/// above `N - w`.
///
/// # Why that is enough
///
/// Let the window weigh `W > N - w`. As long as all of it is there, what is before this contender
/// weighs at least `W`, which is too much. So some contender of the window goes no later than the
/// moment this one may hold, and its going is seen; at each such moment the window is drawn anew.
/// It is not enough to watch one contender, such as the one `N` places ahead where all weights are
/// one: if another of the `N` goes first there is a permit, and nobody is woken for it.
///
/// # Why it is not too much
///
/// Every weight is at least one, so that a window has at most `N - w + 1` contenders, however long
/// the queue. For the same reason a contender is in the windows of at most `N` waiters: it is in a
/// window only if the waiter and those between the two weigh at most `N`. So a release wakes at
/// most `N` waiters. And since the latest contenders are watched, which will go last if all hold for
/// about as long, few wake in vain.
///
/// # When the number of permits changes
///
/// It is the directory's data, which is read before each decision and watched by all who wait: it
/// is no part of the argument above, since whoever waits decides anew after any change. The list
/// of contenders is read before the number. In between, those before this contender can only have
/// become fewer, so a decision to hold is right by the number at the moment that it was read.
///
/// # Names
///
/// `_c_<uuid>-permit-<weight>-<number>`, with the weight in decimal digits. A name with a weight
/// that is none (zero, above 4294967295, with a sign or leading zeros) is no contender. One with a
/// weight above `N` is: it may be a holder from the time before the number was lowered.
#[derive(Debug)]
pub struct WithinPermits {
    weight: u32,
    agreement: Arc<Agreement>,
}

impl WithinPermits {
    /// The rule of a contender that wants `weight` of the `permits` of the semaphore at `path`.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] where one of the numbers is zero, or the weight is the greater one.
    pub fn new(path: &NodePath, permits: u32, weight: u32) -> Result<WithinPermits, InvalidInput> {
        let agreement = Agreement::new(path.clone(), permits)?;
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
            // That nothing is recorded is no agreement: another may record another number.
            None => self.agreement.permits(),
        };
        self.agreement.refuse_above(self.weight, permits)?;
        // Sums of 64 bits hold four thousand million weights of 32.
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

    fn directory_data(&self) -> Vec<u8> {
        self.agreement.permits().to_string().into_bytes()
    }

    fn reads_directory(&self) -> bool {
        true
    }
}

/// How many permits a contender holds or wants; zero for what is no contender of a semaphore.
pub(crate) fn weight_of(contender: &Contender) -> u32 {
    weight(contender.label()).unwrap_or(0)
}

pub(crate) fn weight(label: &str) -> Option<u32> {
    parse(label.strip_prefix("permit-")?.strip_suffix('-')?.as_bytes())
}
