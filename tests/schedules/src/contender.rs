//! A contender: asks, holds, works and lets go, each in every way there is.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::FutureExt;
use tokio::time::{Instant, timeout};
use zookeeper_recipes_core::{
    AfterSessionLoss, Error, GuardedTransaction, HoldView, Recipe, Refusal, Session,
};
use zookeeper_recipes_suite::{RecipeOptions, TestedRecipe, downgrade};

use crate::holding::Holding;
use crate::invariants::errors::Asked;
use crate::invariants::release;
use crate::ledger::Ledger;
use crate::neglect::Neglected;
use crate::place::{Place, UNDER_TEST};
use crate::resizing;
use crate::setting::Setting;

/// How late a timer may be: tokio's count whole milliseconds.
const TIMERS: Duration = Duration::from_millis(2);

/// The recipes that the contenders of a process share, by their weights.
pub(crate) type Shared = BTreeMap<u64, SharedRecipe>;

/// A recipe of a process.
pub(crate) struct SharedRecipe {
    recipe: Arc<dyn Recipe>,
    /// Whether it has been found to know how much can be held, and learns of changes since.
    has_agreed: Cell<bool>,
}

impl SharedRecipe {
    pub(crate) fn new(
        setting: &Setting,
        session: &Session,
        weight: u64,
        rng: &mut Rng,
    ) -> SharedRecipe {
        let capacity = setting.recipe.capacity;
        SharedRecipe {
            recipe: Arc::from(make(setting, session, weight, capacity, rng)),
            has_agreed: Cell::new(false),
        }
    }
}

/// One contender.
pub(crate) struct Contender<'a> {
    pub(crate) who: String,
    pub(crate) setting: &'a Setting,
    pub(crate) session: &'a Session,
    pub(crate) shared: &'a Shared,
    pub(crate) rng: Rng,
    /// Writes that were made up under a hold that has gone since.
    pub(crate) leftover: Vec<(GuardedTransaction, u64)>,
}

/// What a contender has chosen to acquire.
struct Choice<'a> {
    recipe: Arc<dyn Recipe>,
    weight: u64,
    given: Option<u64>,
    shared: Option<&'a SharedRecipe>,
}

impl<'a> Contender<'a> {
    /// Contends again and again while things go wrong, and once more when they have ceased to.
    pub(crate) async fn run(mut self) {
        while !self.setting.is_quiet() {
            self.setting.pause(&mut self.rng, 600).await;
            self.round().await;
        }
        for (write, number) in std::mem::take(&mut self.leftover) {
            self.write(write, number).await;
        }
        // A session may still turn out to be over, but then the next attempt comes through.
        while !self.once_more().await {}
    }

    async fn once_more(&mut self) -> bool {
        let choice = self.choose();
        let asked = self.asked(&choice, false);
        match choice.recipe.acquire().await {
            Ok(hold) => {
                let holding = Holding::new(&self.setting.ledger, &self.who, choice.weight, hold);
                let Some(hold) = holding.let_go() else {
                    return false;
                };
                hold.release().await.is_ok()
            }
            Err(error) => {
                self.setting.ledger.failed(&self.who, Some(&asked), &error);
                false
            }
        }
    }

