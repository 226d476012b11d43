//! A lock as it is passed on, one step at a time.
//!
//! Between two steps all other contenders wait, and no request is under way. Each step is checked:
//! only the contender whose turn it is may hold.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use futures_util::future::try_join_all;
use tokio::task::JoinSet;
use zookeeper_recipes_core::{Contender, FencingToken, Hold, Recipe, Refusal};
use zookeeper_recipes_testkit::history::History;
use zookeeper_recipes_testkit::meter::Counts;

use crate::member::Member;
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

/// The contenders of one lock: some hold it, and the others wait.
#[derive(Debug)]
pub struct Passing {
    recipes: Vec<Arc<dyn Recipe>>,
    /// The acquisitions and releases under way.
    tasks: JoinSet<anyhow::Result<Happening>>,
    way: Way,
    /// The sessions. The contenders share them if there are more contenders than sessions.
    members: Vec<Member>,
    /// Looks on, and contends for nothing.
    observer: Arc<dyn Recipe>,
    observing: Member,
    /// The contenders in the order in which they must hold; `None` if the lock promises no order.
    queue: Option<VecDeque<usize>>,
    waiting: BTreeSet<usize>,
    /// The contender that holds, with the number of its hold in the history. More than one is an error.
    holding: BTreeMap<usize, (u64, Hold)>,
    history: History,
}

/// The end of an acquisition or of a release.
#[derive(Debug)]
enum Happening {
    Entered {
        who: usize,
        at: Instant,
        hold: Box<Hold>,
    },
    Released {
        called: Instant,
    },
}

/// A contender that holds since a release.
#[derive(Clone, Copy, Debug)]
pub struct Entrant {
    pub who: usize,
    pub token: FencingToken,
    /// When its acquire returned.
    pub at: Instant,
}

impl Passing {
    /// Makes that many contenders, and the directory of their lock. None of them acquires before
    /// [`enter`](Self::enter).
    pub async fn begin(
        way: &Way,
        path: &str,
        members: &[Member],
        observing: &Member,
        contenders: usize,
    ) -> anyhow::Result<Passing> {
        let recipe = |who: usize| {
            let session = &members[who % members.len()].session;
            way.lock(session, path, &format!("{who:05}"))
        };
        let recipes: Result<Vec<_>, _> = (0..contenders).map(recipe).collect();
        let observer = way.lock(&observing.session, path, "observer")?;
        // No contender's first request is spent on finding that the directory is missing.
        observer.acquire().await?.release().await?;
        Ok(Passing {
            recipes: recipes?,
            tasks: JoinSet::new(),
            way: *way,
            members: members.to_vec(),
            observer,
            observing: observing.clone(),
            history: History::new(1),
            queue: way.has_queue().then(VecDeque::new),
            waiting: BTreeSet::new(),
            holding: BTreeMap::new(),
        })
    }

    pub fn holders(&self) -> impl ExactSizeIterator<Item = usize> {
        self.holding.keys().copied()
    }

    /// The counts of all sessions together.
    pub fn counts(&self) -> Counts {
        let counts = self.members.iter().map(|member| member.meter.read());
        counts.fold(Counts::default(), Counts::plus)
    }

    /// Lets the next contenders acquire, up to `number` of them, and waits until each of them holds
    /// or waits, and nothing is under way.
    pub async fn enter(&mut self, number: usize) -> anyhow::Result<()> {
        self.fill(number).await.context("cannot fill the queue")
    }

    async fn fill(&mut self, number: usize) -> anyhow::Result<()> {
        let mut entered = self.waiting.len() + self.holding.len();
        let end = self.recipes.len().min(entered + number);
        while entered < end {
            let entering = entered..end.min(entered + ENTERING);
            entered = entering.end;
            for who in entering {
                self.acquire(who);
            }
            if self.way.has_queue() {
                within("entering", self.until_listed(entered)).await?;
            }
        }
        if self.way.has_queue() {
            let queue = self.read_queue().await?;
            let found: BTreeSet<usize> = queue.iter().copied().collect();
            let expected = self.waiting.iter().chain(self.holding.keys());
            let expected: BTreeSet<usize> = expected.copied().collect();
            ensure!(
                found == expected && queue.len() == expected.len(),
                "contenders {queue:?} are in the queue, instead of {expected:?}"
            );
            self.queue = Some(queue);
        }
        within("the first hold", self.entrants(false)).await?;
        within("waiting", self.until_all_wait()).await?;
        self.settle().await
    }

    /// Lets a contender acquire, behind all others.
    fn acquire(&mut self, who: usize) {
        self.waiting.insert(who);
        if let Some(queue) = &mut self.queue {
            queue.push_back(who);
        }
        let recipe = self.recipes[who].clone();
        self.tasks.spawn(async move {
            let hold = recipe.acquire().await;
            let at = Instant::now();
            let hold = hold.with_context(|| format!("contender {who} failed"))?;
            let hold = Box::new(hold);
            Ok(Happening::Entered { who, at, hold })
        });
    }

