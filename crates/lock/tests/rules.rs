//! The rule of the exclusive lock, on every short queue.

use zookeeper_recipes_lock::FirstInQueue;
use zookeeper_recipes_testkit::laws::Laws;

#[test]
fn first_in_queue_keeps_the_laws_beside_kazoos_contenders() {
    let laws = Laws::of(&[&FirstInQueue]).beside(&["__lock__", "-lock-"]);
    let one = |labels: &[&str]| labels.len() <= 1;
    assert_eq!(laws.holders(&one).wakes(&one).check(), Ok(()));
}
