//! A contender: asks, holds, works and lets go, each in every way there is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::Instant;
use zookeeper_recipes_core::{
    AfterSessionLoss, Error, GuardedTransaction, Hold, QueueOptions, Recipe, Session,
};

use crate::ledger::{GUARDED, Ledger};
use crate::recipe::{RecipeUnderTest, downgrade};

/// What a contender knows of the run.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) recipe: RecipeUnderTest,
    pub(crate) ledger: Arc<Ledger>,
    /// When things cease to go wrong, and everybody comes to an end.
    pub(crate) quiet_from: Instant,
    pub(crate) handovers: Option<u32>,
    /// Whether processes fall asleep, and then are late.
    pub(crate) sleeps: bool,
    pub(crate) longest_stay: Duration,
}

impl Setting {
    fn is_quiet(&self) -> bool {
        Instant::now() >= self.quiet_from
    }

    /// Sleeps, but not into the quiet.
    async fn pause(&self, duration: Duration) {
        let until = (Instant::now() + duration).min(self.quiet_from);
        tokio::time::sleep_until(until).await;
    }
}

/// The recipes that the contenders of a process share.
pub(crate) type Shared = BTreeMap<u64, Arc<dyn Recipe>>;

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

/// A hold that its contender has not let go of. Dropped, it lets go.
struct Holding<'a> {
    ledger: &'a Ledger,
    number: u64,
    weight: u64,
    hold: Option<Hold>,
}

impl<'a> Holding<'a> {
    fn new(ledger: &'a Ledger, who: &str, weight: u64, hold: Hold) -> Holding<'a> {
        let number = ledger.granted(who, weight, &hold);
        Holding {
            ledger,
            number,
            weight,
            hold: Some(hold),
        }
    }

    fn let_go(mut self) -> Option<Hold> {
        self.ledger.letting_go(self.number);
        self.hold.take()
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.ledger.letting_go(self.number);
    }
}

impl Contender<'_> {
    /// Contends again and again while things go wrong, and once more when they have ceased to.
    pub(crate) async fn run(mut self) {
        while !self.setting.is_quiet() {
            let pause = self.rng.u64(0..=600);
            self.setting.pause(Duration::from_millis(pause)).await;
            self.round().await;
        }
        for (write, number) in std::mem::take(&mut self.leftover) {
            self.write(write, number).await;
        }
        // A session may still turn out to be over, but then the next attempt comes through.
        while !self.once_more().await {}
    }

    async fn once_more(&mut self) -> bool {
        let (weight, recipe) = self.recipe();
        match recipe.acquire().await {
            Ok(hold) => {
                let holding = Holding::new(&self.setting.ledger, &self.who, weight, hold);
                let Some(hold) = holding.let_go() else {
                    return false;
                };
                hold.release().await.is_ok()
            }
            Err(error) => {
                self.setting.ledger.failed(&self.who, &error);
                false
            }
        }
    }

    fn recipe(&mut self) -> (u64, Arc<dyn Recipe>) {
        let recipe = self.setting.recipe;
        let weight = *self.rng.choice(recipe.weights).unwrap_or(&1);
        if self.rng.bool() {
            if let Some(shared) = self.shared.get(&weight) {
                return (weight, shared.clone());
            }
        }
        (
            weight,
            make(self.setting, self.session, weight, &mut self.rng),
        )
    }

    async fn round(&mut self) {
        let (weight, recipe) = self.recipe();
        let asked = Instant::now();
        let patience = Duration::from_millis(match self.rng.u8(..4) {
            0 => self.rng.u64(0..=30),
            1 => self.rng.u64(0..=500),
            _ => self.rng.u64(0..=8_000),
        });
        let result = match self.rng.u8(..8) {
            0..=2 => recipe.acquire().await.map(Some),
            3 | 4 => {
                let result = recipe.acquire_timeout(patience).await;
                self.check_deadline(&result, asked, patience);
                result.map(Some)
            }
            5 => recipe.try_acquire().await,
            _ => match tokio::time::timeout(patience, recipe.acquire()).await {
                Ok(result) => result.map(Some),
                Err(_) => {
                    self.setting.ledger.count(|figures| figures.aborted += 1);
                    Ok(None)
                }
            },
        };
        match result {
            Ok(Some(hold)) => {
                let setting = self.setting;
                let holding = Holding::new(&setting.ledger, &self.who, weight, hold);
                self.hold(holding).await;
            }
            Ok(None) => {}
            Err(error) => self.setting.ledger.failed(&self.who, &error),
        }
    }

    fn check_deadline(&self, result: &Result<Hold, Error>, asked: Instant, patience: Duration) {
        let took = asked.elapsed();
        let early = matches!(result, Err(Error::DeadlineElapsed { .. })) && took < patience;
        let late = !self.setting.sleeps && took > patience + Duration::from_millis(2);
        if early || late {
            let text = format!("{}: given {patience:?}, came back after {took:?}", self.who);
            self.setting.ledger.violated("a deadline is kept", text);
        }
    }

