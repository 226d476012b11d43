//! The laws of a rule, checked on every queue up to a length.
//!
//! A [`Rule`] loses no wake-up and keeps each hold if it is monotone and waits on enough. Who may
//! hold together is for [`Laws::holders`] to say: without it, a rule that always holds breaks no
//! law. Whom one deletion may wake is for [`Laws::wakes`] to say: without it, a rule by which all
//! waiters watch the holder breaks no law. All are laws about single queues, so trying all short
//! queues finds a rule that breaks them.
//!
//! In a test of a rule that lets two hold:
//!
//! ```
//! use std::borrow::Cow;
//! use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, Verdict};
//! use zookeeper_recipes_testkit::laws::{BrokenLaw, Laws};
//!
//! /// Two at a time.
//! #[derive(Debug)]
//! struct Pair;
//!
//! impl Rule for Pair {
//!     fn label(&self) -> Cow<'_, str> {
//!         "pair-".into()
//!     }
//!
//!     fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
//!         Ok(match view.place() {
//!             0..2 => Verdict::Hold,
//!             me => Verdict::wait_on_any(me - 2..me),
//!         })
//!     }
//! }
//!
//! # /*
//! #[test]
//! # */
//! fn pair_keeps_the_laws() -> Result<(), BrokenLaw> {
//!     let two = |labels: &[&str]| labels.len() <= 2;
//!     Laws::of(&[&Pair]).holders(&two).wakes(&two).check()
//! }
//! # pair_keeps_the_laws().unwrap();
//! ```
//!
//! If the rule waits on one of the two only, the check names the shortest queue that shows it:
//!
//! ```
//! # use std::borrow::Cow;
//! # use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, Verdict};
//! # use zookeeper_recipes_testkit::laws::Laws;
//! # #[derive(Debug)]
//! # struct Pair;
//! # impl Rule for Pair {
//! #     fn label(&self) -> Cow<'_, str> {
//! #         "pair-".into()
//! #     }
//! # fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
//! Ok(match view.place() {
//!     0..2 => Verdict::Hold,
//!     // Not enough: the other of the two may go first.
//!     me => Verdict::wait_on(me - 2),
//! })
//! # }
//! # }
//!
//! # fn check() {
//! let broken = Laws::of(&[&Pair]).check().unwrap_err();
//! assert_eq!(
//!     broken.to_string(),
//!     "pair- pair- [pair-]: holds once all but those at [0] have gone, and waits on those alone",
//! );
//! # }
//! # check();
//! ```
//!
//! The laws read no server. [`Conformance`](crate::conformance::Conformance) checks on a real
//! server what every recipe promises.

use std::fmt;

use zookeeper_recipes_core::{
    Contender, Identity, InvalidInput, QueueView, Rule, Sequence, Verdict,
};

/// How many queues are tried at most.
const MAX_QUEUES: usize = 5_000;

/// The laws of the rules of one queue.
#[derive(Clone)]
#[must_use = "nothing is checked before `check`"]
pub struct Laws<'a> {
    rules: Vec<&'a dyn Rule>,
    others: Vec<String>,
    directory_data: Option<Vec<u8>>,
    may_hold: &'a dyn Fn(&[&str]) -> bool,
    may_wake: &'a dyn Fn(&[&str]) -> bool,
}

/// A queue on which a rule breaks a law: the labels in order, that of the contender in brackets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{queue}: {problem}")]
pub struct BrokenLaw {
    queue: String,
    problem: String,
}

