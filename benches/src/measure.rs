//! What it costs to pass a lock on, and to come back into its queue: counted, and timed.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use anyhow::Context;
use hdrhistogram::Histogram;

use crate::Testbed;
use crate::crowd::Member;
use crate::passing::Passing;
use crate::progress::Progress;
use crate::way::{POLL_INTERVAL, Subject, Wakes, Way};
use crate::wire::{Reading, Traffic, Wire};

/// How long a server is busied until its compiler has done most of its work.
const WARM_UP: Duration = Duration::from_secs(5);

/// How many lists are timed.
const LISTS: usize = 50;

/// What is passed on, and among whom.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// How they wait.
    pub way: Way,
    /// What for.
    pub subject: Subject,
    /// How many they are.
    pub contenders: usize,
    /// Their sessions, which they share where they are more.
    pub members: &'a [Member],
}

/// How long things have taken, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Times {
    /// From a call of release until somebody holds since.
    pub handoffs: Histogram<u64>,
    /// From a call of acquire until it waits, behind all others.
    pub joins: Histogram<u64>,
    /// A list of the queue, and nothing else.
    pub lists: Histogram<u64>,
}

/// What releases have cost, and coming back into the queue after each of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// How many releases, and so how many joins.
    pub releases: u64,
    /// What all releases have cost.
    pub of_releases: Cost,
    /// What it has cost to come back.
    pub of_joins: Cost,
}

/// What something has cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// What has passed over the wire.
    pub traffic: Traffic,
    /// Of the notifications: those of something that somebody else did.
    pub notified: u64,
}

/// How much is measured for one figure.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So often at least.
    pub least: usize,
    /// And so often at most.
    pub most: usize,
    /// What is over the least is measured within this time.
    pub time: Duration,
}

impl Limits {
    fn allow(&self, done: usize, since: Instant) -> bool {
        done < self.least || (done < self.most && since.elapsed() < self.time)
    }
}

/// Where it is measured.
#[derive(Debug)]
pub struct Field<'a> {
    testbed: &'a Testbed,
    /// Looks on; what it asks is no part of the cost.
    observing: &'a Member,
    random: fastrand::Rng,
}

