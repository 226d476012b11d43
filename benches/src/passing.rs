//! A lock as it is passed on, one step at a time.
//!
//! Between two steps all other contenders wait, and no request is under way. Each step is checked:
//! only the contender whose turn it is may hold.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use futures_util::future::try_join_all;
use zookeeper_recipes_core::{Contender, FencingToken, InvalidInput, Recipe, Refusal, Session};
use zookeeper_recipes_testkit::meter::Counts;

use crate::crowd::{Crowd, Happening};
use crate::member::Member;
use crate::turns::Turns;
use crate::way::{Wakes, Way};

/// How long one step may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The interval between two looks at the server.
const LOOK: Duration = Duration::from_millis(1);

/// How many contenders enter the queue at a time when it is filled.
///
/// Each of them lists the whole queue, and the server keeps the lists in memory until they are
/// read.
const ENTERING: usize = 100;

/// Makes the recipe of one contender: in this session, under this name, as a writer or as a reader.
pub type MakeRecipe<'m> = &'m dyn Fn(&Session, &str, bool) -> Result<Box<dyn Recipe>, InvalidInput>;

/// The contenders of one lock: some hold it, and the others wait.
#[derive(Debug)]
pub struct Passing {
    crowd: Crowd,
    way: Way,
    /// The sessions. The contenders share them if there are more contenders than sessions.
    members: Vec<Member>,
    /// Looks on, and contends for nothing.
    observer: Box<dyn Recipe>,
    observing: Member,
    turns: Turns,
    /// The number of contenders that have been told to acquire.
    entered: usize,
}

/// What one release has done.
#[derive(Clone, Debug)]
pub struct Handover {
    /// The contenders that hold since then.
    pub entrants: Vec<Entrant>,
}

/// A contender that holds since a release.
#[derive(Clone, Copy, Debug)]
pub struct Entrant {
    /// The contender.
    pub who: usize,
    /// The token of its hold.
    pub token: FencingToken,
    /// The time from the call of release until it held.
    pub after: Duration,
}

/// A contender that holds, and since when.
struct Entered {
    who: usize,
    token: FencingToken,
    at: Instant,
}

impl Passing {
    /// Makes the contenders, a writer or a reader each, and the directory of their lock. None of
    /// them acquires before [`enter`](Self::enter).
    ///
    /// # Errors
    ///
    /// If a recipe cannot be made, or the server does not answer.
    pub async fn begin(
        way: &Way,
        make: MakeRecipe<'_>,
        members: &[Member],
        observing: &Member,
        writes: Vec<bool>,
    ) -> anyhow::Result<Passing> {
        let recipe = |(who, &writes): (usize, &bool)| {
            let session = &members[who % members.len()].session;
            make(session, &format!("{who:05}"), writes)
        };
        let recipes: Result<Vec<_>, _> = writes.iter().enumerate().map(recipe).collect();
        let observer = make(&observing.session, "observer", true)?;
        // No contender's first request is spent on finding that the directory is missing.
        observer.acquire().await?.release().await?;
        Ok(Passing {
            crowd: Crowd::new(recipes?),
            way: *way,
            members: members.to_vec(),
            observer,
            observing: observing.clone(),
            turns: Turns::new(writes, way.has_queue()),
            entered: 0,
        })
    }

    /// The contenders that hold.
    pub fn holders(&self) -> impl ExactSizeIterator<Item = usize> {
        self.turns.holding().iter().copied()
    }

    /// The counts of all sessions together.
    pub fn counts(&self) -> Counts {
        let counts = self.members.iter().map(|member| member.meter.read());
        counts.fold(Counts::default(), Counts::plus)
    }

    /// Lets the next contenders acquire, up to `number` of them, and waits until each of them holds
    /// or waits, and nothing is under way.
    ///
    /// # Errors
    ///
    /// If a contender fails, holds out of turn, or it takes too long.
    pub async fn enter(&mut self, number: usize) -> anyhow::Result<()> {
        self.fill(number).await.context("cannot fill the queue")
    }

