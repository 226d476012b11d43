//! The registry of the znodes of a session.

use std::time::Duration;

use super::*;
use crate::live::scripted::Scripted;
use crate::server::options::USUAL_MAXBUFFER;

/// A thread may pause between the two, so that its create would come after the look for what is
/// left in the session of a user's client.
#[tokio::test(start_paused = true)]
async fn recipe_creates_nothing_once_its_session_is_closed() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let znodes = SessionZnodes::new(&live, USUAL_MAXBUFFER);
    let single = || znodes.named("/lock", Box::new(|_, _| true));
    let ((_one, earlier), (_other, later)) = (single(), single());
    let create = |named| znodes.before_create(named);
    create(&earlier).expect("the session is open");
    znodes.freeze(SessionEnd::Closed);
    create(&later).expect_err("the session is closed");
}
