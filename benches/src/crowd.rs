//! Many contenders that do what they are told, in sessions whose traffic is counted.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zookeeper_recipes_core::{
    ConnectOptions, FencingToken, Hold, Recipe, Session, ZookeeperEnsemble,
};
use zookeeper_recipes_testkit::meter::{Meter, MeteredEnsemble};

use crate::testbed::SESSION_TIMEOUT;

/// How many sessions are opened at a time.
const OPENED_AT_A_TIME: usize = 32;

/// A session, and what it asks and is told.
#[derive(Clone, Debug)]
pub struct Member {
    /// The session.
    pub session: Session,
    /// Counts for it.
    pub meter: Meter,
}

impl Member {
    /// Opens so many sessions, each with a connection of its own.
    ///
    /// # Errors
    ///
    /// When one cannot be opened: the machine may allow too few open files.
    pub async fn connect(connect_string: &str, number: usize) -> anyhow::Result<Vec<Member>> {
        let connecting = stream::iter(0..number).map(|_| async {
            let options = ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
            let ensemble = ZookeeperEnsemble::new(connect_string, options.clone())?;
            let meter = Meter::default();
            let ensemble = MeteredEnsemble::new(Arc::new(ensemble), meter.clone());
            let session = Session::open(Arc::new(ensemble), options).await?;
            anyhow::Ok(Member { session, meter })
        });
        let members = connecting.buffer_unordered(OPENED_AT_A_TIME).try_collect();
        members
            .await
            .with_context(|| format!("cannot open {number} sessions"))
    }

    /// Closes sessions.
    pub async fn close(members: Vec<Member>) {
        let closing = stream::iter(members).map(|member| member.session.close());
        closing
            .buffer_unordered(OPENED_AT_A_TIME)
            .collect::<()>()
            .await;
    }
}

/// Contenders, each a task with a recipe of its own. Dropped, they give up.
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

/// What has happened to a contender.
#[derive(Debug)]
pub enum Happening {
    /// It holds.
    Entered {
        /// Since when.
        at: Instant,
        /// By which token.
        token: FencingToken,
    },
    /// It has released, and the server has confirmed it.
    Released {
        /// When it called release.
        called: Instant,
    },
    /// It cannot go on.
    Failed(anyhow::Error),
}

impl Crowd {
    /// Contenders with these recipes, who wait to be told.
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

    /// Tells one to acquire.
    pub fn acquire(&self, who: usize) {
        self.tell(who, Order::Acquire);
    }

    /// Tells one that holds to release.
    pub fn release(&self, who: usize) {
        self.tell(who, Order::Release);
    }

    fn tell(&self, who: usize, order: Order) {
        // One who has failed does not listen any more, and has said so.
        let _ = self.orders[who].send(order);
    }

    /// Makes all of them give up, wherever they are; what they hold is released in the background.
    pub fn give_up(&mut self) {
        self.tasks.abort_all();
    }

    /// What happens next, and to whom.
    ///
    /// # Errors
    ///
    /// When a contender has failed.
    pub async fn next(&mut self) -> anyhow::Result<(usize, Happening)> {
        match self.happenings.recv().await {
            Some((who, Happening::Failed(error))) => {
                Err(error.context(format!("contender {who} failed")))
            }
            Some(happened) => Ok(happened),
            None => Err(anyhow::anyhow!("no contender is left")),
        }
    }

    /// What has happened already and not been told; `None` where nothing has.
    pub fn already(&mut self) -> Option<(usize, Happening)> {
        self.happenings.try_recv().ok()
    }
}

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
        // Nobody listens any more where the bench has failed.
        let _ = happenings.send((who, happening));
        if failed {
            return;
        }
    }
}
