//! Several recipes as one: held together, or none of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zookeeper_recipes::{AllHold, AllOf, Error};
use zookeeper_recipes_suite::{LOCK, RecipeOptions};

use crate::contender::{Contender, commit, draw_weight, guarded, make};
use crate::holding::Holding;
use crate::invariants::errors::Asked;
use crate::invariants::release;
use crate::ledger::Ledger;
use crate::place::BESIDE;

impl Contender<'_> {
    /// Acquires the recipe under test and the lock beside it.
    pub(crate) async fn together(&mut self) {
        let setting = self.setting;
        let ledger = &setting.ledger;
        let capacity = ledger.capacity();
        let weight = draw_weight(&setting.recipe, capacity, &mut self.rng);
        let recipe = make(setting, self.session, weight, capacity, &mut self.rng);
        let beside = LOCK
            .make(self.session, BESIDE.path, 1, RecipeOptions::new())
            .expect("the options are good");
        let both = AllOf::new([recipe, beside]).expect("they have different paths");
        let (started, patience) = (Instant::now(), self.draw_patience());
        let way = self.rng.u8(..4);
        let asked = Asked {
            since: ledger.now(),
            weight,
            given: Some(capacity),
            looks_first: way == 0,
        };
        let result = match way {
            0 => self.neglected(both.try_acquire()).await,
            1 => {
                let result = self.neglected(both.acquire_timeout(patience)).await;
                self.check_deadline(&result, started, patience);
                result.map(Some)
            }
            2 => self.neglected(both.acquire()).await.map(Some),
            _ => match tokio::time::timeout(patience, both.acquire()).await {
                Ok(result) => result.map(Some),
                Err(_) => {
                    ledger.count(|figures| figures.aborted += 1);
                    Ok(None)
                }
            },
        };
        match result {
            Ok(Some(holds)) => self.hold_together(holds, weight).await,
            Ok(None) => {}
            Err(error) => ledger.failed(&self.who, Some(&asked), &error),
        }
    }

    async fn hold_together(&mut self, holds: AllHold, weight: u64) {
        let setting = self.setting;
        if !holds.is_held() {
            let text = format!("{}: {holds:?}", self.who);
            setting.violated("what is acquired together is held together", text);
        }
        setting.count(|figures| figures.together += 1);
        let mut holdings = Vec::new();
        for hold in holds.holds() {
            let (ledger, weight) = match hold.node_path().starts_with(BESIDE.path) {
                true => (&setting.beside[0], 1),
                false => (&setting.ledger, weight),
            };
            let holding = Holding::of_another(ledger, &self.who, weight, &hold.view());
            holdings.push((holding, ledger));
        }
        let stay = Duration::from_millis(self.rng.u64(0..=600));
        let lost = tokio::select! {
            biased;
            (hold, reason) = holds.lost() => Some((hold.node_path().to_owned(), reason)),
            () = setting.pause_for(stay) => None,
        };
        if let (Some(lost), true) = (lost, holds.is_held()) {
            let text = format!("{}: {lost:?}, yet {holds:?}", self.who);
            setting.violated("what is lost is not held", text);
        }
        for (hold, (holding, ledger)) in holds.holds().iter().zip(&holdings) {
            if self.rng.bool() {
                let write = guarded(ledger.place(), &hold.view(), holding.weight());
                commit(ledger, &self.who, write, holding.number()).await;
            }
        }
        let ledgers = holdings.into_iter().map(|(_, ledger)| ledger).collect();
        self.release_together(holds, ledgers).await;
    }

    /// Releases the holds in some way; `ledgers` are their ledgers, in the same order.
    async fn release_together(&mut self, holds: AllHold, ledgers: Vec<&Arc<Ledger>>) {
        let setting = self.setting;
        let paths: Vec<String> = holds
            .holds()
            .iter()
            .map(|it| it.node_path().to_owned())
            .collect();
        match self.rng.u8(..3) {
            0 => drop(holds),
            1 => {
                let patience = Duration::from_millis(self.rng.u64(0..=20));
                // Let go of half-way, both are released all the same.
                let _ = tokio::time::timeout(patience, holds.release()).await;
            }
            _ => match self.neglected(holds.release()).await {
                Ok(()) => {
                    for (path, ledger) in paths.iter().zip(ledgers) {
                        if ledger.recipe().queues {
                            ledger.look(|state| release::at_word(state, &self.who, path));
                        }
                    }
                }
                Err(error @ Error::Refused { .. }) => {
                    setting.ledger.failed(&self.who, None, &error);
                }
                // It was lost before.
                Err(_) => {}
            },
        }
    }
}
