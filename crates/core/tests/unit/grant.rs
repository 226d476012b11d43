//! The registry of the grants of a session.

use super::*;
use crate::hold::own_znode::SessionZnodes;
use crate::live::scripted::Scripted;

#[tokio::test(start_paused = true)]
async fn hold_that_was_granted_after_a_later_lapse_is_not_lost() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let granted = Granted::default();
    let znode = SessionZnodes::new(&live).unique("/locks/a");
    let fate = GrantFate::default();
    let _entry = granted.add(RegisteredGrant {
        lapses: 1,
        znode,
        fate: fate.clone(),
        is_watched: true,
    });
    assert!(granted.take_lost(0).is_empty());
    assert!(granted.take_lost(1).is_empty());
    assert_eq!(granted.take_lost(2).len(), 1);
    assert_eq!(fate.get(), Fate::Lost(LossReason::LeaseElapsed));
}
