//! The registry of the znodes of a session.

use std::time::Duration;

use super::*;
use crate::live::scripted::Scripted;

/// A thread may pause between the two, so that its create would come after the look for
/// what the session leaves.
#[tokio::test(start_paused = true)]
async fn recipe_creates_nothing_once_its_session_is_left_nor_is_a_session_left_while_it_may() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let znodes = SessionZnodes::new(&live);
    let single = || znodes.named("/lock", Box::new(|_, _| true));
    let ((_one, earlier), (_other, later)) = (single(), single());
    let create = |named| znodes.before_create(named);
    create(&earlier).expect("the session is not left");
    assert!(znodes.freeze_to_leave().is_err(), "its znode may exist");
    earlier.note_gone();
    assert!(znodes.freeze_to_leave().is_ok(), "no znode exists");
    create(&later).expect_err("the session is left");
}
