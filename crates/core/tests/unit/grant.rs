//! The registry of the grants of a session.

use tracing::Span;

use super::*;
use crate::events::Source;
use crate::events::hold::HoldRecord;
use crate::hold::Hold;
use crate::hold::own_znode::SessionZnodes;
use crate::live::live_session::SessionUse;
use crate::live::scripted::Scripted;
use crate::path::NodePath;

#[tokio::test(start_paused = true)]
async fn hold_that_was_granted_after_a_later_lapse_is_not_lost() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let granted = Granted::default();
    let znode = SessionZnodes::new(&live).numbered("/locks/a");
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
    let znode = SessionZnodes::new(&live).numbered("/locks/a");
    let owner = ZnodeOwner::new(&SessionUse::begin().0, znode);
    let grant = Grant::new(owner, &granted, Lapses(0), FencingToken::from(1), None);
    granted.delete_lost(Lapses(1));
    let source = Source {
        recipe: "lock",
        name: "".into(),
        path: NodePath::new("/locks").expect("a good path"),
        owner: "".into(),
        leads: false,
    };
    let source = Arc::new(source);
    let record = HoldRecord::begin(source, &Span::none(), grant.start(), Duration::ZERO);
    let hold = Hold::new(grant, None, record, None);
    let loss = hold.view.grant_state.loss.get();
    assert_eq!(loss.map(|loss| loss.reason), Some(LossReason::LeaseElapsed));
}