    fn choose(&mut self) -> Choice<'a> {
        let capacity = self.setting.ledger.capacity();
        let weight = draw_weight(&self.setting.recipe, capacity, &mut self.rng);
        if self.rng.bool() {
            if let Some(shared) = self.shared.get(&weight) {
                return Choice {
                    recipe: shared.recipe.clone(),
                    weight,
                    given: (!shared.has_agreed.get()).then_some(self.setting.recipe.capacity),
                    shared: Some(shared),
                };
            }
        }
        let (setting, session) = (self.setting, self.session);
        Choice {
            recipe: Arc::from(make(setting, session, weight, capacity, &mut self.rng)),
            weight,
            given: Some(capacity),
            shared: None,
        }
    }

    fn asked(&self, choice: &Choice<'_>, looks_first: bool) -> Asked {
        Asked {
            since: self.setting.ledger.now(),
            weight: choice.weight,
            given: choice.given,
            looks_first,
        }
    }

    async fn round(&mut self) {
        match self.rng.u8(..8) {
            0 => self.together().await,
            1..=3 if self.setting.recipe.elects => self.lead().await,
            1 if self.setting.schedule.resizes => self.resize().await,
            _ => self.alone().await,
        }
    }

    /// The future, which this contender does not poll for a while now and then.
    pub(crate) fn neglected<F: Future>(&mut self, future: F) -> Neglected<F> {
        let setting = self.setting;
        Neglected::new(
            future,
            self.rng.fork(),
            setting.schedule.neglects,
            setting.quiet_from,
        )
    }

    pub(crate) fn draw_patience(&mut self) -> Duration {
        Duration::from_millis(match self.rng.u8(..4) {
            0 => self.rng.u64(0..=30),
            1 => self.rng.u64(0..=500),
            _ => self.rng.u64(0..=8_000),
        })
    }

    /// Acquires the recipe, in one of the ways that every recipe has.
    async fn alone(&mut self) {
        let choice = self.choose();
        let (started, patience) = (Instant::now(), self.draw_patience());
        let way = self.rng.u8(..8);
        let asked = self.asked(&choice, way == 5);
        let recipe = &choice.recipe;
        let result = match way {
            0..=2 => self.neglected(recipe.acquire()).await.map(Some),
            3 | 4 => {
                let result = self.neglected(recipe.acquire_timeout(patience)).await;
                self.check_deadline(&result, started, patience);
                result.map(Some)
            }
            5 => self.neglected(recipe.try_acquire()).await,
            _ => match timeout(patience, self.neglected(recipe.acquire())).await {
                Ok(result) => result.map(Some),
                Err(_) => {
                    self.setting.count(|figures| figures.aborted += 1);
                    Ok(None)
                }
            },
        };
        match result {
            Ok(Some(hold)) => {
                if let Some(shared) = choice.shared {
                    shared.has_agreed.set(true);
                }
                let ledger = &self.setting.ledger;
                let holding = Holding::new(ledger, &self.who, choice.weight, hold);
                self.hold(holding).await;
            }
            Ok(None) => {}
            Err(error) => self.setting.ledger.failed(&self.who, Some(&asked), &error),
        }
    }

    pub(crate) fn check_deadline<T>(
        &self,
        result: &Result<T, Error>,
        started: Instant,
        patience: Duration,
    ) {
        let took = started.elapsed();
        let early = matches!(result, Err(Error::DeadlineElapsed { .. })) && took < patience;
        let is_punctual = !self.setting.sleeps() && self.setting.schedule.neglects.is_none();
        let late = is_punctual && took > patience + Duration::from_millis(2);
        if early || late {
            let text = format!("{}: given {patience:?}, came back after {took:?}", self.who);
            self.setting.violated("a deadline is kept", text);
        }
    }

    /// Asks for another capacity.
    async fn resize(&mut self) {
        let to = self.rng.u64(1..=self.setting.recipe.capacity);
        resizing::resize(&self.setting.ledger, &self.who, self.session, to).await;
    }

    /// Holds for a while, writing under guard and to a store, then lets go in some way.
    async fn hold(&mut self, holding: Holding<'_>) {
        let longest = self.setting.longest_stay();
        let stay = Duration::from_millis(match self.rng.u8(..8) {
            0 => self.rng.u64(0..=longest),
            1..=5 if self.setting.schedule.stays_long => self.rng.u64(longest / 4..=longest),
            1 => 0,
            _ => self.rng.u64(0..=300),
        });
        let until = (Instant::now() + stay).min(self.setting.quiet_from);
        let Some(hold) = holding.view() else {
            return;
        };
        loop {
            let step = Duration::from_millis(self.rng.u64(1..=150));
            let detained = self.setting.ledger.detains();
            let until = if detained {
                self.setting.quiet_from
            } else {
                until
            };
            let next = (Instant::now() + step).min(until);
            let lost = tokio::select! {
                biased;
                ended = hold.ended() => Some(ended),
                () = tokio::time::sleep_until(next) => None,
            };
            let is_lost = lost.is_none() && hold.state().ended().is_some();
            if is_lost && timeout(TIMERS, hold.ended()).await.is_err() {
                let text = format!("{}: {hold:?}", self.who);
                let promise = "a task that waits for the loss of a hold is notified in time";
                self.setting.violated(promise, text);
            }
            if lost.is_some() {
                self.setting.count(|figures| figures.losses += 1);
                if hold.is_held() {
                    let text = format!("{}: {hold:?}", self.who);
                    self.setting.violated("what is lost is not held", text);
                }
                break;
            }
            if Instant::now() >= until {
                break;
            }
            self.work(&hold, &holding).await;
        }
        let path = hold.node_path().to_owned();
        let write = guarded(UNDER_TEST, &hold, holding.weight());
        match self.rng.u8(..6) {
            // The write is sent when it may be too late for it.
            0 | 1 => self.leftover.push((write, holding.number())),
            2 => self.write_in_passing(write, holding.number()),
            _ => {}
        }
        drop(hold);
        self.let_go(holding, path).await;
    }

    async fn work(&mut self, hold: &HoldView, holding: &Holding<'_>) {
        let (number, weight) = (holding.number(), holding.weight());
        match self.rng.u8(..6) {
            0 => {
                let write = guarded(UNDER_TEST, hold, weight);
                self.write(write, number).await;
            }
            1 if hold.is_held() => {
                let ledger = self.setting.ledger.clone();
                let token = hold.fencing_token();
                let way = Duration::from_millis(self.rng.u64(0..=3_000));
                tokio::spawn(async move {
                    tokio::time::sleep(way).await;
                    ledger.store(weight, token, number);
                });
            }
            2 => {
                if let Some((write, number)) = self.leftover.pop() {
                    self.write(write, number).await;
                }
            }
            _ => {}
        }
    }

    async fn write(&mut self, write: GuardedTransaction, number: u64) {
        let (ledger, who) = (self.setting.ledger.clone(), self.who.clone());
        self.neglected(commit(&ledger, &who, write, number)).await;
    }

    /// Sends a guarded write, and does not wait for its answer.
    fn write_in_passing(&mut self, write: GuardedTransaction, number: u64) {
        let (ledger, who) = (self.setting.ledger.clone(), self.who.clone());
        let mut sent = Box::pin(async move { commit(&ledger, &who, write, number).await });
        let is_answered = (&mut sent).now_or_never().is_some();
        if !is_answered && self.rng.bool() {
            tokio::spawn(sent);
        }
    }

    async fn let_go(&mut self, mut holding: Holding<'_>, path: String) {
        let ledger = &*self.setting.ledger;
        if let Some(how) = self.setting.recipe.downgrade {
            let whole = self.setting.recipe.capacity;
            if holding.weight() == whole && self.rng.bool() {
                let Some(hold) = holding.let_go() else { return };
                match downgrade(hold, how).await {
                    Ok(hold) => {
                        holding = Holding::new(ledger, &self.who, how.weight, hold);
                        self.setting.pause(&mut self.rng, 300).await;
                    }
                    // At the end of the count a place cannot be kept.
                    Err(Error::InvalidInput(_)) if path.contains("-2147483") => return,
                    Err(Error::InvalidInput(_)) if path.ends_with("2147483647") => return,
                    Err(error) => return ledger.failed(&self.who, None, &error),
                }
            }
        }
        let way = self.rng.u8(..6);
        // Still held as far as the ledger knows: what is released is lost before anything is sent.
        let kept = if way == 5 { holding.take() } else { None };
        let mut holding = Some(holding);
        let hold = match kept {
            Some(hold) => Some(hold),
            None => holding.take().and_then(Holding::let_go),
        };
        let Some(hold) = hold else { return };
        let (view, path) = (hold.view(), hold.node_path().to_owned());
        match way {
            0 => drop(hold),
            1 => {
                let patience = Duration::from_millis(self.rng.u64(0..=20));
                // Let go of half-way, it is released all the same.
                let _ = timeout(patience, hold.release()).await;
            }
            _ => match self.neglected(hold.release()).await {
                Ok(()) if self.setting.recipe.queues => {
                    ledger.look(|state| release::at_word(state, &self.who, &path))
                }
                Ok(()) => {}
                Err(error) => ledger.failed(&self.who, None, &error),
            },
        }
        ledger.report(release::of_views(&self.who, &view));
    }
}

