//! The rule: what tells one recipe from another.

use std::borrow::Cow;
use std::fmt;

use crate::contender::Contender;
use crate::invalid_input::InvalidInput;

/// Who may hold: a pure function from a [`QueueView`] to a [`Verdict`].
///
/// Everything else about a recipe (entering, recovering, waiting, giving up, holding, losing,
/// releasing) is written once, in [`Queue`](crate::Queue).
///
/// # Laws
///
/// * A rule decides by the view alone.
/// * It is monotone: when contenders before it go, "hold" never becomes "wait".
/// * It waits on enough: if the going of some contenders before it would let it hold, it waits on
///   at least one of them.
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
///         Ok(match view.place() {
///             0 => Verdict::Hold,
///             place => Verdict::wait_on(place - 1),
///         })
///     }
/// }
/// ```
pub trait Rule: fmt::Debug + Send + Sync {
    /// The kind of contender that this rule creates: what stands in the znode's name before the
    /// number. Any text without a slash; by custom it ends with a hyphen.
    fn label(&self) -> Cow<'_, str>;

    /// Whether a contender with this label is one of the queue. By default, those like this one.
    fn counts(&self, label: &str) -> bool {
        label == self.label()
    }

    /// Decides whether the contender holds, or which contenders it waits on.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the directory's data is not what this rule works with. The attempt then
    /// fails.
    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput>;

    /// Whether contenders with this label hold only when none of those that count is before them,
    /// whichever process they are of.
    ///
    /// The release of such a holder tells the next one all it must know, so that it holds without
    /// another look at the queue: see [`docs::handoff`](crate::docs::handoff). Where this is said
    /// of a label, it must be true of everyone who creates contenders with it in a queue where this
    /// rule's count.
    ///
    /// By default of none.
    fn holds_alone(&self, _label: &str) -> bool {
        false
    }

    /// Whether a hold by a contender with this label may be replaced, so that another contender takes
    /// its place in the queue: a writer that becomes a reader.
    ///
    /// Where it may not, it is refused; and whoever waits on such a contender and has nobody else
    /// to wait for holds as soon as that one's znode goes, whatever the reason, without another
    /// look at the queue: see [`docs::handoff`](crate::docs::handoff). Where this is denied of a
    /// label, it must be true of everyone who creates contenders with it.
    ///
    /// By default of all.
    fn may_be_replaced(&self, _label: &str) -> bool {
        true
    }

    /// The data that the directory is created with.
    fn directory_data(&self) -> Vec<u8> {
        Vec::new()
    }

    /// True if the directory's data is part of the rule. Then each decision reads it, and each
    /// waiter watches it.
    fn reads_directory(&self) -> bool {
        false
    }
}

/// All that a rule may know: the contenders up to its own, and the directory's data.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a> {
    before: &'a [Contender],
    me: &'a Contender,
    directory_data: Option<&'a [u8]>,
}

impl<'a> QueueView<'a> {
    /// The view of the contender `me`, behind the contenders `before`, first in the queue first.
    pub fn new(
        before: &'a [Contender],
        me: &'a Contender,
        directory_data: Option<&'a [u8]>,
    ) -> QueueView<'a> {
        QueueView {
            before,
            me,
            directory_data,
        }
    }

    /// The contenders before this one, first in the queue first.
    pub fn before(&self) -> &'a [Contender] {
        self.before
    }

    /// The contender that the rule decides about.
    pub fn me(&self) -> &'a Contender {
        self.me
    }

    /// The place of this contender: the number of contenders before it.
    pub fn place(&self) -> usize {
        self.before.len()
    }

    /// The directory's data, if the rule [reads it](Rule::reads_directory). `None` if there is no
    /// directory: the first contender creates it with the rule's
    /// [`directory_data`](Rule::directory_data).
    pub fn directory_data(&self) -> Option<&'a [u8]> {
        self.directory_data
    }
}

/// What a rule says of one contender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Hold,
    /// It waits until one of these earlier contenders goes, and is judged anew then.
    Wait {
        /// Places in the queue, all before the one that was judged. None, or another place, is
        /// an [`InvalidInput`] error of the attempt.
        on: Vec<usize>,
    },
}

impl Verdict {
    /// Wait until this one contender goes.
    pub fn wait_on(place: usize) -> Verdict {
        Verdict::Wait { on: vec![place] }
    }
}

/// How a waiter learns that its turn may have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Watch just the contenders whose going can change the verdict. A release wakes only the
    /// waiters that watch its contender. The default, and the one to use; the others are there for those who compare.
    #[default]
    Predecessor,
    /// Watch the directory. Every arrival and every release wakes every waiter, and each lists
    /// all the contenders: the herd effect.
    Parent,
    /// List the contenders at this interval, without a watch: waiters × reads, for ever.
    Poll(std::time::Duration),
}
