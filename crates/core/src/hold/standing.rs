//! The state of a grant: the fate of its znode, and the lease of its session.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;

use crate::events::holding::Record;
use crate::hold_state::{HoldState, LossReason};
use crate::live::live_session::LiveSession;
use crate::sync::lock;

/// What has happened to a grant's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Standing,
    Deleted,
    Written,
    /// The lease has lapsed, so the znode is being deleted.
    Lapsed,
    /// The time limit of the hold has passed, so the znode is being deleted.
    TimeIsUp,
}

impl Fate {
    /// The reason of the loss, if the znode's fate is one.
    pub(crate) fn loss(self) -> Option<LossReason> {
        match self {
            Fate::Standing => None,
            Fate::Deleted => Some(LossReason::Deleted),
            Fate::Written => Some(LossReason::Written),
            Fate::Lapsed => Some(LossReason::LeaseElapsed),
            Fate::TimeIsUp => Some(LossReason::TimeLimit),
        }
    }
}

/// Tells a grant the fate of its znode, and the record of its hold how the hold stands.
#[derive(Clone, Debug)]
pub(crate) struct FateTeller {
    fate: watch::Sender<Fate>,
    /// `None` while no hold has the grant, and once the hold's owner ends it.
    record: Arc<Mutex<Option<Arc<Record>>>>,
}

impl FateTeller {
    pub(crate) fn new() -> (FateTeller, watch::Receiver<Fate>) {
        let (fate, told) = watch::channel(Fate::Standing);
        let record = Arc::default();
        (FateTeller { fate, record }, told)
    }

    /// Tells a grant its fate. Only the first fate counts.
    pub(crate) fn tell(&self, fate: Fate) {
        if let (true, Some(reason)) = (self.set(fate), fate.loss()) {
            self.record(|record| record.lost(reason));
        }
    }

    /// Notes that the time limit of the hold with this record has passed.
    ///
    /// False if that hold has ended before. The next task of the process may have its grant.
    pub(crate) fn time_is_up(&self, of: &Arc<Record>) -> bool {
        let record = lock(&self.record);
        let holds = record.as_ref().is_some_and(|now| Arc::ptr_eq(now, of));
        // Under the lock, because the owner ends the hold under it.
        let is_first = holds && self.set(Fate::TimeIsUp);
        drop(record);
        if is_first {
            of.lost(LossReason::TimeLimit);
        }
        is_first
    }

    /// Sets the fate. False if it was set before.
    fn set(&self, fate: Fate) -> bool {
        self.fate.send_if_modified(|now| {
            let standing = *now == Fate::Standing;
            if standing {
                *now = fate;
            }
            standing
        })
    }

    pub(crate) fn fate(&self) -> Fate {
        *self.fate.borrow()
    }

    /// True if no grant and no view is left to tell.
    pub(crate) fn is_closed(&self) -> bool {
        self.fate.is_closed()
    }

    /// Sets the record of the hold that has the grant now.
    pub(crate) fn records(&self, record: Option<Arc<Record>>) {
        *lock(&self.record) = record;
    }

    /// Tells the record of the hold something, if a hold has the grant.
    pub(crate) fn record(&self, tell: impl FnOnce(&Record)) {
        // The lock is free while the record tells the user's subscriber.
        let record = lock(&self.record).clone();
        if let Some(record) = record {
            tell(&record);
        }
    }
}

/// The state of a grant: its session's lease, its znode's fate, and the time limit of its hold.
///
/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Standing {
    pub(crate) live: Arc<LiveSession>,
    /// The number of lapses of the session's lease at the grant.
    pub(crate) lapses: u64,
    pub(crate) fate: watch::Receiver<Fate>,
    /// When the time limit of the hold passes, by the ensemble's clock.
    pub(crate) until: Option<Duration>,
}

impl Standing {
    pub(crate) fn state(&self) -> HoldState {
        let fate = *self.fate.borrow();
        if let Some(reason) = fate.loss() {
            return HoldState::Lost(reason);
        }
        match self.live.standing(self.lapses) {
            HoldState::Held | HoldState::Suspended if self.time_is_up() => {
                HoldState::Lost(LossReason::TimeLimit)
            }
            state => state,
        }
    }

