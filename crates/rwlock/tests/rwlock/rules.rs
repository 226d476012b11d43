//! The rules of readers and writers, on every short queue.

use std::borrow::Cow;

use zookeeper_recipes_core::{Contender, InvalidInput, QueueView, Rule, Verdict};
use zookeeper_recipes_rwlock::ReadOrWrite::{Read, Write};
use zookeeper_recipes_testkit::laws::{Laws, queues};

const KAZOO: [&str; 2] = ["__rlock__", "__lock__"];
const LABELS: [&str; 4] = ["__READ__", "__WRIT__", "__rlock__", "__lock__"];

fn writes(contender: &Contender) -> bool {
    matches!(contender.label(), "__WRIT__" | "__lock__")
}

#[test]
fn readers_and_writers_keep_the_laws() {
    let alone_or_readers = |labels: &[&str]| labels.len() <= 1 || !labels.contains(&"__WRIT__");
    let laws = Laws::of(&[&Read, &Write]).beside(&KAZOO);
    // A writer's deletion wakes the next writer, or the readers before the next writer.
    let laws = laws.holders(&alone_or_readers).wakes(&alone_or_readers);
    assert_eq!(laws.check(), Ok(()));
}

#[test]
fn reader_waits_on_the_last_writer_before_it_and_writer_on_the_one_right_before_it() {
    for queue in queues(&LABELS) {
        let (me, before) = queue.split_last().expect("not empty");
        let designed = match writes(me) {
            true => before.len().checked_sub(1),
            false => before.iter().rposition(writes),
        };
        let designed = designed.map_or(Verdict::Hold, Verdict::wait_on);
        for rule in [Read, Write] {
            let decided = rule.decide(&QueueView::new(before, me, None));
            assert_eq!(decided, Ok(designed.clone()), "{queue:?}");
        }
    }
}

/// A reader's rule that is broken on purpose.
#[derive(Debug)]
enum Broken {
    /// Watches the contender right before it, of any kind.
    RightBefore,
    /// Looks only at the contender right before it.
    Overtakes,
}

impl Rule for Broken {
    fn label(&self) -> Cow<'_, str> {
        Read.label()
    }

    fn counts(&self, label: &str) -> bool {
        Read.counts(label)
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let right_before = view.place().checked_sub(1);
        let on = match self {
            Broken::RightBefore if view.before().iter().any(writes) => right_before,
            Broken::RightBefore => None,
            Broken::Overtakes => right_before.filter(|&place| writes(&view.before()[place])),
        };
        Ok(on.map_or(Verdict::Hold, Verdict::wait_on))
    }
}

#[test]
fn rules_that_sleep_or_overtake_break_a_law() {
    for rule in [Broken::RightBefore, Broken::Overtakes] {
        let broken = Laws::of(&[&rule, &Write]).check();
        let broken = broken.expect_err("it breaks a law").to_string();
        assert!(!broken.contains("its own rule"), "{broken}");
    }
}

/// A reader's rule that takes writers for readers when it is asked who holds.
#[derive(Debug)]
struct TakesAllForReaders;

impl Rule for TakesAllForReaders {
    fn label(&self) -> Cow<'_, str> {
        Read.label()
    }

    fn counts(&self, label: &str) -> bool {
        Read.counts(label)
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let last_writer = view.before().iter().rposition(writes);
        Ok(last_writer.map_or(Verdict::Hold, Verdict::wait_on))
    }
}

#[test]
fn rule_that_knows_its_own_kind_alone_breaks_the_law_of_lists() {
    let broken = Laws::of(&[&TakesAllForReaders, &Write]).check();
    let broken = broken.expect_err("a writer behind a reader does not hold");
    let said = "__READ__ [__WRIT__]: its own rule says wait, and the rule of __READ__ says hold";
    assert_eq!(broken.to_string(), said);
}

#[test]
fn only_readers_and_writers_count() {
    for rule in [Read, Write] {
        for label in LABELS {
            assert!(rule.counts(label), "{label}");
        }
        for label in ["lock-", "", "latch-", "__READ__x", "permit-1-"] {
            assert!(!rule.counts(label), "{label}");
        }
    }
}

#[test]
fn only_our_writers_hold_alone_and_are_replaced() {
    for rule in [Read, Write] {
        for label in LABELS {
            let is_our_writer = label == "__WRIT__";
            assert_eq!(rule.holds_only_first(label), is_our_writer, "{label}");
            assert_eq!(rule.may_be_replaced(label), is_our_writer, "{label}");
            let reads = ["__READ__", "__rlock__"].contains(&label);
            let recipe = if reads { "read_lock" } else { "write_lock" };
            assert_eq!(rule.recipe(label), recipe, "{label}");
        }
    }
}
