//! The registry of the znodes of a session.

use tokio::sync::Semaphore;

use super::*;
use crate::live::live_session::Status;
use crate::live::scripted::*;
use crate::server::options::DEFAULT_MAXBUFFER;

/// A thread may pause between the two, so that its create would come after the look for what is
/// left in the session of a user's client.
#[tokio::test(start_paused = true)]
async fn recipe_creates_nothing_once_its_session_is_closed() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let znodes = SessionZnodes::new(&live, DEFAULT_MAXBUFFER);
    let single = || znodes.named("/lock", Box::new(|_, _| true));
    let ((_one, earlier), (_other, later)) = (single(), single());
    let create = |named| znodes.before_create(named);
    create(&earlier).expect("the session is open");
    znodes.freeze(SessionEnd::Closed);
    create(&later).expect_err("the session is closed");
}

/// A view of the hold keeps the znode's value, and the end of the session was reported before.
#[tokio::test(start_paused = true)]
async fn turn_passes_on_though_the_session_sends_no_deletion_any_more() {
    let (live, script) = Scripted::open(Duration::ZERO);
    let znode = SessionZnodes::new(&live, DEFAULT_MAXBUFFER).numbered("/lock/a");
    let owner = ZnodeOwner::new(&Arc::new(SessionUse::new(false)), znode.clone());
    let turns = Arc::new(Semaphore::new(1));
    let turn = turns.clone().try_acquire_owned().expect("it is free");
    znode.keep_turn(turn);
    live.set_status(Status::Ended(SessionEnd::Expired));
    drop(owner);
    assert_eq!(turns.available_permits(), 1);
    assert!(script.deletions().is_empty());
}
