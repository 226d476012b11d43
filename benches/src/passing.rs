//! A lock as it is passed on, one step at a time: between two steps everybody else waits, and
//! nothing is under way. And each step is checked: who holds now must be who should.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use futures_util::future::try_join_all;
use zookeeper_recipes_core::{FencingToken, Recipe, Refusal};
use zookeeper_recipes_testkit::meter::Counts;

use crate::crowd::{Crowd, Happening, Member};
use crate::way::{Subject, Wakes, Way};

/// How long one step may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often it is looked whether all is quiet.
const LOOK: Duration = Duration::from_millis(1);

/// How many enter the queue at a time when it is filled. Each asks for the whole queue, and the
/// server keeps the answers in memory until they are read.
const ENTERING: usize = 100;

/// The contenders of one lock, some of which hold, while the others wait.
#[derive(Debug)]
pub struct Passing {
    crowd: Crowd,
    way: Way,
    /// Contenders beyond their number share them.
    members: Vec<Member>,
    observer: Box<dyn Recipe>,
    observing: Member,
    writes: Vec<bool>,
    /// All contenders, in the order in which they are to hold, where the way has one.
    queue: VecDeque<usize>,
    holding: BTreeSet<usize>,
    /// Of all holds so far, and of those as a writer.
    newest: Option<FencingToken>,
    newest_write: Option<FencingToken>,
}

/// What one release has done.
#[derive(Clone, Debug)]
pub struct Handover {
    /// For each who holds since: from the call of release until then.
    pub handoffs: Vec<Duration>,
}

impl Passing {
    /// Lets all contenders acquire, each as a writer or as a reader; returns when the first hold
    /// and the others wait. Observed by one who has no part in it.
    ///
    /// # Errors
    ///
    /// When one fails, or it takes too long.
    pub async fn begin(
        way: &Way,
        subject: Subject,
        path: &str,
        members: &[Member],
        observing: &Member,
        writes: Vec<bool>,
    ) -> anyhow::Result<Passing> {
        let recipe = |(who, &writes): (usize, &bool)| {
            let session = &members[who % members.len()].session;
            way.recipe(subject, session, path, &format!("{who:05}"), writes)
        };
        let recipes: Result<Vec<_>, _> = writes.iter().enumerate().map(recipe).collect();
        let mut passing = Passing {
            crowd: Crowd::new(recipes?),
            way: *way,
            members: members.to_vec(),
            observer: way.recipe(subject, &observing.session, path, "observer", true)?,
            observing: observing.clone(),
            writes,
            queue: VecDeque::new(),
            holding: BTreeSet::new(),
            newest: None,
            newest_write: None,
        };
        passing.fill().await.context("cannot fill the queue")?;
        Ok(passing)
    }

    /// Those who hold.
    pub fn holders(&self) -> impl ExactSizeIterator<Item = usize> {
        self.holding.iter().copied()
    }

    /// What has been counted of all sessions.
    pub fn counts(&self) -> Counts {
        let counts = self.members.iter().map(|member| member.meter.read());
        counts.fold(Counts::default(), Counts::plus)
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        // So that the directory is there, and nobody's first request is spent on finding out.
        self.observer.acquire().await?.release().await?;
        let number = self.writes.len();
        for first in (0..number).step_by(ENTERING) {
            let entering = first..number.min(first + ENTERING);
            for who in entering.clone() {
                self.crowd.acquire(who);
            }
            if self.way.has_queue() {
                within("entering", self.until_listed(entering.end)).await?;
            }
        }
        if self.way.has_queue() {
            self.queue = self.read_queue().await?;
        }
        within("the first hold", self.entrants(self.expected(), None)).await?;
        within("waiting", self.until_all_wait()).await?;
        self.settle().await
    }