/// A write of what a checker has to know, under guard of a hold.
pub(crate) fn guarded(place: Place, hold: &HoldView, weight: u64) -> GuardedTransaction {
    let (token, path) = (hold.fencing_token(), hold.node_path());
    let data = format!("{token} {weight} {path}");
    hold.transaction().set_data(place.guarded, data.as_bytes())
}

/// Sends a guarded write, of the hold that the ledger knows by this number.
pub(crate) async fn commit(ledger: &Ledger, who: &str, write: GuardedTransaction, number: u64) {
    let since = ledger.now();
    match write.commit().await {
        Ok(_) => {}
        Err(Error::Refused {
            path,
            refusal: Refusal::NoNode,
            ..
        }) if ledger.was_unguarded(&path, since) => {}
        // A lock of one znode has no guarded writes.
        Err(Error::InvalidInput(_)) if !ledger.recipe().queues => {}
        Err(Error::Lost { .. } | Error::Released { .. }) => ledger.refused(number),
        Err(Error::SessionOver { .. } | Error::OutcomeUnknown { .. }) => {}
        Err(Error::Refused { refusal, .. }) if ledger.is_said(&refusal) => {}
        Err(error) => {
            let text = format!("{who}: {error}");
            ledger.violated("a guarded write fails only for a reason", text);
        }
    }
}

