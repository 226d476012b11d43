//! The judge of the contenders of one test.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zookeeper_recipes_core::{FencingToken, HoldView};
use zookeeper_recipes_testkit::history::History;

use crate::recipe::TestedRecipe;

/// Fails the test when holders break a promise: a [`History`] that several tasks share.
///
/// Stricter than the history: each grant has a token of its own, and a holder holds to its end.
#[derive(Debug)]
pub struct Judge(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    history: History,
    /// The number of each grant's token.
    tokens: BTreeSet<i64>,
}

impl Judge {
    pub fn of(recipe: TestedRecipe) -> Judge {
        Judge::by(History::new(recipe.capacity))
    }

    /// A judge that judges the order too. Report each contender that [comes](Self::came).
    pub fn of_order(recipe: TestedRecipe) -> Judge {
        Judge::by(History::new(recipe.capacity).ordered())
    }

    fn by(history: History) -> Judge {
        Judge(Mutex::new(Seen {
            history,
            tokens: BTreeSet::new(),
        }))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // A broken promise that one task has found is no reason for the others to fail.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A contender of this weight has come to the end of the queue.
    pub fn came(&self, token: FencingToken, weight: u64) {
        self.seen().history.came(token, weight);
    }

    /// A hold begins now. The call returns its number.
    pub fn granted(&self, who: impl Debug, weight: u64, hold: &HoldView) -> u64 {
        assert!(hold.is_held(), "{who:?} comes to {:?}", hold.state());
        let token = hold.fencing_token();
        let mut seen = self.seen();
        let (number, violations) = seen.history.granted(&format!("{who:?}"), weight, hold);
        let is_new = seen.tokens.insert(token.get());
        drop(seen);
        assert!(violations.is_empty(), "{violations:?}");
        assert!(is_new, "{who:?} has another's token, {token}");
        number
    }

    /// The owner of a hold is about to release it.
    pub fn letting_go(&self, number: u64) {
        let mut seen = self.seen();
        let held = seen.history.letting_go(number).expect("it is held");
        seen.history.went(held.hold.fencing_token());
        drop(seen);
        assert!(
            held.hold.is_held(),
            "{}: lost meanwhile: {:?}",
            held.who,
            held.hold.state()
        );
    }

    /// A contender holds for this time.
    pub async fn turn(&self, who: impl Debug, weight: u64, hold: &HoldView, stay: Duration) {
        let number = self.granted(who, weight, hold);
        tokio::time::sleep(stay).await;
        self.letting_go(number);
    }

    /// How many holds have been granted.
    pub fn grants(&self) -> usize {
        self.seen().tokens.len()
    }
}