    async fn until_listed(&self, number: usize) -> anyhow::Result<()> {
        while self.listed().await? < number {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Lists the queue, and says how many are in it.
    ///
    /// # Errors
    ///
    /// When it cannot be listed.
    pub async fn listed(&self) -> anyhow::Result<usize> {
        let path = self.observer.path();
        let server = self.observing.session.server(path).await?;
        match server.list(path.as_str()).await {
            Ok(names) => Ok(names.len()),
            Err(error) if error.is(Refusal::NoNode) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    async fn read_queue(&self) -> anyhow::Result<VecDeque<usize>> {
        let entries = self.observer.contenders().await?;
        let names = entries.iter().map(|entry| {
            let name = String::from_utf8_lossy(&entry.data);
            name.parse()
                .with_context(|| format!("who is {name:?} in the queue?"))
        });
        let queue: VecDeque<usize> = names.collect::<anyhow::Result<_>>()?;
        ensure!(
            queue.len() == self.writes.len(),
            "{} of {} contenders are in the queue",
            queue.len(),
            self.writes.len()
        );
        Ok(queue)
    }

    async fn until_all_wait(&self) -> anyhow::Result<()> {
        if self.way.wakes == Wakes::Nobody {
            return Ok(());
        }
        let mut waiting = vec![0; self.members.len()];
        for who in (0..self.writes.len()).filter(|who| !self.holding.contains(who)) {
            waiting[who % self.members.len()] += 1;
        }
        for (member, waiting) in self.members.iter().zip(waiting) {
            let all_wait = |counts: &Counts| counts.unanswered == 0 && counts.watches >= waiting;
            member.meter.when(all_wait).await;
        }
        Ok(())
    }

    /// Who is to hold now and does not yet.
    fn expected(&self) -> Expected {
        if !self.way.has_queue() {
            return match self.holding.is_empty() {
                true => Expected::Anyone,
                false => Expected::These(BTreeSet::new()),
            };
        }
        let mut first = self.queue.iter().copied();
        let mut hold: BTreeSet<usize> =
            first.clone().take_while(|&who| !self.writes[who]).collect();
        if hold.is_empty() {
            hold.extend(first.next());
        }
        Expected::These(hold.difference(&self.holding).copied().collect())
    }

    /// Waits until those who are expected hold, and the releasing one has released.
    async fn entrants(
        &mut self,
        mut expected: Expected,
        releasing: Option<usize>,
    ) -> anyhow::Result<(Vec<Instant>, Option<Instant>)> {
        let (mut entered, mut called) = (Vec::new(), None);
        while !expected.is_met() || (releasing.is_some() && called.is_none()) {
            match self.crowd.next().await? {
                (who, Happening::Entered { at, token }) => {
                    ensure!(
                        expected.takes(who),
                        "{who} holds, while {expected:?} should, and {:?} do",
                        self.holding
                    );
                    self.check(who, token)?;
                    self.holding.insert(who);
                    entered.push(at);
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

    /// Whether the token is newer than that of each hold that this one excludes.
    fn check(&mut self, who: usize, token: FencingToken) -> anyhow::Result<()> {
        let excluded = match self.writes[who] {
            true => self.newest,
            false => self.newest_write,
        };
        ensure!(
            excluded.is_none_or(|older| older < token),
            "{who} holds by token {token}, which is no newer than {excluded:?}"
        );
        self.newest = self.newest.max(Some(token));
        if self.writes[who] {
            self.newest_write = Some(token);
        }
        Ok(())
    }

    /// Lets one of the holders release, and waits until it has, and whose turn it is then holds.
    ///
    /// # Errors
    ///
    /// When one fails, anybody else holds, or it takes too long.
    pub async fn release(&mut self, who: usize) -> anyhow::Result<Handover> {
        ensure!(self.holding.remove(&who), "{who} does not hold");
        self.queue.retain(|&other| other != who);
        self.crowd.release(who);
        let expected = self.expected();
        let (entered, called) = within("a handover", self.entrants(expected, Some(who))).await?;
        let called = called.context("nobody has released")?;
        let handoffs = entered.into_iter();
        Ok(Handover {
            handoffs: handoffs
                .map(|at| at.saturating_duration_since(called))
                .collect(),
        })
    }

    /// Lets one who has released acquire again, behind all others, and waits until it waits. Says
    /// how long that has taken.
    ///
    /// # Errors
    ///
    /// When it fails, or takes too long.
    pub async fn join(&mut self, who: usize) -> anyhow::Result<Duration> {
        self.queue.push_back(who);
        let meter = &self.members[who % self.members.len()].meter;
        let before = meter.read();
        let watches = self.way.wakes != Wakes::Nobody;
        let began = Instant::now();
        self.crowd.acquire(who);
        let waits = meter.when(|counts| {
            // Its creation and its look at the queue have been answered, and its watches are set.
            counts.requests >= before.requests + 2
                && counts.unanswered == 0
                && (counts.watches_set > before.watches_set || !watches)
        });
        within("joining", async { anyhow::Ok(waits.await) }).await?;
        let took = began.elapsed();
        ensure!(
            matches!(self.expected(), Expected::These(nobody) if nobody.is_empty()),
            "there is nobody to wait for"
        );
        Ok(took)
    }

    /// Waits until nothing is under way between the sessions and the server. Where waiting is
    /// polling, something always is.
    ///
    /// # Errors
    ///
    /// When a session fails, or it takes too long.
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

    /// Whatever the server had sent to a session is there when this returns.
    async fn catch_up(&self) -> anyhow::Result<()> {
        let path = self.observer.path();
        try_join_all(self.members.iter().map(async |member| {
            member.session.server(path).await?.sync("/").await?;
            anyhow::Ok(())
        }))
        .await?;
        Ok(())
    }

    /// Lets all give up, and waits until they have gone, with everything they have left.
    ///
    /// # Errors
    ///
    /// When they leave something, or it takes too long.
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

/// Who is to hold next.
#[derive(Debug)]
enum Expected {
    These(BTreeSet<usize>),
    Anyone,
}

impl Expected {
    fn is_met(&self) -> bool {
        matches!(self, Expected::These(these) if these.is_empty())
    }

    fn takes(&mut self, who: usize) -> bool {
        match self {
            Expected::These(these) => these.remove(&who),
            Expected::Anyone => {
                *self = Expected::These(BTreeSet::new());
                true
            }
        }
    }
}

async fn within<T>(step: &str, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done.with_context(|| format!("{step} failed")),
        Err(_) => bail!("{step} was not done after {PATIENCE:?}"),
    }
}
