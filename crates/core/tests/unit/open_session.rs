//! The grants of a session.

use super::*;
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::ZnodeOwner;
use crate::hold_state::HoldState;
use crate::live::live_session::SessionUse;
use crate::live::scripted::*;
use crate::server::ensemble::EventType::{self, NodeDataChanged, NodeDeleted};
use crate::server::ensemble::WatchEvent;
use crate::server::options::DEFAULT_MAXBUFFER;

/// The path of a contender that only its owner can write to.
const ZNODE: &str = "/locks/_c_6e8f2c1a-9d3b-8001-8a41-0c9d5e7b2f10-lock-0000000007";

/// A grant after this number of lapses, and the owner of its znode.
fn granted(open: &OpenSession, epoch: u64) -> (Arc<Grant>, ZnodeOwner) {
    let owner = ZnodeOwner::new(
        &Arc::new(SessionUse::new(false)),
        open.znodes.contender(name(ZNODE)),
    );
    let terms = terms(epoch, None);
    let record = record(&terms);
    let grant = Grant::new(owner.znode.clone(), terms, record);
    (Arc::new(grant), owner)
}

#[tokio::test(start_paused = true)]
async fn hold_that_was_granted_after_a_later_lapse_is_not_lost() {
    let (live, script) = Scripted::open(Duration::ZERO);
    let open = OpenSession::new(live, DEFAULT_MAXBUFFER);
    let (grant, _owner) = granted(&open, 1);
    open.add_grant(&grant);
    for (epoch, deletions) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        open.delete_lost(LeaseEpoch(epoch));
        assert_eq!(script.deletions().len(), deletions, "{epoch}");
    }
}

/// A grant before the first lapse, after its loss watch has reported this event, and the paths of
/// the deletions.
async fn state_after(
    event: EventType,
    (live, script): (Arc<LiveSession>, Arc<Scripted>),
) -> (HoldState, Vec<String>) {
    let open = OpenSession::new(live, DEFAULT_MAXBUFFER);
    let (grant, owner) = granted(&open, 0);
    let watch = std::future::ready(WatchEvent::Fired(event)).boxed();
    let loss_watch = LossWatch::new(grant.znode.clone(), script.server(), Some(watch));
    grant.watch_by(loss_watch);
    sleep(Duration::from_millis(1)).await;
    let deletions = script.deletions();
    drop(owner);
    (grant.state(), deletions)
}

#[tokio::test(start_paused = true)]
async fn znode_that_another_client_wrote_to_is_deleted() {
    let session = Scripted::open(Duration::ZERO);
    let (state, deletions) = state_after(NodeDataChanged, session).await;
    assert_eq!(state, HoldState::Lost(LossReason::Written));
    assert_eq!(deletions, [ZNODE]);
}

#[tokio::test(start_paused = true)]
async fn loss_that_is_reported_after_a_lapse_of_the_lease_is_the_lapse() {
    let session = Scripted::open(Duration::ZERO);
    sleep(LEASE * 2).await;
    let (state, _) = state_after(NodeDataChanged, session).await;
    assert_eq!(state, HoldState::Lost(LossReason::LeaseElapsed));
}

#[tokio::test(start_paused = true)]
async fn deletion_is_one_unless_the_session_is_known_to_be_over() {
    let session = Scripted::open(Duration::ZERO);
    let script = session.1.clone();
    let (state, _) = state_after(NodeDeleted, session).await;
    assert_eq!(state, HoldState::Lost(LossReason::Deleted));
    assert!(script.deletions().is_empty(), "the znode has gone");

    let session = Scripted::open(Duration::ZERO);
    session.0.set_status(Status::Ended(SessionEnd::Expired));
    let (state, _) = state_after(NodeDeleted, session).await;
    let expired = LossReason::Session(SessionEnd::Expired);
    assert_eq!(state, HoldState::Lost(expired));
}