    async fn fill(&mut self, number: usize) -> anyhow::Result<()> {
        let end = self.turns.contenders().min(self.entered + number);
        while self.entered < end {
            let entering = self.entered..end.min(self.entered + ENTERING);
            self.entered = entering.end;
            for who in entering {
                self.turns.asks(who);
                self.crowd.acquire(who);
            }
            if self.way.has_queue() {
                within("entering", self.until_listed(self.entered)).await?;
            }
        }
        if self.way.has_queue() {
            self.turns.queued(self.read_queue().await?)?;
        }
        within("the first hold", self.entrants(None)).await?;
        within("waiting", self.until_all_wait()).await?;
        self.settle().await
    }

    async fn until_listed(&self, number: usize) -> anyhow::Result<()> {
        while self.listed().await? < number {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Lists the queue, and counts its contenders.
    ///
    /// # Errors
    ///
    /// If the queue cannot be listed.
    pub async fn listed(&self) -> anyhow::Result<usize> {
        let path = self.observer.path();
        let server = self.observing.session.server(path).await?;
        match server.list(path.as_str()).await {
            Ok(names) => Ok(names.iter().filter(|name| is_contender(name)).count()),
            Err(error) if error.is(Refusal::NoNode) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    async fn read_queue(&self) -> anyhow::Result<VecDeque<usize>> {
        let entries = self.observer.contenders().await?;
        let names = entries.iter().map(|entry| {
            let name = String::from_utf8_lossy(&entry.data);
            name.parse()
                .with_context(|| format!("the queue has a contender {name:?}"))
        });
        names.collect()
    }

    async fn until_all_wait(&mut self) -> anyhow::Result<()> {
        if self.way.wakes == Wakes::Nobody {
            return self.catch_up().await;
        }
        let mut waiting = vec![0; self.members.len()];
        for who in self.turns.waiting() {
            waiting[who % self.members.len()] += 1;
        }
        let waits = self.members.iter().zip(waiting).map(|(member, waiting)| {
            let all_wait =
                move |counts: &Counts| counts.unanswered == 0 && counts.watches >= waiting;
            member.meter.when(all_wait)
        });
        let waits = try_join_all(waits.map(async |wait| anyhow::Ok(wait.await)));
        tokio::select! {
            biased;
            happened = self.crowd.next() => bail!("unasked: {:?}", happened?),
            waits = waits => waits.map(drop),
        }
    }

    /// Waits until all contenders hold that are due, and the releasing one has released. Says when
    /// each of them held, and when the release was called.
    async fn entrants(
        &mut self,
        releasing: Option<usize>,
    ) -> anyhow::Result<(Vec<Entered>, Option<Instant>)> {
        let (mut entered, mut called) = (Vec::new(), None);
        // Without an order all waiters are due until one of them holds.
        while !self.turns.due().is_empty() || (releasing.is_some() && called.is_none()) {
            match self.crowd.next().await? {
                (who, Happening::Entered { at, token }) => {
                    self.turns.enters(who, token)?;
                    entered.push(Entered { who, token, at });
                }
                (who, Happening::Released { called: at }) if Some(who) == releasing => {
                    called = Some(at);
                }
                (who, happened) => bail!("{who}: {happened:?}, unasked"),
            }
        }
        if let Some(happened) = self.crowd.already() {
            bail!("unasked: {happened:?}");
        }
        Ok((entered, called))
    }

    /// Lets time pass while the holders hold. Nothing may happen meanwhile.
    ///
    /// # Errors
    ///
    /// If a contender fails, or another one holds.
    pub async fn rest(&mut self, time: Duration) -> anyhow::Result<()> {
        tokio::select! {
            biased;
            happened = self.crowd.next() => {
                let (who, happened) = happened?;
                let holding = self.turns.holding();
                bail!("{who}: {happened:?}, while {holding:?} hold")
            }
            () = tokio::time::sleep(time) => Ok(()),
        }
    }

    /// Lets a holder release, and waits until it has released and all contenders hold whose turn
    /// has come.
    ///
    /// # Errors
    ///
    /// If a contender fails, holds out of turn or before the release, or it takes too long.
    pub async fn release(&mut self, who: usize) -> anyhow::Result<Handover> {
        self.turns.leaves(who)?;
        self.crowd.release(who);
        let (entered, called) = within("a handover", self.entrants(Some(who))).await?;
        let called = called.context("no contender has released")?;
        let entrants = entered.into_iter().map(|entered| {
            let Entered {
                who: next,
                token,
                at,
            } = entered;
            let after = at.checked_duration_since(called);
            let after = after.with_context(|| format!("{next} holds, while {who} still does"))?;
            Ok(Entrant {
                who: next,
                token,
                after,
            })
        });
        Ok(Handover {
            entrants: entrants.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Lets a contender that has released acquire again, behind all others, and waits until it
    /// waits. Says how long that has taken.
    ///
    /// # Errors
    ///
    /// If the contender fails, or it takes too long.
    pub async fn join(&mut self, who: usize) -> anyhow::Result<Duration> {
        self.turns.asks(who);
        let meter = &self.members[who % self.members.len()].meter;
        let before = meter.read();
        let watches = self.way.wakes != Wakes::Nobody;
        let began = Instant::now();
        self.crowd.acquire(who);
        let waits = meter.when(|counts| {
            // Its create and its list have been answered, and its watches are set.
            counts.requests >= before.requests + 2
                && counts.unanswered == 0
                && (counts.watches_set > before.watches_set || !watches)
        });
        within("joining", async { anyhow::Ok(waits.await) }).await?;
        let took = began.elapsed();
        ensure!(
            self.turns.due().is_empty(),
            "no contender is left to wait for"
        );
        Ok(took)
    }

    /// Waits until no request and no notification is under way. Returns at once if the contenders
    /// poll, since then a request always is.
    ///
    /// # Errors
    ///
    /// If a session fails, or it takes too long.
    pub async fn settle(&self) -> anyhow::Result<()> {
        if self.way.wakes == Wakes::Nobody {
            return Ok(());
        }
        within("settling", async {
            loop {
                let before = self.counts();
                self.catch_up().await?;
                let after = self.counts();
                let quiet = after.unanswered == 0
                    && (after.requests, after.told()) == (before.requests, before.told());
                if quiet {
                    return Ok(());
                }
                tokio::time::sleep(LOOK).await;
            }
        })
        .await
    }

    /// Waits until each session has received everything that the server had sent to it.
    async fn catch_up(&self) -> anyhow::Result<()> {
        let path = self.observer.path();
        try_join_all(self.members.iter().map(async |member| {
            member.session.server(path).await?.sync("/").await?;
            anyhow::Ok(())
        }))
        .await?;
        Ok(())
    }

    /// Makes all contenders give up, and waits until their znodes and watches have gone.
    ///
    /// # Errors
    ///
    /// If a znode or a watch stays, or the server does not answer.
    pub async fn end(mut self) -> anyhow::Result<()> {
        self.crowd.give_up();
        within("leaving", async {
            while self.listed().await? > 0 || !self.observer.contenders().await?.is_empty() {
                tokio::time::sleep(LOOK).await;
            }
            for member in &self.members {
                let is_done = |counts: &Counts| counts.unanswered == 0 && counts.watches == 0;
                member.meter.when(is_done).await;
            }
            self.catch_up().await
        })
        .await
    }
}

async fn within<T>(step: &str, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done.with_context(|| format!("{step} failed")),
        Err(_) => bail!("{step} was not done after {PATIENCE:?}"),
    }
}

/// True if a znode of this name is a contender, of any label.
fn is_contender(name: &str) -> bool {
    Contender::parse(name, |_| true).is_some()
}
