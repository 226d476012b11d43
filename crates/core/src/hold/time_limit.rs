//! The end of a hold whose time limit has passed.

use std::sync::Arc;
use std::time::Duration;

use crate::events::holding::Record;
use crate::hold::grant::Grant;
use crate::hold::view::HoldView;
use crate::live::live_session::LiveSession;

/// Deletes the znode of a hold in the background once its time limit has passed.
///
/// Does nothing if the hold has no time limit, or ends before. The hold itself reports the loss by
/// the clock, even if this task does not run.
pub(crate) fn keep(hold: &HoldView, grant: &Grant, record: Arc<Record>) {
    let Some(until) = hold.standing().until else {
        return;
    };
    let (hold, fate) = (hold.clone(), grant.fate.clone());
    let live = grant.owned.znode.live().clone();
    live.clone().in_background(async move {
        tokio::select! {
            biased;
            _ = hold.ended_by_owner() => return,
            () = pass(&live, until) => {}
        }
        if fate.time_is_up(&record) {
            let znode = hold.znode().clone();
            znode.set_held(false);
            znode.remove_in_background(());
        }
    });
}

/// Waits until the ensemble's clock shows this time.
///
/// Wakes now and then, because a timer may not count the time that the machine was asleep.
async fn pass(live: &LiveSession, until: Duration) {
    loop {
        let remaining = until.saturating_sub(live.now());
        if remaining.is_zero() {
            return;
        }
        tokio::time::sleep(remaining.min(live.probe_interval())).await;
    }
}
