//! The options of any recipe.

use std::time::Duration;

use zookeeper_recipes_core::{AfterSessionLoss, WaitStrategy};
use zookeeper_recipes_election::ElectionOptions;
use zookeeper_recipes_lock::{LockOptions, SingleNodeOptions};
use zookeeper_recipes_rwlock::RwLockOptions;
use zookeeper_recipes_semaphore::SemaphoreOptions;

/// What is chosen about a recipe, as far as the recipe has such an option.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RecipeOptions {
    strategy: WaitStrategy,
    data: Option<Vec<u8>>,
    after_session_loss: AfterSessionLoss,
    max_hold: Option<Duration>,
}

/// Sets the time limit of a hold.
macro_rules! limited {
    ($chosen:expr, $options:expr) => {
        match $chosen.max_hold {
            Some(limit) => $options.max_hold(limit),
            None => $options,
        }
    };
}

/// Sets the options that all recipes with data share.
macro_rules! shared {
    ($chosen:expr, $options:expr) => {{
        let options = limited!($chosen, $options).after_session_loss($chosen.after_session_loss);
        match $chosen.data {
            Some(data) => options.data(data),
            None => options,
        }
    }};
}

impl RecipeOptions {
    pub fn new() -> RecipeOptions {
        RecipeOptions::default()
    }

    pub fn strategy(mut self, strategy: WaitStrategy) -> RecipeOptions {
        self.strategy = strategy;
        self
    }

    /// The data of the contenders' znodes; the id of an election's candidate.
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> RecipeOptions {
        self.data = Some(data.into());
        self
    }

    /// What a waiting attempt does when its session expires.
    pub fn after_session_loss(mut self, then: AfterSessionLoss) -> RecipeOptions {
        self.after_session_loss = then;
        self
    }

    /// How long each hold lasts at most.
    pub fn max_hold(mut self, limit: Duration) -> RecipeOptions {
        self.max_hold = Some(limit);
        self
    }

    pub(crate) fn single_node(self) -> SingleNodeOptions {
        limited!(self, SingleNodeOptions::new())
    }

    pub(crate) fn lock(self) -> LockOptions {
        shared!(self, LockOptions::new().strategy(self.strategy))
    }

    pub(crate) fn rwlock(self) -> RwLockOptions {
        shared!(self, RwLockOptions::new().strategy(self.strategy))
    }

    pub(crate) fn semaphore(self) -> SemaphoreOptions {
        shared!(self, SemaphoreOptions::new())
    }

    /// The candidate's id, and the options.
    pub(crate) fn election(self) -> (String, ElectionOptions) {
        let data = self.data.unwrap_or_default();
        let id = String::from_utf8_lossy(&data).into_owned();
        let options = limited!(self, ElectionOptions::new());
        (id, options.after_session_loss(self.after_session_loss))
    }
}