impl<'a> Laws<'a> {
    /// The laws of these rules, whose contenders queue together.
    pub fn of(rules: &[&'a dyn Rule]) -> Laws<'a> {
        Laws {
            rules: rules.to_vec(),
            others: Vec::new(),
            directory_data: None,
            may_hold: &|_| true,
            may_wake: &|_| true,
        }
    }

    /// The same, and contenders hold together only if `may_hold` allows their labels.
    ///
    /// `may_hold` gets the label of each contender that holds, in queue order, and none if nobody
    /// holds. By default any contenders may hold together.
    pub fn holders(mut self, may_hold: &'a dyn Fn(&[&str]) -> bool) -> Laws<'a> {
        self.may_hold = may_hold;
        self
    }

    /// The same, and one deletion wakes only waiters whose labels `may_wake` allows.
    ///
    /// `may_wake` gets the label of each waiter that waits on one contender, in queue order. The
    /// deletion of that contender wakes all of them. By default a deletion may wake any waiters,
    /// which is the herd effect.
    ///
    /// ```
    /// use std::borrow::Cow;
    /// use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, Verdict};
    /// use zookeeper_recipes_testkit::laws::Laws;
    ///
    /// /// All wait on the holder.
    /// #[derive(Debug)]
    /// struct Herd;
    ///
    /// impl Rule for Herd {
    ///     fn label(&self) -> Cow<'_, str> {
    ///         "lock-".into()
    ///     }
    ///
    ///     fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
    ///         Ok(match view.place() {
    ///             0 => Verdict::Hold,
    ///             _ => Verdict::wait_on(0),
    ///         })
    ///     }
    /// }
    ///
    /// let one = |labels: &[&str]| labels.len() <= 1;
    /// let broken = Laws::of(&[&Herd]).wakes(&one).check().unwrap_err();
    /// assert_eq!(
    ///     broken.to_string(),
    ///     "lock- lock- lock-: the deletion of the one at 0 wakes lock- lock-",
    /// );
    /// ```
    pub fn wakes(mut self, may_wake: &'a dyn Fn(&[&str]) -> bool) -> Laws<'a> {
        self.may_wake = may_wake;
        self
    }

    /// The same, together with contenders of other programs with these labels.
    pub fn beside(mut self, labels: &[&str]) -> Laws<'a> {
        self.others
            .extend(labels.iter().map(|&label| label.to_owned()));
        self
    }

    /// The same, in a directory with this data.
    ///
    /// By default there is no directory, and the view's data is `None`.
    pub fn directory_data(mut self, data: &[u8]) -> Laws<'a> {
        self.directory_data = Some(data.to_vec());
        self
    }

    /// Checks each place of each queue, up to ten contenders.
    ///
    /// The check takes at most 5,000 queues of one length. With one or two labels the longest queue
    /// has ten contenders, with three labels it has seven. If a rule lets more contenders hold than
    /// that, check it with a lower number.
    ///
    /// # Errors
    ///
    /// The first broken law:
    ///
    /// * each rule counts the contenders of all rules;
    /// * each rule decides about a queue of one without an error; about another queue, an error
    ///   breaks no law: the attempt fails, and its contender leaves;
    /// * contenders that hold together [may](Self::holders) do so;
    /// * a deletion wakes only the waiters that it [may](Self::wakes) wake;
    /// * "hold" never becomes "wait" when a contender before it leaves;
    /// * a waiter waits on contenders before it, and does not hold as long as they all stay;
    /// * a label that [holds only as the first](zookeeper_recipes_core::Rule::holds_only_first) holds with no contender before it;
    /// * each rule [says of each contender](Rule::holds) that it holds if that contender's own rule
    ///   decides so.
    pub fn check(&self) -> Result<(), BrokenLaw> {
        let labels: Vec<String> = self.rules.iter().map(|rule| rule.label().into()).collect();
        for rule in &self.rules {
            if let Some(label) = labels.iter().find(|label| !rule.counts(label)) {
                return Err(BrokenLaw {
                    queue: format!("[{}]", rule.label()),
                    problem: format!("does not count {label}"),
                });
            }
        }
        for queue in queues(&labels.iter().map(String::as_str).collect::<Vec<_>>()) {
            self.check_holders(&queue)?;
            self.check_woken(&queue)?;
        }
        let all: Vec<&str> = labels
            .iter()
            .chain(&self.others)
            .map(String::as_str)
            .collect();
        self.check_each(&all, Laws::check_place)?;
        self.check_each(&all, Laws::check_holds)
    }

    /// Checks each place of all queues of these labels whose contender follows one of the rules.
    fn check_each(&self, labels: &[&str], check: CheckPlace<'a>) -> Result<(), BrokenLaw> {
        for queue in queues(labels) {
            let Some((me, before)) = queue.split_last() else {
                continue;
            };
            for rule in self.rules.iter().filter(|rule| rule.label() == me.label()) {
                check(self, *rule, before, me)?;
            }
        }
        Ok(())
    }

    /// Checks that each rule says of this contender what the contender's own rule decides.
    fn check_holds(
        &self,
        rule: &dyn Rule,
        before: &[Contender],
        me: &Contender,
    ) -> Result<(), BrokenLaw> {
        let Ok(verdict) = self.decide(rule, before, me) else {
            return Ok(());
        };
        let view = QueueView::new(before, me, self.directory_data.as_deref());
        let mut rules = self.rules.iter();
        match rules.find(|rule| rule.holds(&view) != (verdict == Verdict::Hold)) {
            None => Ok(()),
            Some(other) => {
                let (own, others) = match verdict {
                    Verdict::Hold => ("hold", "wait"),
                    Verdict::Wait { .. } | Verdict::StepBack => ("wait", "hold"),
                };
                let other = other.label();
                let problem =
                    format!("its own rule says {own}, and the rule of {other} says {others}");
                Err(broken(before, me, problem))
            }
        }
    }

    /// Checks that the contenders of this queue that hold may hold together.
    fn check_holders(&self, queue: &[Contender]) -> Result<(), BrokenLaw> {
        let mut holders = Vec::new();
        for (place, me) in queue.iter().enumerate() {
            for rule in self.rules.iter().filter(|rule| rule.label() == me.label()) {
                match self.decide(*rule, &queue[..place], me) {
                    Ok(Verdict::Hold) => holders.push(me.label()),
                    Ok(Verdict::Wait { .. } | Verdict::StepBack) => {}
                    Err(_) if place > 0 => {}
                    Err(error) => {
                        return Err(BrokenLaw {
                            queue: format!("[{}]", me.label()),
                            problem: format!("decides nothing: {error}"),
                        });
                    }
                }
            }
        }
        match (self.may_hold)(&holders) {
            true => Ok(()),
            false => Err(BrokenLaw {
                queue: labels(queue),
                problem: format!("{} hold together", holders.join(" ")),
            }),
        }
    }

    /// Checks that the deletion of each contender of this queue wakes only waiters that it may.
    fn check_woken(&self, queue: &[Contender]) -> Result<(), BrokenLaw> {
        let mut woken = vec![Vec::new(); queue.len()];
        for (place, me) in queue.iter().enumerate() {
            for rule in self.rules.iter().filter(|rule| rule.label() == me.label()) {
                if let Ok(Verdict::Wait { on }) = self.decide(*rule, &queue[..place], me) {
                    for watched in on.into_iter().filter(|watched| *watched < place) {
                        woken[watched].push(me.label());
                    }
                }
            }
        }
        match woken.iter().position(|woken| !(self.may_wake)(woken)) {
            None => Ok(()),
            Some(gone) => Err(BrokenLaw {
                queue: labels(queue),
                problem: format!(
                    "the deletion of the one at {gone} wakes {}",
                    woken[gone].join(" ")
                ),
            }),
        }
    }

    fn decide(
        &self,
        rule: &dyn Rule,
        before: &[Contender],
        me: &Contender,
    ) -> Result<Verdict, InvalidInput> {
        rule.decide(&QueueView::new(before, me, self.directory_data.as_deref()))
    }

    fn check_place(
        &self,
        rule: &dyn Rule,
        before: &[Contender],
        me: &Contender,
    ) -> Result<(), BrokenLaw> {
        let decide = |before: &[Contender]| self.decide(rule, before, me).ok();
        let broken = |problem: String| Err(broken(before, me, problem));
        match decide(before) {
            None => Ok(()),
            Some(Verdict::StepBack) => broken("steps back, with none behind it".to_owned()),
            Some(Verdict::Hold) => {
                let holds_only_first = self
                    .rules
                    .iter()
                    .any(|rule| rule.holds_only_first(me.label()));
                if holds_only_first && !before.is_empty() {
                    return broken(
                        "holds behind others, and says that it holds only as the first".to_owned(),
                    );
                }
                for gone in 0..before.len() {
                    let mut rest = before.to_vec();
                    rest.remove(gone);
                    if let Some(Verdict::Wait { .. }) = decide(&rest) {
                        return broken(format!("holds, and waits once the one at {gone} has gone"));
                    }
                }
                Ok(())
            }
            Some(Verdict::Wait { on }) => {
                if on.is_empty() || on.iter().any(|&place| place >= before.len()) {
                    return broken(format!("waits on {on:?}"));
                }
                let watched = before.iter().enumerate();
                let watched = watched.filter(|(place, _)| on.contains(place));
                let watched: Vec<Contender> = watched.map(|(_, one)| one.clone()).collect();
                match decide(&watched) {
                    Some(Verdict::Hold) => broken(format!(
                        "holds once all but those at {on:?} have gone, and waits on those alone"
                    )),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl fmt::Debug for Laws<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Laws")
            .field("rules", &self.rules)
            .field("others", &self.others)
            .field("directory_data", &self.directory_data)
            .finish_non_exhaustive()
    }
}

/// A check of one place in a queue, by the rule of its contender.
type CheckPlace<'a> = fn(&Laws<'a>, &dyn Rule, &[Contender], &Contender) -> Result<(), BrokenLaw>;

/// The law that this contender breaks behind the others.
fn broken(before: &[Contender], me: &Contender, problem: String) -> BrokenLaw {
    let queue = format!("{} [{}]", labels(before), me.label());
    let queue = queue.trim_start().to_owned();
    BrokenLaw { queue, problem }
}

/// The labels of a queue, in order.
fn labels(queue: &[Contender]) -> String {
    let labels: Vec<&str> = queue.iter().map(Contender::label).collect();
    labels.join(" ")
}

/// All queues of contenders with these labels, shortest first.
///
/// The longest have ten contenders. A length that has more than 5,000 queues is left out, and so is
/// every longer one.
///
/// ```
/// use zookeeper_recipes_testkit::laws::queues;
///
/// let shortest: Vec<usize> = queues(&["a-", "b-"]).map(|queue| queue.len()).take(6).collect();
/// assert_eq!(shortest, [1, 1, 2, 2, 2, 2]);
/// ```
pub fn queues(labels: &[&str]) -> impl Iterator<Item = Vec<Contender>> {
    let of_length = |length: u32| labels.len().saturating_pow(length);
    let longest = (1..=10).take_while(move |&length| of_length(length) <= MAX_QUEUES);
    let lengths: Vec<u32> = longest.collect();
    let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
    lengths.into_iter().flat_map(move |length| {
        let labels = labels.clone();
        (0..labels.len().pow(length)).map(move |number| queue(&labels, length, number))
    })
}

/// A queue of this length. The digits of the number choose its labels.
fn queue(labels: &[String], length: u32, mut number: usize) -> Vec<Contender> {
    let mut contenders = Vec::new();
    for place in 0..i32::try_from(length).unwrap_or(0) {
        let label = &labels[number % labels.len()];
        number /= labels.len();
        let identity = Identity::from_random_bits(place.unsigned_abs().into());
        let name = format!("{}{}", identity.name(label), Sequence::from(place));
        contenders.extend(Contender::parse(&name, |counted| counted == label));
    }
    contenders
}
