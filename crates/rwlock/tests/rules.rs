//! The rules against a model that knows nothing of them: for any order of arrivals and goings,
//! whoever may hold does, and nobody else, though only those are asked whose watch has fired.

use std::borrow::Cow;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use zookeeper_recipes_core::{
    Contender, Identity, InvalidInput, QueueView, Rule, Sequence, Verdict,
};
use zookeeper_recipes_rwlock::{NoWriterBefore, NobodyBefore};

/// What happens to the queue.
#[derive(Clone, Debug)]
enum Step {
    /// A reader comes, under its own name or under kazoo's.
    Reader { kazoo: bool },
    /// A writer comes, likewise.
    Writer { kazoo: bool },
    /// Somebody goes: it releases, gives up or dies. Chosen anew among those that are there.
    Goes(prop::sample::Index),
    /// A writer that holds becomes a reader, as this crate does it.
    Downgrade,
    /// A writer that holds becomes a reader, as Curator does it: both are there for a while.
    CuratorReader,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<bool>().prop_map(|kazoo| Step::Reader { kazoo }),
        2 => any::<bool>().prop_map(|kazoo| Step::Writer { kazoo }),
        4 => any::<prop::sample::Index>().prop_map(Step::Goes),
        1 => Just(Step::Downgrade),
        1 => Just(Step::CuratorReader),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..60)
}

/// One in the queue, as it sees itself.
#[derive(Clone, Debug)]
struct Place {
    contender: Contender,
    writer: bool,
    holds: bool,
    /// The names of those it watches.
    watches: BTreeSet<String>,
}

type Choose = fn(writer: bool) -> Box<dyn Rule>;

fn our_rules(writer: bool) -> Box<dyn Rule> {
    match writer {
        true => Box::new(NobodyBefore),
        false => Box::new(NoWriterBefore),
    }
}

/// Whether a waiter must watch just what the design says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Watches {
    AsDesigned,
    Any,
}

/// A queue in which nobody looks unless something that it watches has gone.
struct Simulation {
    rules: Choose,
    watches: Watches,
    queue: Vec<Place>,
    next: i32,
}

impl Simulation {
    fn arrive(&mut self, label: &str, writer: bool) -> Result<(), TestCaseError> {
        let place = self.place(label, self.next, writer);
        self.next += 1;
        self.queue.push(place);
        self.look(self.queue.len() - 1)
    }

    fn place(&self, label: &str, number: i32, writer: bool) -> Place {
        let name = format!(
            "{}{}",
            Identity::random().name(label),
            Sequence::from(number)
        );
        let rule = (self.rules)(writer);
        let contender = Contender::parse(&name, |label| rule.counts(label))
            .expect("each rule counts readers and writers");
        Place {
            contender,
            writer,
            holds: false,
            watches: BTreeSet::new(),
        }
    }

    fn look(&mut self, me: usize) -> Result<(), TestCaseError> {
        let contenders: Vec<Contender> = self
            .queue
            .iter()
            .map(|place| place.contender.clone())
            .collect();
        let verdict = (self.rules)(self.queue[me].writer)
            .decide(&QueueView::new(&contenders[..me], &contenders[me], None))
            .unwrap();
        let place = &mut self.queue[me];
        match verdict {
            Verdict::Hold => {
                place.holds = true;
                place.watches.clear();
            }
            Verdict::Wait { on } => {
                prop_assert!(!place.holds, "a holder was told to wait");
                place.watches = on.iter().map(|&on| contenders[on].name().into()).collect();
                if self.watches == Watches::AsDesigned {
                    self.assert_watches_as_designed(me, &on)?;
                }
            }
        }
        Ok(())
    }

    /// A reader watches the last writer before it, a writer the one right before it.
    fn assert_watches_as_designed(&self, me: usize, on: &[usize]) -> Result<(), TestCaseError> {
        let designed = match self.queue[me].writer {
            true => me.checked_sub(1),
            false => (0..me).rev().find(|&place| self.queue[place].writer),
        };
        prop_assert_eq!(on, designed.as_slice());
        Ok(())
    }

    fn goes(&mut self, place: usize) -> Result<(), TestCaseError> {
        let gone = self.queue.remove(place);
        self.wake(gone.contender.name())
    }

    fn wake(&mut self, gone: &str) -> Result<(), TestCaseError> {
        for waiter in 0..self.queue.len() {
            if self.queue[waiter].watches.remove(gone) {
                self.look(waiter)?;
            }
        }
        Ok(())
    }

    fn holding_writer(&self) -> Option<usize> {
        let first = self.queue.first()?;
        (first.writer && first.holds).then_some(0)
    }