    /// The contenders that must hold now and do not yet. Any one of them, if there is no order.
    fn due(&self) -> BTreeSet<usize> {
        let Some(queue) = &self.queue else {
            return match self.holding.is_empty() {
                true => self.waiting.clone(),
                false => BTreeSet::new(),
            };
        };
        let first = queue.front().copied();
        let due = first.filter(|who| !self.holding.contains_key(who));
        due.into_iter().collect()
    }

    /// Notes that a contender holds. The call fails if that breaks a promise.
    fn hold(&mut self, who: usize, hold: Hold) -> anyhow::Result<()> {
        let (due, holding) = (self.due(), self.holding.keys());
        ensure!(
            due.contains(&who),
            "{who} holds, while {due:?} should, and {holding:?} do"
        );
        let (number, violations) = self.history.granted(&who.to_string(), 1, &hold.view());
        ensure!(violations.is_empty(), "{violations:?}");
        self.waiting.remove(&who);
        self.holding.insert(who, (number, hold));
        Ok(())
    }

    async fn until_listed(&self, number: usize) -> anyhow::Result<()> {
        while self.listed().await? < number {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Lists the queue, and counts its contenders.
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
        for who in &self.waiting {
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
            happened = next(&mut self.tasks) => bail!("unasked: {:?}", happened?),
            waits = waits => waits.map(drop),
        }
    }

    /// Waits until all contenders hold that are due, and the releasing one has released. The call
    /// returns when each of them held, and when the release was called.
    async fn entrants(
        &mut self,
        releases: bool,
    ) -> anyhow::Result<(Vec<Entrant>, Option<Instant>)> {
        let (mut entered, mut called) = (Vec::new(), None);
        // If there is no order, all waiters are due until one of them holds.
        while !self.due().is_empty() || (releases && called.is_none()) {
            match next(&mut self.tasks).await? {
                Happening::Entered { who, at, hold } => {
                    let token = hold.fencing_token();
                    self.hold(who, *hold)?;
                    entered.push(Entrant { who, token, at });
                }
                Happening::Released { called: at } => called = Some(at),
            }
        }
        if let Some(happened) = self.tasks.try_join_next() {
            bail!("unasked: {:?}", happened??);
        }
        Ok((entered, called))
    }

    /// Lets time pass while the holders hold. Nothing may happen meanwhile.
    pub async fn rest(&mut self, time: Duration) -> anyhow::Result<()> {
        tokio::select! {
            biased;
            happened = next(&mut self.tasks) => {
                let (happened, holding) = (happened?, self.holding.keys());
                bail!("{happened:?}, while {holding:?} hold")
            }
            () = tokio::time::sleep(time) => Ok(()),
        }
    }

    /// Lets a holder release, and waits until it has released and all contenders hold whose turn
    /// has come. The call returns the time of the call, and these contenders.
    pub async fn release(&mut self, who: usize) -> anyhow::Result<(Instant, Vec<Entrant>)> {
        let held = self.holding.remove(&who);
        let (number, hold) = held.with_context(|| format!("{who} does not hold"))?;
        self.history.letting_go(number);
        if let Some(queue) = &mut self.queue {
            queue.retain(|&other| other != who);
        }
        self.tasks.spawn(async move {
            let called = Instant::now();
            let released = hold.release().await;
            released.with_context(|| format!("contender {who} failed"))?;
            Ok(Happening::Released { called })
        });
        let (entrants, called) = within("a handoff", self.entrants(true)).await?;
        let called = called.context("no contender has released")?;
        for Entrant { who: next, at, .. } in &entrants {
            ensure!(*at >= called, "{next} holds, while {who} still does");
        }
        Ok((called, entrants))
    }

    /// Lets a contender that has released acquire again, behind all others, and waits until it
    /// waits. The call returns how long that has taken.
    pub async fn join(&mut self, who: usize) -> anyhow::Result<Duration> {
        let before = self.members[who % self.members.len()].meter.read();
        let watches = self.way.wakes != Wakes::Nobody;
        let began = Instant::now();
        self.acquire(who);
        let meter = &self.members[who % self.members.len()].meter;
        let waits = meter.when(|counts| {
            // Its create and its list have been answered, and its watches are set.
            counts.requests >= before.requests + 2
                && counts.unanswered == 0
                && (counts.watches_set > before.watches_set || !watches)
        });
        within("joining", async { anyhow::Ok(waits.await) }).await?;
        let took = began.elapsed();
        ensure!(self.due().is_empty(), "no contender is left to wait for");
        Ok(took)
    }

    /// Waits until no request and no notification is under way. The call returns at once if the
    /// contenders poll, since then a request always is.
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
    pub async fn end(mut self) -> anyhow::Result<()> {
        self.tasks.shutdown().await;
        self.holding.clear();
        // The history has a view of each hold.
        self.history = History::new(1);
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

/// Waits for the next end of an acquisition or of a release.
async fn next(tasks: &mut JoinSet<anyhow::Result<Happening>>) -> anyhow::Result<Happening> {
    match tasks.join_next().await {
        Some(happened) => happened?,
        None => pending().await,
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
