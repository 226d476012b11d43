//! The rule against a model that knows nothing of it: for any order of arrivals, goings, weights
//! and changes of the number of permits, whoever may hold does, and nobody else, though only those
//! are asked whose watch has fired.

use std::borrow::Cow;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use zookeeper_recipes_core::{
    Contender, Identity, InvalidInput, QueueView, Rule, Sequence, Verdict,
};
use zookeeper_recipes_semaphore::{NodePath, WithinPermits};

/// What happens to the queue.
#[derive(Clone, Debug)]
enum Step {
    /// Somebody comes who wants this many permits.
    Comes(u32),
    /// Somebody goes: it releases, gives up or dies. Chosen anew among those that are there.
    Goes(prop::sample::Index),
    /// The number of permits becomes this.
    Resize(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1..=6_u32).prop_map(Step::Comes),
        8 => any::<prop::sample::Index>().prop_map(Step::Goes),
        1 => (1..=8_u32).prop_map(Step::Resize),
    ];
    prop::collection::vec(step, 1..80)
}

/// Every weight one, and a number that stays: what Curator's first semaphore was made for.
fn single_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Comes(1)),
        any::<prop::sample::Index>().prop_map(Step::Goes),
    ];
    prop::collection::vec(step, 1..80)
}

/// One in the queue, as it sees itself.
#[derive(Debug)]
struct Place {
    contender: Contender,
    weight: u32,
    rule: Box<dyn Rule>,
    holds: bool,
    /// What the model says of it.
    may_hold: bool,
    /// The names of those it watches.
    watches: BTreeSet<String>,
}

type MakeRule = fn(permits: u32, weight: u32) -> Result<Box<dyn Rule>, InvalidInput>;

fn our_rule(permits: u32, weight: u32) -> Result<Box<dyn Rule>, InvalidInput> {
    let path = NodePath::new("/semaphore")?;
    Ok(Box::new(WithinPermits::new(&path, permits, weight)?))
}

/// Whether a waiter must watch just what the design says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Windows {
    AsDesigned,
    Any,
}

/// A queue in which nobody looks unless something that it watches has gone, or the number has
/// changed.
struct Simulation {
    make_rule: MakeRule,
    windows: Windows,
    queue: Vec<Place>,
    permits: u32,
    next: i32,
}

impl Simulation {
    fn new(make_rule: MakeRule, windows: Windows, permits: u32) -> Simulation {
        Simulation {
            make_rule,
            windows,
            queue: Vec::new(),
            permits,
            next: 0,
        }
    }

    fn comes(&mut self, weight: u32) -> Result<(), TestCaseError> {
        let rule = match (self.make_rule)(self.permits, weight) {
            Ok(rule) => rule,
            Err(_) => {
                prop_assert!(weight > self.permits, "{} was refused", weight);
                return Ok(());
            }
        };
        prop_assert!(weight <= self.permits, "{} was not refused", weight);
        let sequence = Sequence::from(self.next);
        self.next += 1;
        let name = format!("{}{sequence}", Identity::random().name(&rule.label()));
        let contender = Contender::parse(&name, |label| rule.counts(label))
            .expect("the rule counts the contenders it creates");
        self.queue.push(Place {
            contender,
            weight,
            rule,
            holds: false,
            may_hold: false,
            watches: BTreeSet::new(),
        });
        self.look(self.queue.len() - 1)
    }

    /// Reads the number and the queue, as is done before each decision. Whoever can never hold
    /// goes.
    fn look(&mut self, me: usize) -> Result<(), TestCaseError> {
        let number = self.permits.to_string();
        let contenders: Vec<Contender> = self
            .queue
            .iter()
            .map(|place| place.contender.clone())
            .collect();
        let (before, own) = (&contenders[..me], &contenders[me]);
        let view = QueueView::new(before, own, Some(number.as_bytes()));
        let Ok(verdict) = self.queue[me].rule.decide(&view) else {
            prop_assert!(self.queue[me].weight > self.permits);
            return self.goes(me);
        };
        match verdict {
            Verdict::Hold => {
                self.queue[me].holds = true;
                self.queue[me].watches.clear();
            }
            Verdict::Wait { on } => {
                if self.windows == Windows::AsDesigned {
                    self.assert_window_is_as_designed(me, &on)?;
                }
                self.queue[me].watches =
                    on.iter().map(|&on| contenders[on].name().into()).collect();
            }
        }
        Ok(())
    }

