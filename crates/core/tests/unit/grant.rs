//! The registry of the grants of a session.

use futures_util::future::FutureExt;
use tokio::time::sleep;
use tracing::Span;

use super::*;
use crate::events::hold::HoldRecord;
use crate::hold::Hold;
use crate::hold::own_znode::{SessionZnodes, Writers};
use crate::live::live_session::{SessionUse, Status};
use crate::live::scripted::{LEASE, Scripted, TIMEOUT, source};
use crate::server::ensemble::Event;
use crate::server::options::USUAL_MAXBUFFER;

#[tokio::test(start_paused = true)]
async fn hold_that_was_granted_after_a_later_lapse_is_not_lost() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let granted = Granted::default();
    let znode = SessionZnodes::new(&live, USUAL_MAXBUFFER).numbered("/locks/a");
    let fate = GrantFate::default();
    let _entry = granted.add(RegisteredGrant {
        lapses: Lapses(1),
        znode,
        fate: fate.clone(),
        is_watched: true,
    });
    assert!(granted.take_lost(Lapses(0)).is_empty());
    assert!(granted.take_lost(Lapses(1)).is_empty());
    assert_eq!(granted.take_lost(Lapses(2)).len(), 1);
    assert_eq!(fate.get(), Fate::Lost(LossReason::LeaseElapsed));
}

/// The thread of the attempt stands still between the grant and the hold.
#[tokio::test(start_paused = true)]
async fn loss_before_the_hold_begins_is_reported_to_its_record() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let granted = Granted::default();
    let znode = SessionZnodes::new(&live, USUAL_MAXBUFFER).numbered("/locks/a");
    let owner = ZnodeOwner::new(&SessionUse::begin().0, znode);
    let grant = Grant::new(owner, &granted, Lapses(0), FencingToken::from(1), None);
    granted.delete_lost(Lapses(1));
    let record = HoldRecord::begin(source(), &Span::none(), grant.start(), Duration::ZERO);
    let hold = Hold::new(grant, record, None);
    let loss = hold.view.grant_state.loss.get();
    assert_eq!(loss.map(|loss| loss.reason), Some(LossReason::LeaseElapsed));
}

/// The fate of a grant before the first lapse, after its loss watch has reported this event, and the
/// paths of the deletions.
async fn fate_after(
    event: Event,
    (live, script): (Arc<LiveSession>, Arc<Scripted>),
) -> (Fate, Vec<String>) {
    let mut owner = ZnodeOwner::new(
        &SessionUse::begin().0,
        SessionZnodes::new(&live, USUAL_MAXBUFFER).numbered("/locks/a"),
    );
    owner.set_path("/locks/a", Writers::Owner);
    owner.disown();
    let grant = RegisteredGrant {
        lapses: Lapses(0),
        znode: owner.znode.clone(),
        fate: GrantFate::default(),
        is_watched: true,
    };
    let watched = Watched {
        server: script.clone(),
        znode: grant.znode.clone(),
    };
    let watch = std::future::ready(event).boxed();
    let fate = grant.fate.clone();
    grant.follow(LossWatch::new(watched, Some(watch))).await;
    sleep(Duration::from_millis(1)).await;
    (fate.get(), script.deletions())
}

#[tokio::test(start_paused = true)]
async fn znode_that_another_client_wrote_to_is_deleted() {
    let session = Scripted::open(Duration::ZERO);
    let (fate, deletions) = fate_after(Event::DataChanged, session).await;
    assert_eq!(fate, Fate::Lost(LossReason::Written));
    assert_eq!(deletions, ["/locks/a"]);
}

#[tokio::test(start_paused = true)]
async fn loss_that_is_reported_after_a_lapse_of_the_lease_is_the_lapse() {
    let session = Scripted::open(Duration::ZERO);
    sleep(LEASE * 2).await;
    let (fate, _) = fate_after(Event::DataChanged, session).await;
    assert_eq!(fate, Fate::Lost(LossReason::LeaseElapsed));
}

#[tokio::test(start_paused = true)]
async fn deletion_is_explained_by_an_answer_or_by_the_end_of_the_session() {
    let session = Scripted::open(Duration::ZERO);
    let (fate, _) = fate_after(Event::Deleted, session).await;
    assert_eq!(fate, Fate::Lost(LossReason::Deleted));

    let session = Scripted::open(TIMEOUT);
    let (fate, _) = fate_after(Event::Deleted, session).await;
    assert_eq!(fate, Fate::Lost(LossReason::DeletedOrSessionOver));

    // The session reports its end to all its holds.
    let session = Scripted::open(TIMEOUT);
    session.0.set_status(Status::Ended(SessionEnd::Expired));
    let (fate, _) = fate_after(Event::Deleted, session).await;
    assert_eq!(fate, Fate::Gone);

    // What is known of the znode counts before that.
    let session = Scripted::open(TIMEOUT);
    session.0.set_status(Status::Ended(SessionEnd::Expired));
    let (fate, _) = fate_after(Event::DataChanged, session).await;
    assert_eq!(fate, Fate::Lost(LossReason::Written));
}
