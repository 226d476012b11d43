//! A contender for one recipe: acquires, works, releases, again and again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::{Hold, Session};
use zookeeper_recipes_suite::{
    ELECTION, LOCK, LOCK_OF_ONE_ZNODE, RWLOCK, RecipeOptions, SEMAPHORE, TestedRecipe,
};

use crate::line::{Line, Reported};
use crate::order::Order;

/// What each process contends for, beside the partitions.
pub(crate) const RECIPES: [TestedRecipe; 5] =
    [LOCK, RWLOCK, SEMAPHORE, ELECTION, LOCK_OF_ONE_ZNODE];

/// The interval between two pieces of work.
pub(crate) const PIECE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) recipe: TestedRecipe,
    pub(crate) worker: String,
    pub(crate) session: Session,
    pub(crate) referee: Arc<Line>,
    pub(crate) orders: watch::Receiver<Order>,
}

impl Contender {
    /// Contends until the process is to end.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut orders = self.orders.clone();
        while *self.orders.borrow() != Order::End {
            tokio::select! {
                // An error means that the process ends, too.
                _ = orders.wait_for(|order| *order == Order::End) => {}
                turn = self.turn() => turn?,
            }
        }
        Ok(())
    }

    async fn turn(&self) -> anyhow::Result<()> {
        sleep(milliseconds(0..40)).await;
        let recipe = self.recipe;
        let weight = *fastrand::choice(recipe.weights).unwrap_or(&1);
        let (path, options) = (format!("/app/{}", recipe.name), RecipeOptions::new());
        let made = recipe.make(&self.session, &path, weight, options)?;
        // The errors of a lost session and of a lost reply are part of the run. What they leave
        // behind would keep the next contender out, which the faults wait for.
        if let Ok(hold) = made.acquire().await {
            self.work(&hold, weight).await;
            let _ = hold.release().await;
        }
        Ok(())
    }

    /// Works until its time is over or the hold is lost. Under the order to stay, until the hold is
    /// lost.
    async fn work(&self, hold: &Hold, weight: u64) {
        let whose = format!("{} {}", self.worker, self.recipe.name);
        let weights = [weight, self.recipe.capacity];
        let token = hold.fencing_token().get();
        let reported = Reported::new(&self.referee, whose, token, weights);
        let deadline = Instant::now() + milliseconds(0..30);
        let stays = || *self.orders.borrow() == Order::Stay;
        while hold.is_held() && (stays() || Instant::now() < deadline) {
            reported.works();
            tokio::select! {
                _ = hold.lost() => {}
                () = sleep(PIECE) => {}
            }
        }
    }
}

fn milliseconds(range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(fastrand::u64(range))
}
