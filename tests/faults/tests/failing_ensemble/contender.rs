//! A contender: asks, holds, writes, and lets go or stays until it loses; and once it holds no
//! more, tries to write all the same.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use zookeeper_recipes_core::ensemble::TransactionError;
use zookeeper_recipes_core::{
    Acl, AfterSessionLoss, AuthId, CreateMode, Error, FencingToken, GuardedTransaction, Hold,
    Operation, Permission, Recipe, Refusal, ServerError, Session,
};
use zookeeper_recipes_suite::RecipeOptions;

use crate::journal::Journal;

/// How the ensemble fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Things go wrong.
    Busy,
    /// As well; and who holds stays until it has lost: all, or those in a session that knows this
    /// member only.
    Staying(Option<usize>),
    /// Nothing goes wrong any more, and everybody comes to an end.
    Quiet,
}

pub(crate) struct Contender {
    pub(crate) who: String,
    pub(crate) journal: Arc<Journal>,
    pub(crate) session: Session,
    /// The only member that its session knows. `None` if it knows all.
    pub(crate) member: Option<usize>,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) rng: Rng,
    /// What it has still to write under holds that it has let go of.
    pub(crate) past: Vec<Past>,
}

/// A write that comes too late.
pub(crate) struct Past {
    number: u64,
    weight: u64,
    token: FencingToken,
    write: GuardedTransaction,
    /// The same as a courier would bring it who knows of no hold.
    operations: Vec<Operation>,
    /// Whether the server has said that the holder's znode is gone.
    gone: bool,
}

impl Contender {
    /// Contends again and again while things go wrong, and once more when they have ceased to.
    pub(crate) async fn run(mut self) {
        while *self.phase.borrow() != Phase::Quiet {
            let pause = Duration::from_millis(self.rng.u64(0..=200));
            let quiet = self.phase.wait_for(|phase| *phase == Phase::Quiet);
            // An error means that the run is over.
            let _ = timeout(pause, quiet).await;
            self.write_too_late().await;
            self.round().await;
        }
        while !self.past.is_empty() {
            self.write_too_late().await;
        }
        // A session may still turn out to be over, but then the next attempt comes through.
        while !self.once_more().await {}
        self.journal.is_done(&self.who);
    }

    fn recipe(&mut self) -> (u64, Arc<dyn Recipe>) {
        let recipe = self.journal.recipe();
        let weight = *self.rng.choice(recipe.weights).expect("some weight");
        let mut options = RecipeOptions::new();
        if self.rng.bool() {
            options = options.after_session_loss(AfterSessionLoss::QueueAnew);
        }
        let made = recipe.make(&self.session, self.journal.path().as_str(), weight, options);
        (weight, made.expect("the options are good").into())
    }

