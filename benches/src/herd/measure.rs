//! The cost of a handoff of a lock, and of coming back into its queue: counted, and timed.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use anyhow::Context;
use hdrhistogram::Histogram;

use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::member::Member;
use zookeeper_recipes_benches::passing::Passing;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::way::{POLL_INTERVAL, Wakes, Way};
use zookeeper_recipes_benches::wire::{Reading, Traffic, Wire};

/// How long a server is kept busy, until its compiler has done most of its work.
const WARM_UP: Duration = Duration::from_secs(5);

/// How many lists are timed.
const LISTS: usize = 50;

#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    pub(crate) sizes: Vec<usize>,
    pub(crate) ways: Vec<Way>,
    /// If there are more contenders than this, they share sessions, and only the ways that wake one
    /// waiter are measured.
    pub(crate) most_sessions: usize,
    /// Whether the server is kept busy before anything is measured.
    pub(crate) warms_up: bool,
    /// How many times each way is timed.
    pub(crate) timing: Limits,
    /// How many times the costs of each way are counted.
    pub(crate) counting: Limits,
}

/// What was measured for one way to wait and one number of contenders.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) way: Way,
    pub(crate) contenders: usize,
    /// The times, taken without a proxy.
    pub(crate) times: Times,
    /// The costs, counted by a proxy in a run of their own.
    pub(crate) costs: Costs,
}

/// A way to wait, and the number of contenders.
type Setting = (Way, usize);

/// Measured times, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    /// From a call of release until the next contender holds.
    pub(crate) handoffs: Histogram<u64>,
    /// From a call of acquire until the contender waits behind all others.
    pub(crate) joins: Histogram<u64>,
    /// A list of the queue alone.
    pub(crate) lists: Histogram<u64>,
}

/// The costs of releases, and of coming back into the queue after each of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    /// The number of releases, which is also the number of joins.
    pub(crate) releases: u64,
    pub(crate) of_releases: Cost,
    /// The cost of coming back.
    pub(crate) of_joins: Cost,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) traffic: Traffic,
    /// The notifications of something that another session did.
    pub(crate) notified: u64,
}

/// How many times something is measured for one figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The least number of times.
    pub(crate) least: usize,
    /// The greatest number of times.
    pub(crate) most: usize,
    /// After this time, nothing is measured beyond the least number.
    pub(crate) time: Duration,
}

impl Limits {
    fn allow(&self, done: usize, since: Instant) -> bool {
        done < self.least || (done < self.most && since.elapsed() < self.time)
    }
}

impl Sweep {
    /// Measures each way with each number of contenders.
    pub(crate) async fn run(&self, testbed: &Testbed) -> anyhow::Result<Vec<Row>> {
        let direct = testbed.server().connect_string();
        let wire = Wire::to(testbed.server()).await?;
        let steps = self.sizes.iter().map(|size| self.ways_of(*size).count());
        let mut progress = Progress::of(1 + 2 * steps.sum::<usize>());
        let observing = Member::connect(&direct, 1).await?.remove(0);
        let mut field = Field {
            testbed,
            observing: &observing,
            // The same numbers in each run.
            random: fastrand::Rng::with_seed(1),
        };
        if self.warms_up {
            progress.step("warming up".to_owned());
            field.warm_up().await?;
        }
        let mut rows = Vec::new();
        for &contenders in &self.sizes {
            let sessions = contenders.min(self.most_sessions);
            let mut times = Vec::new();
            let members = Member::connect(&direct, sessions).await?;
            for way in self.ways_of(contenders) {
                progress.step(format!("{way:?}, {contenders} contenders, timed"));
                let timed = field.time((way, contenders), &members, self.timing);
                times.push(timed.await?);
            }
            Member::close(members).await;

            let members = Member::connect(&wire.connect_string(), sessions).await?;
            for (way, times) in self.ways_of(contenders).zip(times) {
                progress.step(format!("{way:?}, {contenders} contenders, counted"));
                let costs = field.count((way, contenders), &members, &wire, self.counting);
                rows.push(Row {
                    way,
                    contenders,
                    times,
                    costs: costs.await?,
                });
            }
            Member::close(members).await;
        }
        Member::close(vec![observing]).await;
        progress.finish();
        Ok(rows)
    }

    fn ways_of(&self, contenders: usize) -> impl Iterator<Item = Way> {
        let all = contenders <= self.most_sessions;
        let ways = self.ways.iter().copied();
        ways.filter(move |way| all || way.wakes == Wakes::WhomItConcerns)
    }
}

/// The server, and the sessions on it, that the measurements use.
struct Field<'a> {
    testbed: &'a Testbed,
    /// Looks on. Its requests are no part of the cost.
    observing: &'a Member,
    random: fastrand::Rng,
}

impl Field<'_> {
    /// Lets the server's compiler see the work of the measurements.
    async fn warm_up(&mut self) -> anyhow::Result<()> {
        let members = Member::connect(&self.testbed.server().connect_string(), 10).await?;
        let limits = Limits {
            least: 0,
            most: usize::MAX,
            time: WARM_UP / Way::ALL.len() as u32,
        };
        for way in Way::ALL {
            let setting = (way, members.len());
            self.time(setting, &members, limits).await?;
        }
        Member::close(members).await;
        Ok(())
    }

    /// Times handoffs, joins and lists.
    async fn time(
        &mut self,
        setting: Setting,
        members: &[Member],
        limits: Limits,
    ) -> anyhow::Result<Times> {
        let way = setting.0;
        let mut passing = self.begin(setting, members).await?;
        let mut times = Times::none()?;
        let (began, mut handoffs) = (Instant::now(), 0);
        while limits.allow(handoffs, began) {
            let who = self.next_to_release(way, &passing).await?;
            let (called, entrants) = passing.release(who).await?;
            for entrant in entrants {
                record(&mut times.handoffs, entrant.at - called)?;
                handoffs += 1;
            }
            record(&mut times.joins, passing.join(who).await?)?;
            if way.wakes == Wakes::Everybody {
                passing.settle().await?;
            }
        }
        for _ in 0..LISTS {
            let asked = Instant::now();
            passing.listed().await?;
            record(&mut times.lists, asked.elapsed())?;
        }
        passing.end().await?;
        Ok(times)
    }

    /// Counts the cost of releases, with members that are connected through this wire.
    async fn count(
        &mut self,
        setting: Setting,
        members: &[Member],
        wire: &Wire,
        limits: Limits,
    ) -> anyhow::Result<Costs> {
        let way = setting.0;
        let mut passing = self.begin(setting, members).await?;
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
        }
        passing.end().await?;
        Ok(costs)
    }

    async fn begin(
        &mut self,
        (way, number): Setting,
        members: &[Member],
    ) -> anyhow::Result<Passing> {
        let path = self.testbed.directory();
        let mut passing = Passing::begin(&way, &path, members, self.observing, number).await?;
        passing.enter(number).await?;
        // A holder that has not waited may release in another way than later ones: not measured.
        let first = self.next_to_release(way, &passing).await?;
        passing.release(first).await?;
        passing.settle().await?;
        passing.join(first).await?;
        passing.settle().await?;
        Ok(passing)
    }

    /// Any of the holders, once it has held long enough.
    async fn next_to_release(&mut self, way: Way, passing: &Passing) -> anyhow::Result<usize> {
        if way.wakes == Wakes::Nobody {
            // A release comes at any time between two looks of a poller.
            tokio::time::sleep(POLL_INTERVAL.mul_f64(self.random.f64())).await;
        }
        let mut holders = passing.holders();
        let which = self.random.usize(..holders.len().max(1));
        holders.nth(which).context("no contender holds")
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