    /// True if the hold has a time limit, which has passed.
    pub(crate) fn time_is_up(&self) -> bool {
        self.until.is_some_and(|until| until <= self.live.now())
    }

    /// The time until the lease or the time limit ends the hold.
    pub(crate) fn remaining(&self) -> Duration {
        let lease = self.live.remaining();
        match self.until {
            None => lease,
            Some(until) => lease.min(until.saturating_sub(self.live.now())),
        }
    }

    /// True if the other standing is that of the same grant.
    pub(crate) fn is_of_the_grant(&self, other: &Standing) -> bool {
        self.fate.same_channel(&other.fate)
    }

    pub(crate) fn is_held(&self) -> bool {
        !matches!(self.state(), HoldState::Lost(_))
    }

    /// Resolves with the first state that is not `last`.
    ///
    /// Looks at the clock each time it is polled, so no work goes on after a pause of the process.
    /// Sleeps in the caller's runtime until the lease or the time runs out, so it does not depend on the
    /// session's runtime. Wakes now and then, because a timer may not count the time that the
    /// machine was asleep.
    pub(crate) async fn changed_from(&self, last: Option<HoldState>) -> HoldState {
        let mut condition = self.live.subscribe();
        let mut fate = self.fate.clone();
        // Subscribed before the first look at the state, so that no later change is missed.
        condition.mark_unchanged();
        fate.mark_unchanged();
        let pause = self.live.probe_interval();
        loop {
            let remaining = self.remaining();
            let mut news = pin!(async {
                tokio::select! {
                    biased;
                    Ok(()) = fate.changed() => {}
                    Ok(()) = condition.changed() => {}
                    () = tokio::time::sleep(remaining.min(pause)), if !remaining.is_zero() => {}
                    else => std::future::pending().await,
                }
            });
            let state = poll_fn(|context| match self.state() {
                state if Some(state) != last => Poll::Ready(Some(state)),
                _ => news.as_mut().poll(context).map(|()| None),
            });
            if let Some(state) = state.await {
                return state;
            }
        }
    }

    /// Resolves when the grant is lost.
    pub(crate) async fn lost(&self) -> LossReason {
        let mut state = self.state();
        loop {
            if let HoldState::Lost(reason) = state {
                return reason;
            }
            state = self.changed_from(Some(state)).await;
        }
    }

    /// Resolves when the session has noticed that the grant is lost.
    ///
    /// Cheaper than [`lost`](Self::lost), which also resolves while the session's runtime is
    /// blocked.
    pub(crate) async fn told_lost(&self) {
        let mut condition = self.live.subscribe();
        let mut fate = self.fate.clone();
        while self.is_held() {
            tokio::select! {
                biased;
                Ok(()) = fate.changed() => {}
                Ok(()) = condition.changed() => {}
                else => std::future::pending().await,
            }
        }
    }

    /// Resolves when the session's lease no longer covers the grant, whatever the znode's fate.
    pub(crate) async fn outlived(&self) -> LossReason {
        let (_kept, fate) = watch::channel(Fate::Standing);
        let session = Standing {
            fate,
            until: None,
            ..self.clone()
        };
        session.lost().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::live::scripted::{LEASE, Scripted};

    /// Nobody but the task that awaits the loss looks at the lease.
    #[tokio::test(start_paused = true)]
    async fn loss_during_a_sleep_of_the_machine_is_noticed_soon_after_it() {
        let (live, script) = Scripted::open(Duration::ZERO);
        let (_kept, fate) = watch::channel(Fate::Standing);
        let standing = Standing {
            live: live.clone(),
            lapses: 0,
            fate,
            until: None,
        };
        let lost = tokio::spawn(async move { standing.lost().await });
        sleep(Duration::from_millis(1)).await;
        assert!(!lost.is_finished(), "it is held");
        script.sleep(LEASE);
        let woken = Instant::now();
        assert_eq!(lost.await.expect("no panic"), LossReason::LeaseElapsed);
        assert!(woken.elapsed() <= live.probe_interval());
    }
}
