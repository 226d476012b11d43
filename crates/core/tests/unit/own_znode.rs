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
    let create = || {
        let named = Arc::new(Named::new("/lock", Box::new(|_, _| true)));
        znodes.named(named).before_create("/lock")
    };
    create().expect("the session is open");
    znodes.end(SessionEnd::Closed);
    create().expect_err("the session is closed");
}

/// A view of the hold keeps the znode's value, and the end of the session was reported before.
#[tokio::test(start_paused = true)]
async fn turn_passes_on_though_the_session_sends_no_deletion_any_more() {
    let (live, script) = Scripted::open(Duration::ZERO);
    let znode = SessionZnodes::new(&live, DEFAULT_MAXBUFFER).contender(name("/lock/a"));
    let owner = ZnodeOwner::new(&Arc::new(SessionUse::new(false)), znode.clone());
    let turns = Arc::new(Semaphore::new(1));
    let turn = turns.clone().try_acquire_owned().expect("it is free");
    znode.keep_turn(turn);
    live.set_status(Status::Ended(SessionEnd::Expired));
    drop(owner);
    assert_eq!(turns.available_permits(), 1);
    assert!(script.deletions().is_empty());
}

/// Each of a hundred thousand holds that a session has had would stay.
#[tokio::test(start_paused = true)]
async fn znode_is_registered_until_it_is_known_not_to_exist() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let znodes = SessionZnodes::new(&live, DEFAULT_MAXBUFFER);
    let session_use = Arc::new(SessionUse::new(false));
    let owner = |znode| ZnodeOwner::new(&session_use, znode);
    let directory = NodePath::new("/lock").expect("a good path");
    let mut refused = owner(znodes.contender(ContenderName::new(
        &directory,
        Identity::from_random_bits(0),
    )));
    assert_eq!(znodes.registered().len(), 0);
    let begun = refused.znode.before_create("/lock/a");
    begun.expect("the session is open");
    let deleted = owner(znodes.contender(name("/lock/a")));
    let view = deleted.znode.clone();
    assert_eq!(znodes.registered().len(), 2);
    refused
        .note_reply(Err(ServerError::Refused(Refusal::NoAuth)))
        .expect_err("it is refused");
    drop((refused, deleted));
    sleep(SECOND).await;
    assert_eq!(znodes.registered().len(), 0);
    let left = owner(znodes.contender(name("/lock/b")));
    znodes.end(SessionEnd::Expired);
    assert_eq!(znodes.registered().len(), 0, "the server deletes it");
    drop((view, left));
}

/// The session of a user's client stays open, and the create may have been applied there.
#[tokio::test(start_paused = true)]
async fn znode_stays_registered_if_its_session_is_closed_before_the_reply() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let znodes = SessionZnodes::new(&live, DEFAULT_MAXBUFFER);
    let directory = NodePath::new("/lock").expect("a good path");
    let name = ContenderName::new(&directory, Identity::from_random_bits(0));
    let mut owner = ZnodeOwner::new(&Arc::new(SessionUse::new(false)), znodes.contender(name));
    let begun = owner.znode.before_create("/lock/a");
    begun.expect("the session is open");
    live.set_status(Status::Ended(SessionEnd::Closed));
    znodes.end(SessionEnd::Closed);
    let closed = ServerError::SessionOver(SessionEnd::Closed);
    owner.note_reply(Err(closed)).expect_err("it is closed");
    drop(owner);
    assert_eq!(znodes.registered().len(), 1);
}