impl<'a> Field<'a> {
    /// A field that is observed by this one, whose random numbers are the same in each run.
    pub fn new(testbed: &'a Testbed, observing: &'a Member) -> Field<'a> {
        Field {
            testbed,
            observing,
            random: fastrand::Rng::with_seed(1),
        }
    }

    /// Lets the server's compiler see what there is to do.
    ///
    /// # Errors
    ///
    /// As [`time`](Self::time).
    pub async fn warm_up(&mut self) -> anyhow::Result<()> {
        let members = Member::connect(&self.testbed.server().connect_string(), 10).await?;
        let limits = Limits {
            least: 0,
            most: usize::MAX,
            time: WARM_UP / Way::ALL.len() as u32,
        };
        for way in Way::ALL {
            let setting = Setting {
                way,
                subject: Subject::Lock,
                contenders: members.len(),
                members: &members,
            };
            self.time(setting, limits, &Progress::of(0)).await?;
        }
        Member::close(members).await;
        Ok(())
    }

    /// Times handoffs.
    ///
    /// # Errors
    ///
    /// When anything goes wrong: see [`Passing`].
    pub async fn time(
        &mut self,
        setting: Setting<'_>,
        limits: Limits,
        progress: &Progress,
    ) -> anyhow::Result<Times> {
        let mut passing = self.begin(setting).await?;
        let mut times = Times::none()?;
        let (began, mut handoffs) = (Instant::now(), 0);
        while limits.allow(handoffs, began) {
            let who = self.next_to_release(setting.way, &passing).await?;
            for handoff in passing.release(who).await?.handoffs {
                record(&mut times.handoffs, handoff)?;
                handoffs += 1;
            }
            record(&mut times.joins, passing.join(who).await?)?;
            if setting.way.wakes == Wakes::Everybody {
                passing.settle().await?;
            }
            progress.within(|| format!("{handoffs} handoffs"));
        }
        for _ in 0..LISTS {
            let asked = Instant::now();
            passing.listed().await?;
            record(&mut times.lists, asked.elapsed())?;
        }
        passing.end().await?;
        Ok(times)
    }

    /// Counts what releases cost, with members that are connected by this wire.
    ///
    /// # Errors
    ///
    /// When anything goes wrong: see [`Passing`].
    pub async fn count(
        &mut self,
        setting: Setting<'_>,
        wire: &Wire,
        limits: Limits,
        progress: &Progress,
    ) -> anyhow::Result<Costs> {
        let mut passing = self.begin(setting).await?;
        let mut costs = Costs::default();
        let began = Instant::now();
        while limits.allow(costs.releases as usize, began) {
            let who = self.next_to_release(setting.way, &passing).await?;
            let before = Standing::of(wire, &passing);
            passing.release(who).await?;
            passing.settle().await?;
            let released = Standing::of(wire, &passing);
            passing.join(who).await?;
            passing.settle().await?;
            let joined = Standing::of(wire, &passing);
            costs.releases += 1;
            costs.of_releases += before.until(&released);
            costs.of_joins += released.until(&joined);
            progress.within(|| format!("{} releases", costs.releases));
        }
        passing.end().await?;
        Ok(costs)
    }

    async fn begin(&mut self, setting: Setting<'_>) -> anyhow::Result<Passing> {
        let path = self.testbed.directory();
        let number = setting.contenders;
        let writes = match setting.subject {
            Subject::Lock => vec![true; number],
            Subject::RwLock => {
                // One in ten, and at least one.
                let writers = number.div_ceil(10);
                let mut writes: Vec<bool> = (0..number).map(|who| who < writers).collect();
                self.random.shuffle(&mut writes);
                writes
            }
        };
        let mut passing = Passing::begin(
            &setting.way,
            setting.subject,
            &path,
            setting.members,
            self.observing,
            writes,
        )
        .await?;
        // Who has not waited may release in another way than all who come later: not measured.
        let first = self.next_to_release(setting.way, &passing).await?;
        passing.release(first).await?;
        passing.settle().await?;
        passing.join(first).await?;
        passing.settle().await?;
        Ok(passing)
    }

    /// Any of those who hold, once it has held long enough.
    async fn next_to_release(&mut self, way: Way, passing: &Passing) -> anyhow::Result<usize> {
        if way.wakes == Wakes::Nobody {
            // Those who look from time to time are to find a release at any time between.
            tokio::time::sleep(POLL_INTERVAL.mul_f64(self.random.f64())).await;
        }
        let mut holders = passing.holders();
        let which = self.random.usize(..holders.len().max(1));
        holders.nth(which).context("nobody holds")
    }
}

impl Times {
    fn none() -> anyhow::Result<Times> {
        // Three digits of each time, up to an hour.
        let histogram = || Histogram::new_with_max(3_600_000_000_000, 3);
        Ok(Times {
            handoffs: histogram()?,
            joins: histogram()?,
            lists: histogram()?,
        })
    }
}

fn record(times: &mut Histogram<u64>, took: Duration) -> anyhow::Result<()> {
    Ok(times.record(u64::try_from(took.as_nanos())?)?)
}

/// What has been counted so far.
struct Standing {
    wire: Reading,
    wake_ups: u64,
}

impl Standing {
    fn of(wire: &Wire, passing: &Passing) -> Standing {
        Standing {
            wire: wire.read(),
            wake_ups: passing.counts().wake_ups,
        }
    }

    fn until(&self, later: &Standing) -> Cost {
        Cost {
            traffic: self.wire.until(&later.wire),
            notified: later.wake_ups - self.wake_ups,
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.traffic += other.traffic;
        self.notified += other.notified;
    }
}
