//! The rules of an election, on every short queue.

use zookeeper_recipes_election::FirstCandidate;
use zookeeper_recipes_testkit::laws::Laws;

#[test]
fn candidates_on_standby_or_not_keep_the_laws() {
    let (candidate, standby) = (FirstCandidate::default(), FirstCandidate::standby());
    let laws = Laws::of(&[&candidate, &standby]);
    let one = |labels: &[&str]| labels.len() <= 1;
    assert_eq!(laws.holders(&one).wakes(&one).check(), Ok(()));
}
