//! What everybody in a run knows of it.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep_until};
use zookeeper_recipes_core::Error;
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::TestedRecipe;

use crate::figures::Figures;
use crate::ledger::Ledger;
use crate::schedule::Schedule;

/// A run: its simulation, its schedule, and the accounts of it.
pub(crate) struct Setting {
    pub(crate) recipe: TestedRecipe,
    pub(crate) simulation: Simulation,
    pub(crate) schedule: Schedule,
    pub(crate) ledger: Arc<Ledger>,
    /// The accounts of the locks beside it, the first of which is acquired together with the recipe.
    pub(crate) beside: Vec<Arc<Ledger>>,
    /// When things cease to go wrong, and everybody comes to an end.
    pub(crate) quiet_from: Instant,
}

impl Setting {
    /// The setting of a run that begins now. The first ledger is the recipe's own.
    pub(crate) fn new(
        simulation: &Simulation,
        schedule: Schedule,
        ledgers: &[Arc<Ledger>],
    ) -> Setting {
        simulation.faults().set_rates(schedule.rates.clone());
        Setting {
            recipe: ledgers[0].recipe(),
            simulation: simulation.clone(),
            ledger: ledgers[0].clone(),
            beside: ledgers[1..].to_vec(),
            quiet_from: Instant::now() + schedule.troubled,
            schedule,
        }
    }

    /// All accounts, the recipe's own last.
    pub(crate) fn ledgers(&self) -> impl Iterator<Item = &Ledger> {
        self.beside.iter().chain([&self.ledger]).map(|it| &**it)
    }

    pub(crate) fn violated(&self, promise: &'static str, text: String) {
        self.ledger.violated(promise, text);
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Figures)) {
        self.ledger.count(count);
    }

    /// A call has failed: there is a reason.
    pub(crate) fn failed(&self, who: &str, error: &Error, has_reason: bool) {
        self.count(|figures| figures.errors += 1);
        self.simulation.remark(format!("{who} fails: {error}"));
        if !has_reason {
            let text = format!("{who}: {error:?}");
            self.violated("a call fails only for a reason", text);
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        Instant::now() >= self.quiet_from
    }

    /// Sleeps up to so many milliseconds, but not into the quiet.
    pub(crate) async fn pause(&self, rng: &mut Rng, most: u64) {
        self.pause_for(Duration::from_millis(rng.u64(0..=most)))
            .await;
    }

    /// Sleeps, but not into the quiet.
    pub(crate) async fn pause_for(&self, duration: Duration) {
        sleep_until((Instant::now() + duration).min(self.quiet_from)).await;
    }

    /// Whether processes fall asleep, and then are late.
    pub(crate) fn sleeps(&self) -> bool {
        self.schedule.rates.asleep > 0.0 || self.schedule.between_pairs.is_some()
    }

    /// How long a hold lasts at most, in milliseconds.
    pub(crate) fn longest_stay(&self) -> u64 {
        self.schedule.options.session_timeout.as_millis() as u64 * 2
    }

    /// Has the faults happen that last.
    pub(crate) async fn lasting_faults(&self) {
        if let Some(lasting) = &self.schedule.lasting {
            lasting.happen(&self.simulation).await;
        }
    }

    /// Things cease to go wrong.
    pub(crate) fn calms_down(&self) {
        self.simulation.faults().stop();
        self.simulation.remark("from here on all is quiet");
    }

    /// What this comes to. Nothing, and a violation, if the simulation exceeds its limits.
    pub(crate) async fn within_limits<T>(&self, run: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = run => Some(done),
            text = self.simulation.exceeds_its_limits() => {
                self.violated("nothing continues without end", text);
                None
            }
        }
    }
}
