//! Contenders that acquire and release on command.

use std::time::Instant;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zookeeper_recipes_core::{FencingToken, Hold, Recipe};

/// Contenders, each a task with a recipe of its own. Dropping the crowd makes all of them give up.
#[derive(Debug)]
pub struct Crowd {
    orders: Vec<mpsc::UnboundedSender<Order>>,
    happenings: mpsc::UnboundedReceiver<(usize, Happening)>,
    tasks: JoinSet<()>,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Acquire,
    Release,
}

/// A contender's answer to a command.
#[derive(Debug)]
pub enum Happening {
    /// The contender holds.
    Entered {
        /// When its acquire returned.
        at: Instant,
        /// The hold's token.
        token: FencingToken,
    },
    /// The contender has released, and the server has confirmed it.
    Released {
        /// When the contender called release.
        called: Instant,
    },
    /// The contender has ended with an error.
    Failed(anyhow::Error),
}

impl Crowd {
    /// Starts a contender for each recipe. Each waits for its first command.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn new(recipes: Vec<Box<dyn Recipe>>) -> Crowd {
        let (sender, happenings) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let mut orders = Vec::new();
        for (who, recipe) in recipes.into_iter().enumerate() {
            let (order, ordered) = mpsc::unbounded_channel();
            orders.push(order);
            tasks.spawn(contend(who, recipe, ordered, sender.clone()));
        }
        Crowd {
            orders,
            happenings,
            tasks,
        }
    }

    /// Tells a contender to acquire.
    pub fn acquire(&self, who: usize) {
        self.tell(who, Order::Acquire);
    }

    /// Tells a holder to release.
    pub fn release(&self, who: usize) {
        self.tell(who, Order::Release);
    }

    fn tell(&self, who: usize, order: Order) {
        // A contender that has failed listens no more, and has said so.
        let _ = self.orders[who].send(order);
    }

    /// Makes all contenders give up. Their holds are released in the background.
    pub fn give_up(&mut self) {
        self.tasks.abort_all();
    }

    /// Waits for the next answer of any contender.
    ///
    /// # Errors
    ///
    /// If a contender has failed.
    pub async fn next(&mut self) -> anyhow::Result<(usize, Happening)> {
        match self.happenings.recv().await {
            Some((who, Happening::Failed(error))) => {
                Err(error.context(format!("contender {who} failed")))
            }
            Some(happened) => Ok(happened),
            None => Err(anyhow::anyhow!("no contender is left")),
        }
    }

    /// An answer that has arrived already; `None` if there is none.
    pub fn already(&mut self) -> Option<(usize, Happening)> {
        self.happenings.try_recv().ok()
    }
}

/// Follows the commands of one contender.
async fn contend(
    who: usize,
    recipe: Box<dyn Recipe>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    happenings: mpsc::UnboundedSender<(usize, Happening)>,
) {
    let mut hold: Option<Hold> = None;
    while let Some(order) = orders.recv().await {
        let happening = match (order, hold.take()) {
            (Order::Acquire, None) => match recipe.acquire().await {
                Ok(held) => {
                    let (at, token) = (Instant::now(), held.fencing_token());
                    hold = Some(held);
                    Happening::Entered { at, token }
                }
                Err(error) => Happening::Failed(error.into()),
            },
            (Order::Release, Some(held)) => {
                let called = Instant::now();
                match held.release().await {
                    Ok(()) => Happening::Released { called },
                    Err(error) => Happening::Failed(error.into()),
                }
            }
            (order, _) => Happening::Failed(anyhow::anyhow!("{order:?} makes no sense now")),
        };
        let failed = matches!(happening, Happening::Failed(_));
        // No one receives this if the bench has failed.
        let _ = happenings.send((who, happening));
        if failed {
            return;
        }
    }
}
