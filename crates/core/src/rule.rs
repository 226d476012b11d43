//! The rule: decides which contender holds.

use std::borrow::Cow;
use std::fmt;

use crate::contender::Contender;
use crate::invalid_input::InvalidInput;

/// Decides who holds: a pure function from a [`QueueView`] to a [`Verdict`].
///
/// [`Queue`](crate::Queue) does the rest of a recipe: it enters, recovers, waits, gives up, holds,
/// loses and releases.
///
/// # Laws
///
/// * A verdict depends on the view alone.
/// * A rule is monotone: if contenders before this one leave, "hold" never becomes "wait".
/// * A rule names enough contenders to wait on: as long as all contenders that it waits on stay, it does not hold.
///
/// # Priorities
///
/// Whether a contender holds depends on the contenders before it alone. [`Verdict::StepBack`] lets
/// a later contender go first: a contender of lower priority leaves the queue instead of holding,
/// and enters it again at its end. [The example `priorities`] is a lock with priorities.
///
/// `Laws` of `zookeeper-recipes-testkit` checks these laws, who holds together, and how many
/// waiters one deletion wakes, on every short queue. `Conformance` there checks a recipe on a
/// server. A test of a queue that needs no server runs on `zookeeper-recipes-simulation`.
///
/// [The example `priorities`]: https://github.com/zookeeper-recipes/zookeeper-recipes/blob/main/examples/examples/priorities.rs
///
/// ```
/// use std::borrow::Cow;
/// use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, Verdict};
///
/// /// Holds when nobody is before it.
/// #[derive(Debug)]
/// struct First;
///
/// impl Rule for First {
///     fn label(&self) -> Cow<'_, str> {
///         "lock-".into()
///     }
///
///     fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
///         Ok(view.place().checked_sub(1).map_or(Verdict::Hold, Verdict::wait_on))
///     }
///
///     // The rest is optional: this lets the next contender hold without a list.
///     fn holds_only_first(&self, label: &str) -> bool {
///         label == "lock-"
///     }
/// }
/// ```
pub trait Rule: fmt::Debug + Send + Sync {
    /// The kind of contender that this rule creates.
    ///
    /// It is in the znode's name, before the number. It may be any text without a slash and
    /// without the control characters that a path may not have. By custom it ends with a hyphen.
    /// A queue reads the label of its contenders once, when the queue is made.
    fn label(&self) -> Cow<'_, str>;

    /// True if a contender with this label belongs to the queue.
    ///
    /// By default true for the rule's own label. If contenders of several rules queue together,
    /// such as readers and writers, each of these rules counts all their labels. Each rule has
    /// a queue of its own on the same path: [`Queue::by`](crate::Queue::by) makes the second from
    /// the first.
    fn counts(&self, label: &str) -> bool {
        label == self.label()
    }

    /// Decides whether the contender holds, or which contenders it waits on.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the rule cannot work with the directory's data. The attempt then fails.
    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput>;

    /// True if the contender of this view holds, whatever its label is.
    ///
    /// For [`QueueEntry::holds`](crate::QueueEntry::holds), which shows it to operators. No hold
    /// depends on it. The queue asks `decide` about contenders with the rule's own label only, and
    /// this method about every contender that the rule [counts](Self::counts).
    ///
    /// By default true if [`decide`](Self::decide) says "hold". That is right if all contenders of
    /// the queue follow this one rule, or if `decide` asks `view.me().label()` and not `self`.
    fn holds(&self, view: &QueueView<'_>) -> bool {
        matches!(self.decide(view), Ok(Verdict::Hold))
    }

    /// The data of the directory that the first contender creates.
    ///
    /// By default none. A container is deleted some time after its last contender has left, and the
    /// next one starts with this data again. If an operator may set the data, let the directory be
    /// [persistent](crate::Directories::Persistent).
    fn directory_data(&self) -> Vec<u8> {
        Vec::new()
    }

    /// True if the directory's data is part of the rule.
    ///
    /// Then each decision reads it, and each waiter watches it. A change of the data wakes the
    /// waiters. It takes no hold away.
    ///
    /// By default false.
    ///
    /// ```
    /// use std::borrow::Cow;
    /// use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, Verdict};
    ///
    /// /// As many at a time as the directory's data says, at first three.
    /// #[derive(Debug)]
    /// struct Seats;
    ///
    /// impl Rule for Seats {
    ///     fn label(&self) -> Cow<'_, str> {
    ///         "seat-".into()
    ///     }
    ///
    ///     fn directory_data(&self) -> Vec<u8> {
    ///         b"3".to_vec()
    ///     }
    ///
    ///     fn reads_directory(&self) -> bool {
    ///         true
    ///     }
    ///
    ///     fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
    ///         let data = String::from_utf8_lossy(view.directory_data().unwrap_or(b"3"));
    ///         let no_number = |_| InvalidInput::new("the number of seats", &*data, "is no number");
    ///         let seats: usize = data.parse().map_err(no_number)?;
    ///         let me = view.place();
    ///         Ok(match me < seats {
    ///             true => Verdict::Hold,
    ///             false => Verdict::wait_on_any(me - seats..me),
    ///         })
    ///     }
    /// }
    /// ```
    fn reads_directory(&self) -> bool {
        false
    }

