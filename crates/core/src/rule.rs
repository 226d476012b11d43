//! The rule: what tells one recipe from another.

use std::borrow::Cow;
use std::fmt;

use crate::contender::Contender;
use crate::error::InvalidInput;

/// Who may hold: a pure function from the ordered contenders to a verdict.
///
/// Everything else about a recipe (enqueueing, recovering, waiting, giving up, holding, losing,
/// releasing) is written once, in [`Queue`](crate::Queue).
///
/// # What a rule must keep to
///
/// * It looks at the contenders *up to and including* `me` and at nothing else: later ones cannot
///   change its verdict.
/// * It is monotone: when contenders before `me` go, "hold" never becomes "wait".
/// * It waits on enough: if the going of some contenders before `me` would let it hold, at least
///   one of them is among those it waits on.
///
/// ```
/// use std::borrow::Cow;
/// use zookeeper_recipes_core::{Contender, Rule, Verdict};
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
///     fn decide(&self, _queue: &[Contender], me: usize) -> Verdict {
///         match me {
///             0 => Verdict::Hold,
///             _ => Verdict::wait_on(me - 1),
///         }
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

    /// Judges the place `me` in the queue.
    fn decide(&self, queue: &[Contender], me: usize) -> Verdict;

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

    /// Whether the directory's data is part of the rule: then it is read before each decision,
    /// handed to [`learn`](Self::learn), and watched by those who wait.
    fn reads_directory(&self) -> bool {
        false
    }

    /// Takes in the directory's data; `None` where there is no directory, which whoever enters the
    /// queue first will create with its [`directory_data`](Self::directory_data).
    ///
    /// All attempts of one [`Queue`](crate::Queue) share its rule, and their answers may come in
    /// any order: a rule that keeps what it learns is for a queue that is made for one attempt.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] where the data is not what this rule works with; the attempt then fails.
    fn learn(&self, _directory: Option<&[u8]>) -> Result<(), InvalidInput> {
        Ok(())
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