/// One of the recipe's weights that fit into the capacity.
pub(crate) fn draw_weight(recipe: &TestedRecipe, capacity: u64, rng: &mut Rng) -> u64 {
    let fits = |weight: &&u64| **weight <= capacity;
    let weights: Vec<u64> = recipe.weights.iter().filter(fits).copied().collect();
    *rng.choice(&weights).unwrap_or(&1)
}

/// Makes the recipe with a weight and options by chance, and says what an acquire asks for.
pub(crate) fn draw(
    setting: &Setting,
    session: &Session,
    rng: &mut Rng,
) -> (Box<dyn Recipe>, Asked) {
    let capacity = setting.ledger.capacity();
    let weight = draw_weight(&setting.recipe, capacity, rng);
    let recipe = make(setting, session, weight, capacity, rng);
    let asked = Asked {
        since: setting.ledger.now(),
        weight,
        given: Some(capacity),
        looks_first: false,
    };
    (recipe, asked)
}

/// Makes the recipe, with options by chance, given how much can be held.
pub(crate) fn make(
    setting: &Setting,
    session: &Session,
    weight: u64,
    capacity: u64,
    rng: &mut Rng,
) -> Box<dyn Recipe> {
    let recipe = setting.recipe.of(capacity);
    recipe
        .make(session, UNDER_TEST.path, weight, options(rng))
        .expect("the options are good")
}

/// Options by chance.
pub(crate) fn options(rng: &mut Rng) -> RecipeOptions {
    let mut options = RecipeOptions::new();
    if rng.bool() {
        options = options.after_session_loss(AfterSessionLoss::Requeue);
    }
    options
}
