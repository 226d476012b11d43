//! Random requests, changes, cuts and restarts.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::steps::{Step, end_with_the_session, keep_their_promises};
use crate::world::World;

fn step() -> impl Strategy<Value = Step> {
    any::<[u8; 3]>().prop_map(Step::of)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300,
        failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_request_has_one_end_and_no_event_is_missed(steps in vec(step(), 1..60)) {
        keep_their_promises(World::connected(), steps);
    }

    #[test]
    fn session_that_expires_at_any_moment_ends_and_answers_everything(
        before in vec(step(), 0..30),
        after in vec(step(), 0..10),
    ) {
        end_with_the_session(before, after);
    }
}
