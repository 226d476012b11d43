//! The rule of the exclusive lock, on every short queue.

use zookeeper_recipes_core::Rule;
use zookeeper_recipes_lock::FirstInQueue;
use zookeeper_recipes_testkit::laws::Laws;

#[test]
fn first_in_queue_keeps_the_laws_beside_kazoos_contenders() {
    let laws = Laws::of(&[&FirstInQueue]).beside(&["__lock__", "-lock-"]);
    let one = |labels: &[&str]| labels.len() <= 1;
    assert_eq!(laws.holders(&one).wakes(&one).check(), Ok(()));
}

#[test]
fn only_exclusive_contenders_count() {
    for label in ["lock-", "__lock__", "-lock-"] {
        assert!(FirstInQueue.counts(label), "{label}");
    }
    for label in ["", "lock", "__READ__", "latch-", "permit-1-"] {
        assert!(!FirstInQueue.counts(label), "{label}");
    }
}

#[test]
fn only_a_holder_that_marks_its_release_holds_alone_and_none_is_replaced() {
    for (label, holds_only_first) in [("lock-", true), ("__lock__", false), ("-lock-", false)] {
        assert_eq!(
            FirstInQueue.holds_only_first(label),
            holds_only_first,
            "{label}"
        );
        assert!(!FirstInQueue.may_be_replaced(label), "{label}");
        assert_eq!(FirstInQueue.recipe(label), "lock");
    }
}