    /// Brute force: those who hold are the longest beginning of the queue that may be together.
    fn assert_holders_are_those_of_the_model(&self) -> Result<(), TestCaseError> {
        let together = |count: usize| {
            let writers = self.queue[..count].iter().filter(|place| place.writer);
            count <= 1 || writers.count() == 0
        };
        let count = (0..=self.queue.len())
            .filter(|&count| together(count))
            .max()
            .unwrap_or(0);
        for (index, place) in self.queue.iter().enumerate() {
            prop_assert_eq!(
                place.holds,
                index < count,
                "place {} of {:?}",
                index,
                self.queue
            );
        }
        Ok(())
    }
}

fn behaves_as_the_model(
    rules: Choose,
    watches: Watches,
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    let mut simulation = Simulation {
        rules,
        watches,
        queue: Vec::new(),
        next: 0,
    };
    for step in steps {
        match step {
            Step::Reader { kazoo: false } => simulation.arrive("__READ__", false)?,
            Step::Reader { kazoo: true } => simulation.arrive("__rlock__", false)?,
            Step::Writer { kazoo: false } => simulation.arrive("__WRIT__", true)?,
            Step::Writer { kazoo: true } => simulation.arrive("__lock__", true)?,
            Step::Goes(index) => {
                if !simulation.queue.is_empty() {
                    simulation.goes(index.index(simulation.queue.len()))?;
                }
            }
            Step::Downgrade => {
                if let Some(writer) = simulation.holding_writer() {
                    let number = simulation.queue[writer].contender.sequence().get();
                    let mut reader = simulation.place("__READ__", number, false);
                    reader.holds = true;
                    let gone = std::mem::replace(&mut simulation.queue[writer], reader);
                    simulation.wake(gone.contender.name())?;
                }
            }
            Step::CuratorReader => {
                if let Some(writer) = simulation.holding_writer() {
                    let number = simulation.queue[writer].contender.sequence().get();
                    let taken = simulation.queue.get(writer + 1);
                    if taken.is_none_or(|next| next.contender.sequence().get() != number) {
                        // Curator lets it hold beside its own writer; here it is one that waits.
                        let reader = simulation.place("__READ__", number, false);
                        simulation.queue.insert(writer + 1, reader);
                        simulation.look(writer + 1)?;
                    }
                }
            }
        }
        simulation.assert_holders_are_those_of_the_model()?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn whoever_may_hold_is_woken_and_holds(steps in steps()) {
        behaves_as_the_model(our_rules, Watches::AsDesigned, steps)?;
    }
}

/// A reader's rule that is broken on purpose.
#[derive(Debug)]
enum Broken {
    /// Watches the first writer before it, as Curator's does: it is woken once by each writer.
    FirstWriter,
    /// Watches the one right before it, whatever it is.
    RightBefore,
    /// Looks at nobody but the one right before it.
    Overtakes,
}

impl Rule for Broken {
    fn label(&self) -> Cow<'_, str> {
        NoWriterBefore.label()
    }

    fn counts(&self, label: &str) -> bool {
        NoWriterBefore.counts(label)
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let (before, me) = (view.before(), view.place());
        let writer = |place: &usize| matches!(before[*place].label(), "__WRIT__" | "__lock__");
        let first_writer = (0..me).find(writer);
        let on = match self {
            Broken::FirstWriter => first_writer,
            Broken::RightBefore => first_writer.map(|_| me - 1),
            Broken::Overtakes => me.checked_sub(1).filter(writer),
        };
        Ok(on.map_or(Verdict::Hold, Verdict::wait_on))
    }
}

fn caught(rules: Choose, watches: Watches) -> bool {
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let judged = TestRunner::new_with_rng(config, rng).run(&steps(), |steps| {
        behaves_as_the_model(rules, watches, steps)
    });
    matches!(judged, Err(TestError::Fail(..)))
}

#[test]
fn reader_that_is_woken_by_every_writer_is_caught() {
    let rules: Choose = |writer| match writer {
        true => Box::new(NobodyBefore),
        false => Box::new(Broken::FirstWriter),
    };
    assert!(caught(rules, Watches::AsDesigned));
    // It is no worse than that: it holds when it may.
    assert!(!caught(rules, Watches::Any));
}

#[test]
fn reader_that_watches_a_reader_is_caught_asleep() {
    let rules: Choose = |writer| match writer {
        true => Box::new(NobodyBefore),
        false => Box::new(Broken::RightBefore),
    };
    assert!(caught(rules, Watches::Any));
}

#[test]
fn reader_that_overtakes_a_writer_is_caught() {
    let rules: Choose = |writer| match writer {
        true => Box::new(NobodyBefore),
        false => Box::new(Broken::Overtakes),
    };
    assert!(caught(rules, Watches::Any));
}

#[test]
fn only_readers_and_writers_count() {
    for rule in [our_rules(false), our_rules(true)] {
        for label in ["__READ__", "__WRIT__", "__rlock__", "__lock__"] {
            assert!(rule.counts(label), "{label}");
        }
        for label in ["lock-", "", "latch-", "__READ__x", "permit-1-"] {
            assert!(!rule.counts(label), "{label}");
        }
    }
}