    /// The latest before it, as few as weigh more than `N - w`.
    fn assert_window_is_as_designed(&self, me: usize, on: &[usize]) -> Result<(), TestCaseError> {
        let weigh = |places: &[usize]| -> u32 {
            places.iter().map(|&place| self.queue[place].weight).sum()
        };
        let room = self.permits - self.queue[me].weight;
        let latest: Vec<usize> = (me.saturating_sub(on.len())..me).collect();
        prop_assert_eq!(on, &latest[..]);
        prop_assert!(weigh(on) > room, "the window is too small");
        prop_assert!(weigh(&on[1..]) <= room, "the window is too large");
        prop_assert!(on.len() <= room as usize + 1);
        Ok(())
    }

    fn goes(&mut self, place: usize) -> Result<(), TestCaseError> {
        let gone = self.queue.remove(place);
        for waiter in self.names_of_waiters() {
            let Some(me) = self.find(&waiter) else {
                continue;
            };
            if self.queue[me].watches.remove(gone.contender.name()) {
                self.look(me)?;
            }
        }
        Ok(())
    }

    fn names_of_waiters(&self) -> Vec<String> {
        let waiters = self.queue.iter().filter(|place| !place.holds);
        waiters
            .map(|place| place.contender.name().to_owned())
            .collect()
    }

    /// Where one is that may have gone meanwhile.
    fn find(&self, name: &str) -> Option<usize> {
        self.queue
            .iter()
            .position(|place| place.contender.name() == name)
    }

    /// All who wait watch the number.
    fn resize(&mut self, permits: u32) -> Result<(), TestCaseError> {
        self.permits = permits;
        for waiter in self.names_of_waiters() {
            let Some(me) = self.find(&waiter) else {
                continue;
            };
            self.look(me)?;
        }
        Ok(())
    }

    /// Brute force: whoever fits together with all before it, and who was let in once.
    fn assert_holders_are_those_of_the_model(&mut self) -> Result<(), TestCaseError> {
        for me in 0..self.queue.len() {
            let taken: u32 = self.queue[..=me].iter().map(|place| place.weight).sum();
            self.queue[me].may_hold |= taken <= self.permits;
            prop_assert_eq!(
                self.queue[me].holds,
                self.queue[me].may_hold,
                "place {} of {:?} with {} permits",
                me,
                self.queue,
                self.permits,
            );
        }
        Ok(())
    }
}

fn behaves_as_the_model(
    make_rule: MakeRule,
    windows: Windows,
    permits: u32,
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    let mut simulation = Simulation::new(make_rule, windows, permits);
    for step in steps {
        match step {
            Step::Comes(weight) => simulation.comes(weight)?,
            Step::Goes(index) => {
                if !simulation.queue.is_empty() {
                    simulation.goes(index.index(simulation.queue.len()))?;
                }
            }
            Step::Resize(permits) => simulation.resize(permits)?,
        }
        simulation.assert_holders_are_those_of_the_model()?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn whoever_may_hold_is_woken_and_holds(permits in 1..=8_u32, steps in steps()) {
        behaves_as_the_model(our_rule, Windows::AsDesigned, permits, steps)?;
    }

    #[test]
    fn whoever_may_hold_is_woken_where_every_weight_is_one(
        permits in 1..=8_u32,
        steps in single_steps(),
    ) {
        behaves_as_the_model(our_rule, Windows::AsDesigned, permits, steps)?;
    }

    #[test]
    fn absurd_weights_are_no_contenders(weight in "[-+0-9a-z]{0,25}") {
        let counted = our_rule(1, 1).unwrap().counts(&format!("permit-{weight}-"));
        let sensible = weight.parse::<u32>().is_ok_and(|parsed| {
            parsed > 0 && parsed.to_string() == weight
        });
        prop_assert_eq!(counted, sensible);
    }
}

/// Curator's first semaphore: whoever has `N` or more before it watches the one `N` places ahead.
#[derive(Debug)]
struct WatchesRankMinusPermits {
    permits: u32,
}

impl Rule for WatchesRankMinusPermits {
    fn label(&self) -> Cow<'_, str> {
        "permit-1-".into()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let me = view.place();
        Ok(match me.checked_sub(self.permits as usize) {
            None => Verdict::Hold,
            Some(watched) => Verdict::wait_on(watched),
        })
    }
}

/// Ours, but for one watch: the earliest of the window is left out.
#[derive(Debug)]
struct WindowTooSmall(Box<dyn Rule>);