    /// True if a contender may [step back](Verdict::StepBack) for the contenders behind it.
    ///
    /// If [`decide`](Self::decide) says "hold", and contenders are behind, the queue asks it again,
    /// with [those contenders](QueueView::behind) and the directory's data. No waiter watches either
    /// of the two. A waiter lists the queue and reads the directory whenever it may hold, so the
    /// [fast paths](crate::docs::handoff) of a waiter do not apply.
    ///
    /// By default false.
    fn looks_behind(&self) -> bool {
        false
    }

    /// The kind of recipe that a contender with this label uses, for events and metrics.
    ///
    /// By default `queue`. See [`docs::events`](crate::docs::events).
    fn recipe(&self, _label: &str) -> &'static str {
        "queue"
    }

    /// True if contenders with this label hold only when no counted contender is before them.
    ///
    /// The marked release of such a holder is all that the next contender must know. The next
    /// contender then holds without a list of the queue: see
    /// [`docs::handoff`](crate::docs::handoff). If a rule says true for a label, every process that
    /// creates contenders with this label must keep to it, in each queue that counts this rule's
    /// contenders.
    ///
    /// By default false for every label, which is right for every rule.
    fn holds_only_first(&self, _label: &str) -> bool {
        false
    }

    /// True if the hold of a contender with this label may be replaced.
    ///
    /// A replacement puts another contender in the same place of the queue: a writer becomes a
    /// reader. If the rule says false, a replacement is refused. A waiter with only such a
    /// contender before it then holds at any deletion of that contender, without a list of the
    /// queue: see [`docs::handoff`](crate::docs::handoff). If a rule says false for a label, every
    /// process that creates contenders with this label must keep to it.
    ///
    /// By default true for every label, which is right for every rule.
    fn may_be_replaced(&self, _label: &str) -> bool {
        true
    }
}

/// The input of a rule: the contenders of the queue, and the directory's data.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a> {
    before: &'a [Contender],
    me: &'a Contender,
    behind: &'a [Contender],
    directory_data: Option<&'a [u8]>,
}

impl<'a> QueueView<'a> {
    /// The view of the contender `me`, behind the contenders `before`, which are in queue order.
    pub fn new(
        before: &'a [Contender],
        me: &'a Contender,
        directory_data: Option<&'a [u8]>,
    ) -> QueueView<'a> {
        QueueView {
            before,
            me,
            behind: &[],
            directory_data,
        }
    }

    /// The same view, with these contenders behind the contender, in queue order.
    #[must_use]
    pub fn with_behind(self, behind: &'a [Contender]) -> QueueView<'a> {
        QueueView { behind, ..self }
    }

    /// The contenders before this one, in queue order.
    pub fn before(&self) -> &'a [Contender] {
        self.before
    }

    /// The contender that the rule decides about.
    pub fn me(&self) -> &'a Contender {
        self.me
    }

    /// The contenders behind this one, in queue order, if the rule [looks behind](Rule::looks_behind).
    ///
    /// The queue names them only to a rule that says "hold" without them. [`Rule::holds`] never sees
    /// them.
    pub fn behind(&self) -> &'a [Contender] {
        self.behind
    }

    /// The place of this contender: the number of contenders before it.
    pub fn place(&self) -> usize {
        self.before.len()
    }

    /// The directory's data, if the rule [reads it](Rule::reads_directory), or contenders are
    /// [behind](Self::behind).
    ///
    /// `None` if there is no directory. The first contender creates the directory with the rule's
    /// [`directory_data`](Rule::directory_data).
    pub fn directory_data(&self) -> Option<&'a [u8]> {
        self.directory_data
    }
}

/// The decision of a rule about one contender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The contender holds.
    Hold,
    /// The contender leaves the queue instead of holding, and enters it again at its end.
    ///
    /// Only a rule that [looks behind](Rule::looks_behind) may say so, and only if contenders are
    /// [behind](QueueView::behind). Otherwise the attempt fails with [`InvalidInput`]. A leader
    /// election passes to a chosen candidate this way: the candidates before it step back. A
    /// contender that always steps back never holds, so let the reason go away once it has stepped
    /// back.
    StepBack,
    /// The contender waits until one of these contenders leaves. The rule then decides again.
    Wait {
        /// Places in the queue, all before this contender's place.
        ///
        /// If there is none, or another place, the attempt fails with [`InvalidInput`].
        on: Vec<usize>,
    },
}

impl Verdict {
    /// Waits until this one contender leaves.
    ///
    /// If several contenders are in the way, wait on the last of them. The rule then decides once.
    pub fn wait_on(place: usize) -> Verdict {
        Verdict::wait_on_any([place])
    }

    /// Waits until any of these contenders leaves.
    pub fn wait_on_any(places: impl IntoIterator<Item = usize>) -> Verdict {
        Verdict::Wait {
            on: places.into_iter().collect(),
        }
    }
}

/// How a waiter learns that its turn may have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Watch only the contenders that can change the verdict if they leave.
    ///
    /// A release wakes only the waiters that watch the releasing contender. The default, and the
    /// best. The other strategies are for comparison.
    #[default]
    Predecessor,
    /// Watch the directory: the herd effect.
    ///
    /// Every new contender and every release wakes every waiter, and each waiter lists all the
    /// contenders.
    Parent,
    /// List the contenders at this interval, without a watch.
    ///
    /// Every waiter reads at every interval, until it holds.
    Poll(std::time::Duration),
}
