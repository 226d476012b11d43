//! The turns of the tasks of a process, in orders that no caller of the library can force.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use super::*;
use crate::hold::grant_state::{Fate, GrantFate};
use crate::hold::own_znode::{SessionZnodes, ZnodeOwner};
use crate::hold_state::{FencingToken, LossReason};
use crate::live::lease::Lapses;
use crate::live::live_session::SessionUse;
use crate::live::scripted::Scripted;
use crate::server::options::USUAL_MAXBUFFER;
use crate::sync::ready_now;

/// Counts how often a task is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A queue with one turn, whose hold's znode has this fate.
fn held(fate: Fate) -> (LocalQueue, LocalTurn, GrantState) {
    let (live, _) = Scripted::open(std::time::Duration::from_millis(1));
    let znode_fate = GrantFate::default();
    znode_fate.set_and_report(fate, live.now());
    let state = GrantState {
        live,
        lapses: Lapses(0),
        fate: znode_fate,
        deadline: None,
        loss: Default::default(),
    };
    let queue = LocalQueue::new(1);
    let turn = queue.try_turn().expect("nobody has it");
    turn.set_holder(state.clone());
    (queue, turn, state)
}

#[tokio::test(start_paused = true)]
async fn hold_whose_turn_was_taken_away_takes_none_from_the_next_one() {
    let (queue, late, lost) = held(Fate::Lost(LossReason::Deleted));
    let _next = queue.try_turn().expect("the one before is lost");
    late.set_holder(lost);
    assert!(queue.try_turn().is_none());
}

/// The process may pause between the last look at the hold and the handoff.
#[tokio::test(start_paused = true)]
async fn turn_that_was_revoked_hands_nothing_on() {
    let (queue, revoked, GrantState { live, .. }) = held(Fate::Lost(LossReason::Deleted));
    let _current = queue.try_turn().expect("the one before is lost");
    let mut waiting = pin!(queue.turn());
    assert!(ready_now(&mut waiting).is_none());
    let znode = SessionZnodes::new(&live, USUAL_MAXBUFFER).numbered("/locks/a");
    let owner = ZnodeOwner::new(&SessionUse::begin().0, znode);
    let token = FencingToken::from(1);
    let back = revoked.hand_on(Grant::new(
        owner,
        &Default::default(),
        Lapses(0),
        token,
        None,
    ));
    assert!(back.is_some());
    assert!(ready_now(waiting).is_none(), "another task has the turn");
}

/// Two waiters notice one loss. The second acts after the first has a new hold.
#[tokio::test(start_paused = true)]
async fn turn_stays_with_a_hold_that_lasts_when_a_loss_is_noticed_late() {
    let (queue, _turn, _) = held(Fate::Intact);
    queue.shared.pass_on_if_lost();
    assert!(queue.try_turn().is_none());
}

#[tokio::test(start_paused = true)]
async fn pass_of_a_grant_wakes_no_task_that_waits_behind_the_next() {
    let (queue, turn, state) = held(Fate::Intact);
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    let mut waiting = pin!(queue.turn());
    assert!(
        waiting
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    turn.set_holder(state.clone());
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    let fate = GrantFate::default();
    turn.set_holder(GrantState { fate, ..state });
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
}
