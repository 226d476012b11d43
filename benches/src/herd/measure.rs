//! One row of figures: one way to wait, for one lock, with so many contenders.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use anyhow::Context;
use hdrhistogram::Histogram;
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::crowd::Member;
use zookeeper_recipes_benches::passing::Passing;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::way::{POLL_INTERVAL, Subject, Wakes, Way};
use zookeeper_recipes_benches::wire::{Reading, Traffic, Wire};

/// How many handoffs a server needs until its compiler has done its work.
const WARM_UP: Duration = Duration::from_secs(5);

/// What was found.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) subject: Subject,
    pub(crate) way: Way,
    pub(crate) contenders: usize,
    /// From a call of release until somebody holds since, in nanoseconds.
    pub(crate) handoffs: Histogram<u64>,
    pub(crate) costs: Costs,
}

/// What releases have cost, and coming back into the queue after each of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    pub(crate) releases: u64,
    pub(crate) of_releases: Cost,
    pub(crate) of_joins: Cost,
}

/// What something has cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) traffic: Traffic,
    /// Of the notifications: those of something that somebody else did.
    pub(crate) notified: u64,
}

/// How much is measured for one figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) least: usize,
    pub(crate) most: usize,
    /// What is over the least is measured within this time.
    pub(crate) time: Duration,
}

impl Limits {
    fn allow(&self, done: usize, since: Instant) -> bool {
        done < self.least || (done < self.most && since.elapsed() < self.time)
    }
}

/// Where it is measured.
pub(crate) struct Field<'a> {
    pub(crate) testbed: &'a Testbed,
    /// Looks on; what it asks is no part of the cost.
    pub(crate) observing: &'a Member,
    pub(crate) random: fastrand::Rng,
}

impl Field<'_> {
    /// Lets the server's compiler see what there is to do.
    pub(crate) async fn warm_up(&mut self, connect_string: &str) -> anyhow::Result<()> {
        let members = Member::connect(connect_string, 10).await?;
        let limits = Limits {
            least: 0,
            most: usize::MAX,
            time: WARM_UP / Way::ALL.len() as u32,
        };
        let silent = Progress::of(0);
        for way in Way::ALL {
            self.time(&way, Subject::Lock, &members, limits, &silent)
                .await?;
        }
        Member::close(members).await;
        Ok(())
    }

    /// Times handoffs.
    pub(crate) async fn time(
        &mut self,
        way: &Way,
        subject: Subject,
        members: &[Member],
        limits: Limits,
        progress: &Progress,
    ) -> anyhow::Result<Histogram<u64>> {
        let mut passing = self.begin(way, subject, members).await?;
        // Three digits of each time, up to an hour.
        let mut handoffs = Histogram::new_with_max(3_600_000_000_000, 3)?;
        let (began, mut timed) = (Instant::now(), 0);
        while limits.allow(timed, began) {
            let who = self.next_to_release(way, &passing).await?;
            for handoff in passing.release(who).await?.handoffs {
                handoffs.record(u64::try_from(handoff.as_nanos())?)?;
                timed += 1;
            }
            passing.join(who).await?;
            if way.wakes == Wakes::Everybody {
                passing.settle().await?;
            }
            progress.within(|| format!("{timed} handoffs"));
        }
        passing.end().await?;
        Ok(handoffs)
    }

    /// Counts what releases cost, with sessions that are connected by this wire.
    pub(crate) async fn count(
        &mut self,
        way: &Way,
        subject: Subject,
        members: &[Member],
        wire: &Wire,
        limits: Limits,
        progress: &Progress,
    ) -> anyhow::Result<Costs> {
        let mut passing = self.begin(way, subject, members).await?;
        let mut costs = Costs::default();
        let began = Instant::now();
        while limits.allow(costs.releases as usize, began) {
            let who = self.next_to_release(way, &passing).await?;
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

    async fn begin(
        &mut self,
        way: &Way,
        subject: Subject,
        members: &[Member],
    ) -> anyhow::Result<Passing> {
        let path = self.testbed.directory();
        let number = members.len();
        let writes = match subject {
            Subject::Lock => vec![true; number],
            Subject::SharedLock => {
                // One in ten, and at least one.
                let writers = number.div_ceil(10);
                let mut writes: Vec<bool> = (0..number).map(|who| who < writers).collect();
                self.random.shuffle(&mut writes);
                writes
            }
        };
        Passing::begin(way, subject, &path, members, self.observing, writes).await
    }

    /// Any of those who hold, once it has held long enough.
    async fn next_to_release(&mut self, way: &Way, passing: &Passing) -> anyhow::Result<usize> {
        if way.wakes == Wakes::Nobody {
            // Those who look from time to time are to find a release at any time between.
            tokio::time::sleep(POLL_INTERVAL.mul_f64(self.random.f64())).await;
        }
        let mut holders = passing.holders();
        let which = self.random.usize(..holders.len().max(1));
        holders.nth(which).context("nobody holds")
    }
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