    async fn once_more(&mut self) -> bool {
        let (weight, recipe) = self.recipe();
        self.journal.is_about(
            &self.who,
            format!("acquiring once more in {:?}", self.session),
        );
        let outcome = match recipe.acquire().await {
            Ok(hold) => {
                let number = self.journal.granted(&self.who, weight, &hold.view());
                self.journal.letting_go(number);
                hold.release().await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = &outcome {
            self.journal.failed(&self.who, error);
        }
        outcome.is_ok()
    }

    async fn round(&mut self) {
        let (weight, recipe) = self.recipe();
        let patience = Duration::from_millis(self.rng.u64(0..=8_000));
        self.journal
            .is_about(&self.who, format!("acquiring in {:?}", self.session));
        let result = match self.rng.u8(..8) {
            0 => recipe.acquire_timeout(patience).await.map(Some),
            1 => recipe.try_acquire().await,
            2 => match timeout(patience, recipe.acquire()).await {
                Ok(result) => result.map(Some),
                Err(_) => {
                    self.journal.count(|figures| figures.aborted += 1);
                    Ok(None)
                }
            },
            _ => recipe.acquire().await.map(Some),
        };
        match result {
            Ok(Some(hold)) => self.hold(weight, hold).await,
            Ok(None) => {}
            Err(error) => self.journal.failed(&self.who, &error),
        }
    }

    async fn hold(&mut self, weight: u64, hold: Hold) {
        let journal = self.journal.clone();
        let number = journal.granted(&self.who, weight, &hold.view());
        self.journal
            .is_about(&self.who, format!("holding {}", hold.node_path()));
        let lost = tokio::select! {
            biased;
            reason = hold.lost() => Some(reason),
            () = self.work(number, weight, &hold) => None,
        };
        if let Some(reason) = lost {
            journal.marked(number, reason);
            self.journal
                .is_about(&self.who, format!("lost {}", hold.node_path()));
            self.write(number, weight, &hold).await;
        }
        let token = hold.fencing_token();
        let mut past = Past {
            number,
            weight,
            token,
            write: self.guarded(weight, &hold),
            operations: self.unguarded(weight, &hold),
            gone: false,
        };
        journal.letting_go(number);
        self.journal
            .is_about(&self.who, format!("letting go of {}", hold.node_path()));
        past.gone = self.let_go(hold).await;
        // A few are enough.
        if self.past.len() < 3 {
            self.past.push(past);
        }
    }

    /// What it does while it holds.
    async fn work(&mut self, number: u64, weight: u64, hold: &Hold) {
        let stay = Duration::from_millis(match self.rng.u8(..16) {
            0 => self.rng.u64(0..=600),
            _ => self.rng.u64(0..=15),
        });
        let until = Instant::now() + stay;
        self.journal.stored(number, weight, hold.fencing_token());
        if self.rng.u8(..3) == 0 {
            self.write(number, weight, hold).await;
        }
        sleep_until(until).await;
        self.journal.stored(number, weight, hold.fencing_token());
        let own = self.member;
        let stays = |phase: &Phase| match phase {
            Phase::Staying(member) => member.is_none() || *member == own,
            Phase::Busy | Phase::Quiet => false,
        };
        let mut phase = self.phase.clone();
        if stays(&phase.borrow()) {
            let _staying = self.journal.stay();
            // An error means that the run is over.
            let _ = phase.wait_for(|phase| !stays(phase)).await;
        }
    }

    fn guarded(&self, weight: u64, hold: &Hold) -> GuardedTransaction {
        let path = self.journal.accepted_write(weight, hold.fencing_token());
        let mode = CreateMode::PersistentSequential;
        hold.transaction().create(&path, b"", mode)
    }

    fn unguarded(&self, weight: u64, hold: &Hold) -> Vec<Operation> {
        let path = self.journal.accepted_write(weight, hold.fencing_token());
        let acl = [Acl::new(Permission::ALL, AuthId::anyone())];
        let write = Operation::create(path, [], CreateMode::PersistentSequential, acl);
        vec![Operation::check(hold.node_path()), write]
    }

    async fn write(&self, number: u64, weight: u64, hold: &Hold) {
        // A lock of one znode has no guarded writes.
        if !self.journal.recipe().queues {
            return;
        }
        match self.guarded(weight, hold).commit().await {
            Ok(_) => self.journal.count(|figures| figures.guarded_writes += 1),
            Err(Error::Lost { .. } | Error::Released { .. }) => self.journal.refused(number),
            Err(Error::SessionOver { .. } | Error::OutcomeUnknown { .. }) => {}
            Err(error) => {
                let text = format!("{}: a guarded write fails: {error}", self.who);
                self.journal.violated(text);
            }
        }
    }

    /// Whether the server has said that the znode is gone.
    async fn let_go(&mut self, hold: Hold) -> bool {
        match self.rng.u8(..6) {
            0 => drop(hold),
            1 => {
                let patience = Duration::from_millis(self.rng.u64(0..=20));
                // Let go of half-way, it is released all the same.
                let _ = timeout(patience, hold.release()).await;
            }
            _ => match hold.release().await {
                Ok(()) => return true,
                Err(error) => self.journal.failed(&self.who, &error),
            },
        }
        false
    }

    /// Writes under a hold that it has let go of, in every way there is: to a store, through what
    /// is left of the hold, and as one who does not look for it.
    async fn write_too_late(&mut self) {
        let Some(past) = self.past.pop() else { return };
        self.journal.is_about(&self.who, "writing too late");
        // Others come in between.
        sleep(Duration::from_millis(self.rng.u64(0..=50))).await;
        self.journal.stored(past.number, past.weight, past.token);
        // A lock of one znode has no guarded writes, and its path is also that of the next holder.
        if !self.journal.recipe().queues {
            return;
        }
        match past.write.commit().await {
            Err(Error::Lost { .. } | Error::Released { .. }) => {
                self.journal.refused(past.number);
            }
            other => {
                let text = format!("{}: a guarded write too late: {other:?}", self.who);
                self.journal.violated(text);
            }
        }
        let server = match self.session.server(self.journal.path()).await {
            Ok(server) => server,
            Err(error) => return self.journal.failed(&self.who, &error),
        };
        match server.transact(&past.operations).await {
            Err(TransactionError {
                operation: Some(0),
                error,
            }) if error.is(Refusal::NoNode) => self.journal.refused(past.number),
            // The znode of a hold that was lost, or let go of in the background, may still exist.
            Ok(_) if !past.gone => {}
            Err(TransactionError {
                error: ServerError::SessionOver(_) | ServerError::OutcomeUnknown(_),
                ..
            }) => {}
            other => {
                let text = format!("{}: a write from the past: {other:?}", self.who);
                self.journal.violated(text);
            }
        }
    }
}
