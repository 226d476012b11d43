//! What the participants of a run know of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zookeeper_recipes_suite::TestedRecipe;

use crate::ledger::Ledger;
use crate::schedule::{Crowd, Schedule};

/// What a contender knows of the run.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) recipe: TestedRecipe,
    pub(crate) ledger: Arc<Ledger>,
    /// The accounts of the locks beside it, the first of which is acquired together with the recipe.
    pub(crate) beside: Vec<Arc<Ledger>>,
    /// When things cease to go wrong, and everybody comes to an end.
    pub(crate) quiet_from: Instant,
    /// How long a caller does not poll what it awaits, at most.
    pub(crate) neglects: Option<Duration>,
    /// Whether it is changed how much can be held.
    pub(crate) resizes: bool,
    /// Whether processes fall asleep, and then are late.
    pub(crate) sleeps: bool,
    pub(crate) longest_stay: Duration,
    /// The servers' tick that the processes are configured with.
    pub(crate) tick: Duration,
    /// How long a process tries to open a session before it begins anew.
    pub(crate) connects_within: Duration,
    /// How many there are beside.
    pub(crate) crowd: Crowd,
    /// Whether most holders hold for about as long as a session lasts.
    pub(crate) stays_long: bool,
}

impl Setting {
    /// The setting of a run that begins now. The first ledger is the recipe's own.
    pub(crate) fn new(
        recipe: TestedRecipe,
        schedule: &Schedule,
        ledgers: &[Arc<Ledger>],
    ) -> Setting {
        Setting {
            recipe,
            ledger: ledgers[0].clone(),
            beside: ledgers[1..].to_vec(),
            quiet_from: Instant::now() + schedule.troubled,
            resizes: schedule.resizes,
            sleeps: schedule.rates.asleep > 0.0 || schedule.between_pairs.is_some(),
            longest_stay: schedule.options.session_timeout * 2,
            tick: schedule.options.tick,
            connects_within: schedule.connects_within(),
            stays_long: schedule.stays_long,
            neglects: schedule.neglects,
            crowd: schedule.crowd,
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        Instant::now() >= self.quiet_from
    }

    /// Sleeps, but not into the quiet.
    pub(crate) async fn pause(&self, duration: Duration) {
        let until = (Instant::now() + duration).min(self.quiet_from);
        tokio::time::sleep_until(until).await;
    }
}