impl Rule for WindowTooSmall {
    fn label(&self) -> Cow<'_, str> {
        self.0.label()
    }

    fn counts(&self, label: &str) -> bool {
        self.0.counts(label)
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        Ok(match self.0.decide(view)? {
            Verdict::Wait { on } if on.len() > 1 => Verdict::Wait {
                on: on[1..].to_vec(),
            },
            verdict => verdict,
        })
    }
}

/// Caught means asleep while it may hold: the shape of their windows is not held against them.
fn caught(
    make_rule: MakeRule,
    steps: impl Strategy<Value = Vec<Step>>,
) -> Result<(), TestError<Vec<Step>>> {
    const PERMITS: u32 = 2;
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng).run(&steps, |steps| {
        behaves_as_the_model(make_rule, Windows::Any, PERMITS, steps)
    })
}

fn curators_first(permits: u32, _weight: u32) -> Result<Box<dyn Rule>, InvalidInput> {
    Ok(Box::new(WatchesRankMinusPermits { permits }))
}

#[test]
fn curators_first_semaphore_is_caught() {
    let found = caught(curators_first, single_steps());
    assert!(matches!(found, Err(TestError::Fail(..))), "{found:?}");
}

#[test]
fn curators_first_semaphore_sleeps_when_another_holder_goes_first() {
    let third_holds_once_the_second_has_gone = |make_rule| {
        let mut simulation = Simulation::new(make_rule, Windows::Any, 2);
        for _ in 0..3 {
            simulation.comes(1)?;
        }
        simulation.goes(1)?;
        simulation.assert_holders_are_those_of_the_model()
    };
    assert!(third_holds_once_the_second_has_gone(our_rule).is_ok());
    assert!(third_holds_once_the_second_has_gone(curators_first).is_err());
}

#[test]
fn window_without_its_earliest_is_caught() {
    let rule: MakeRule = |permits, weight| Ok(Box::new(WindowTooSmall(our_rule(permits, weight)?)));
    let found = caught(rule, steps());
    assert!(matches!(found, Err(TestError::Fail(..))), "{found:?}");
}

/// The verdict on a contender that is alone, with this data in the directory.
fn decided_by(rule: &dyn Rule, data: &[u8]) -> Result<Verdict, InvalidInput> {
    let name = Identity::random().name(&rule.label());
    let name = format!("{name}{}", Sequence::from(0));
    let me = Contender::parse(&name, |label| rule.counts(label)).unwrap();
    rule.decide(&QueueView::new(&[], &me, Some(data)))
}

#[test]
fn numbers_that_make_no_sense_are_refused_with_the_reason() {
    let refused = |permits, weight| our_rule(permits, weight).unwrap_err().to_string();
    assert_eq!(refused(0, 1), r#"number of permits "0" must not be zero"#);
    assert_eq!(
        refused(5, 0),
        r#"number of permits to acquire "0" must not be zero"#
    );
    assert_eq!(
        refused(5, 6),
        r#"number of permits to acquire "6" is more than the 5 that /semaphore has"#
    );
    let rule = our_rule(5, 1).unwrap();
    for data in ["", "0", "-5", "+5", "05", "5 ", "five", "4294967296"] {
        let error = decided_by(&*rule, data.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(&format!("{data:?}")), "{error}");
        assert!(error.contains("/semaphore"), "{error}");
    }
    assert!(decided_by(&*rule, &[0xff]).is_err());
}

#[test]
fn another_number_is_refused_until_the_two_have_agreed_once() {
    let rule = our_rule(5, 1).unwrap();
    assert_eq!(
        decided_by(&*rule, b"8").unwrap_err().to_string(),
        r#"number of permits "5" is not the 8 that /semaphore is recorded with"#
    );
    decided_by(&*rule, b"5").unwrap();
    decided_by(&*rule, b"8").unwrap();
    assert_eq!(rule.directory_data(), b"8");
}

#[test]
fn weights_near_the_largest_number_add_up() {
    let rule = our_rule(u32::MAX, u32::MAX).unwrap();
    let contenders: Vec<Contender> = (0..3)
        .map(|number| {
            let name = Identity::random().name(&rule.label());
            let name = format!("{name}{}", Sequence::from(number));
            Contender::parse(&name, |label| rule.counts(label)).unwrap()
        })
        .collect();
    let decided = |me: usize| {
        let view = QueueView::new(&contenders[..me], &contenders[me], None);
        rule.decide(&view).unwrap()
    };
    assert_eq!(decided(0), Verdict::Hold);
    assert_eq!(decided(2), Verdict::wait_on(1));
}