    /// Holds for a while, writing under guard and to a store, then lets go in some way.
    async fn hold<'a>(&mut self, holding: Holding<'a>) {
        let longest = self.setting.longest_stay.as_millis() as u64;
        let stay = Duration::from_millis(match self.rng.u8(..8) {
            0 => self.rng.u64(0..=longest),
            1 => 0,
            _ => self.rng.u64(0..=300),
        });
        let until = (Instant::now() + stay).min(self.setting.quiet_from);
        let Some(hold) = holding.hold.clone() else {
            return;
        };
        loop {
            let step = Duration::from_millis(self.rng.u64(1..=150));
            let next = (Instant::now() + step).min(until);
            let lost = tokio::select! {
                biased;
                reason = hold.lost() => Some(reason),
                () = tokio::time::sleep_until(next) => None,
            };
            if lost.is_some() {
                self.setting.ledger.count(|figures| figures.losses += 1);
                if hold.is_held() {
                    let text = format!("{}: {hold:?}", self.who);
                    self.setting
                        .ledger
                        .violated("what is lost is not held", text);
                }
                break;
            }
            if Instant::now() >= until {
                break;
            }
            self.work(&hold, &holding).await;
        }
        let path = hold.path().to_owned();
        if self.rng.u8(..3) == 0 {
            // To be sent when it may be too late for it.
            self.leftover
                .push((guarded(&hold, holding.weight), holding.number));
        }
        drop(hold);
        self.let_go(holding, path).await;
    }

    async fn work(&mut self, hold: &Hold, holding: &Holding<'_>) {
        let (number, weight) = (holding.number, holding.weight);
        match self.rng.u8(..6) {
            0 => self.write(guarded(hold, weight), number).await,
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

    async fn write(&self, write: GuardedTransaction, number: u64) {
        match write.commit().await {
            Ok(_) => {}
            Err(Error::Lost { .. }) => self.setting.ledger.refused(number),
            Err(Error::SessionOver { .. } | Error::OutcomeUnknown { .. }) => {}
            Err(error) => {
                let text = format!("{}: {error}", self.who);
                self.setting
                    .ledger
                    .violated("a guarded write fails only for a reason", text);
            }
        }
    }

    async fn let_go(&mut self, mut holding: Holding<'_>, path: String) {
        let ledger = &*self.setting.ledger;
        if let Some(how) = self.setting.recipe.downgrade {
            let whole = self.setting.recipe.capacity;
            if holding.weight == whole && self.rng.bool() {
                let Some(hold) = holding.let_go() else { return };
                match downgrade(hold, how).await {
                    Ok(hold) => {
                        holding = Holding::new(ledger, &self.who, how.weight, hold);
                        let stay = self.rng.u64(0..=300);
                        self.setting.pause(Duration::from_millis(stay)).await;
                    }
                    // At the end of the count a place cannot be kept.
                    Err(Error::InvalidInput(_)) if path.contains("-2147483") => return,
                    Err(Error::InvalidInput(_)) if path.ends_with("2147483647") => return,
                    Err(error) => return ledger.failed(&self.who, &error),
                }
            }
        }
        let Some(hold) = holding.let_go() else { return };
        let path = hold.path().to_owned();
        match self.rng.u8(..6) {
            0 => drop(hold),
            1 => {
                let patience = Duration::from_millis(self.rng.u64(0..=20));
                // Let go of half-way, it is released all the same.
                let _ = tokio::time::timeout(patience, hold.release()).await;
            }
            2 => {
                let clone = hold.clone();
                let released = hold.release().await;
                if released.is_err() {
                    let text = format!("{}: {released:?}", self.who);
                    ledger.violated("a clone is let go of without a word", text);
                }
                drop(clone);
            }
            _ => match hold.release().await {
                Ok(()) if self.setting.handovers.unwrap_or(0) == 0 => {
                    if self.setting.recipe.queues {
                        ledger.released(&self.who, &path);
                    }
                }
                Ok(()) => {}
                Err(error) => ledger.failed(&self.who, &error),
            },
        }
    }
}

fn guarded(hold: &Hold, weight: u64) -> GuardedTransaction {
    let data = format!("{} {weight} {}", hold.fencing_token(), hold.path());
    hold.transaction().set_data(GUARDED, data.as_bytes(), None)
}

/// Makes the recipe, with options by chance.
pub(crate) fn make(
    setting: &Setting,
    session: &Session,
    weight: u64,
    rng: &mut Rng,
) -> Arc<dyn Recipe> {
    let mut options = QueueOptions::new();
    if rng.bool() {
        options = options.after_session_loss(AfterSessionLoss::QueueAnew);
    }
    if let Some(handovers) = setting.handovers {
        options = options.local(handovers);
    }
    setting
        .recipe
        .make(session, weight, options)
        .expect("the options are good")
}
