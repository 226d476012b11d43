//! The measurement: who does what, in which order.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_interop::ProgramError;

use crate::driver::{Done, Driver};
use crate::figures::Figures;
use crate::peer::Peer;
use crate::processor::{Cost, Costs, processor_time};
use crate::row::{Measure, Row};
use crate::summary::{Summary, summarise};
use zookeeper_recipes_benches::Comparison;
use zookeeper_recipes_benches::Overhead;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::report::{Destination, Machine};
use zookeeper_recipes_benches::wire::{Traffic, Wire};
use zookeeper_recipes_benches::{SESSION_TIMEOUT, Testbed};

/// What has not happened by then does not happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often something is looked at that cannot be waited for.
const LOOK: Duration = Duration::from_millis(5);

/// How long the watches stay as they are before all are taken to wait.
const SETTLED: Duration = Duration::from_secs(1);

/// More say nothing new.
const ROUNDS_OF_MEMORY: usize = 5;

/// How many waiters come together. When all of them do, what shows is the burst of the answers to
/// their lists.
const AT_A_TIME: usize = 20;

/// How to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// How often each is measured, in turns.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// How long a measurement of turns takes, in seconds.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,

    /// How long each does each work before anything is measured, in seconds.
    #[arg(long, default_value_t = 4.0)]
    warm_up: f64,

    /// What to measure, instead of everything.
    #[arg(long, value_delimiter = ',', value_name = "ROW,...")]
    rows: Vec<Row>,

    /// One short round, which shows that it works and whose figures mean nothing.
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    destination: Destination,
}

/// How often, how long, how many.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rows: Vec<Row>,
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
    pub(crate) warm_up: Duration,
    /// How often in a round a writer goes and all readers come to hold.
    pub(crate) releases: usize,
    /// How many waiters come before the first measurement of memory, so that what any of them
    /// needs is there, and how many between the two.
    pub(crate) waiters: [usize; 2],
    /// In how many rounds how often something uncontended is measured beside its requests alone.
    pub(crate) beside_requests: (usize, u64),
}

impl Options {
    fn plan(&self) -> anyhow::Result<Plan> {
        let seconds = |seconds: f64| {
            Duration::try_from_secs_f64(seconds).with_context(|| format!("{seconds} seconds"))
        };
        let mut rows = match self.rows.as_slice() {
            [] => Row::all().to_vec(),
            rows => rows.to_vec(),
        };
        rows.sort_unstable();
        rows.dedup();
        Ok(match self.quick {
            true => Plan {
                rows,
                rounds: 1,
                time: Duration::from_millis(200),
                warm_up: Duration::from_millis(200),
                releases: 1,
                waiters: [20, 40],
                beside_requests: (5, 10),
            },
            false => Plan {
                rows,
                rounds: usize::try_from(self.rounds)?,
                time: seconds(self.seconds)?,
                warm_up: seconds(self.warm_up)?,
                releases: 5,
                waiters: [100, 1000],
                beside_requests: (100, 100),
            },
        })
    }
}

/// Measures, writes the report, and says where it is.
///
/// # Errors
///
/// When a library fails at its work, or the report cannot be written. A library that this machine
/// lacks is no error: the report says so.
pub(crate) fn run(options: &Options) -> anyhow::Result<Vec<PathBuf>> {
    let plan = options.plan()?;
    let testbed = Testbed::start();
    let machine = testbed
        .runtime()
        .block_on(Machine::with(testbed.server()))?;
    let mut bench = testbed.runtime().block_on(Bench::start(&testbed, &plan))?;
    testbed.runtime().block_on(async {
        bench.warm_up().await?;
        bench.measure().await?;
        bench.count().await
    })?;
    let beside_requests = match plan.rows.contains(&Row::Lock) {
        true => bench.beside_requests(),
        false => Vec::new(),
    };
    let summary = Summary {
        plan: &plan,
        versions: bench.versions,
        missing: bench.missing,
        warm_up_turns: bench.warm_up_turns,
        figures: bench.figures,
        costs: bench.costs,
        passed: bench.passed,
        beside_requests,
    };
    bench.progress.finish();
    summarise(&summary, machine)?.write(&options.destination)
}

struct Bench<'p> {
    testbed: &'p Testbed,
    plan: &'p Plan,
    drivers: Vec<(Peer, Driver)>,
    versions: Vec<(Peer, String)>,
    missing: Vec<(Peer, String)>,
    warm_up_turns: Vec<(Peer, u64)>,
    figures: Figures,
    costs: Costs,
    passed: Vec<Passed>,
    progress: Progress,
}

/// What has passed between one of them and the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) row: Row,
    pub(crate) peer: Peer,
    pub(crate) traffic: Traffic,
    /// For so many turns.
    pub(crate) turns: u64,
}

impl Passed {
    /// What comes to one turn of so much.
    pub(crate) fn for_a_turn(&self, count: u64) -> f64 {
        count as f64 / self.turns as f64
    }
}

impl Bench<'_> {
    async fn start<'p>(testbed: &'p Testbed, plan: &'p Plan) -> anyhow::Result<Bench<'p>> {
        let mut bench = Bench {
            testbed,
            plan,
            drivers: Vec::new(),
            versions: Vec::new(),
            missing: Vec::new(),
            warm_up_turns: Vec::new(),
            figures: Figures::default(),
            costs: Costs::default(),
            passed: Vec::new(),
            progress: Progress::of(2 * plan.rows.len() + 2),
        };
        for peer in Peer::ALL {
            match driver(&testbed.server().connect_string(), peer).await {
                Ok(driver) => {
                    bench.versions.push((peer, driver.version.clone()));
                    bench.drivers.push((peer, driver));
                }
                Err(error) => match error.downcast_ref::<ProgramError>() {
                    Some(missing @ ProgramError::Missing { .. }) => {
                        bench.missing.push((peer, missing.to_string()));
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(bench)
    }

    /// Lets each do all of it for a while, so that Java compiles what is used often.
    async fn warm_up(&mut self) -> anyhow::Result<()> {
        let mut turns: Vec<u64> = vec![0; self.drivers.len()];
        for row in &self.plan.rows {
            self.progress.step(format!("warm-up: {}", row.title()));
            for (turns, (peer, driver)) in turns.iter_mut().zip(&mut self.drivers) {
                if !peer.has(*row) {
                    continue;
                }
                let path = path(*peer, *row);
                match row.measure() {
                    Measure::Turns { work, size } => {
                        *turns += driver
                            .run(work, &path, size, self.plan.warm_up)
                            .await?
                            .times;
                    }
                    Measure::Readers { readers } => {
                        for _ in 0..self.plan.releases {
                            *turns += until_all_hold(self.testbed, driver, &path, readers)
                                .await?
                                .times;
                        }
                    }
                    // What has been in use before would hide what comes to be used.
                    Measure::Memory => {}
                }
            }
        }
        let peers = self.drivers.iter().map(|(peer, _)| *peer);
        self.warm_up_turns = peers.zip(turns).collect();
        Ok(())
    }

    /// Measures each row in rounds. Each round begins with another peer than the round before.
    async fn measure(&mut self) -> anyhow::Result<()> {
        for row in &self.plan.rows {
            self.progress.step(row.title().to_owned());
            let rounds = match row.measure() {
                Measure::Turns { .. } | Measure::Readers { .. } => self.plan.rounds,
                // Each takes a new process, and is much like the others.
                Measure::Memory => self.plan.rounds.min(ROUNDS_OF_MEMORY),
            };
            for round in 0..rounds {
                self.progress.within(|| format!("round {}", round + 1));
                for place in 0..self.drivers.len() {
                    let which = (round + place) % self.drivers.len();
                    let peer = self.drivers[which].0;
                    if peer.has(*row) {
                        if let Some(figure) = self.figure(which, *row).await? {
                            self.figures.add(*row, peer, figure);
                        }
                    }
                }
            }
        }
        for (_, driver) in self.drivers.drain(..) {
            driver.end().await?;
        }
        Ok(())
    }

    /// Counts what passes on the wire, each in a new process.
    async fn count(&mut self) -> anyhow::Result<()> {
        self.progress.step("what passes on the wire".to_owned());
        let wire = Wire::to(self.testbed.server()).await?;
        for (peer, _) in &self.versions {
            let mut driver = driver(&wire.connect_string(), *peer).await?;
            for row in self.plan.rows.iter().filter(|row| peer.has(**row)) {
                let path = format!("{}-counted", path(*peer, *row));
                let mut last = None;
                // The first time opens sessions and makes directories.
                for _ in 0..2 {
                    let before = wire.read();
                    let done = match row.measure() {
                        Measure::Turns { work, size } => {
                            driver.run(work, &path, size, self.plan.time).await?
                        }
                        Measure::Readers { readers } => {
                            until_all_hold(self.testbed, &mut driver, &path, readers).await?
                        }
                        Measure::Memory => break,
                    };
                    last = Some((before.until(&wire.read()), done.all_times));
                }
                self.passed.extend(last.map(|(traffic, turns)| Passed {
                    row: *row,
                    peer: *peer,
                    traffic,
                    turns,
                }));
            }
            driver.end().await?;
        }
        Ok(())
    }

    /// An uncontended lock beside its requests alone.
    fn beside_requests(&mut self) -> Vec<Overhead> {
        self.progress
            .step("beside the same requests alone".to_owned());
        let (rounds, times) = self.plan.beside_requests;
        let warm_up = 10 * times;
        Comparison::all(self.testbed)
            .iter()
            .flat_map(|comparison| {
                Overhead::measure(self.testbed, comparison, warm_up, rounds, times)
            })
            .collect()
    }

    /// What one of them does in one round; none where it cannot be told.
    async fn figure(&mut self, which: usize, row: Row) -> anyhow::Result<Option<f64>> {
        let (peer, driver) = &mut self.drivers[which];
        let path = path(*peer, row);
        match row.measure() {
            Measure::Turns { work, size } => {
                let processes = [driver.process_id(), self.testbed.server().process_id()];
                let times = || processes.map(|process| processor_time(process?));
                let before = times();
                let done = driver.run(work, &path, size, self.plan.time).await?;
                if let ([Some(client), Some(server)], [Some(client_then), Some(server_then)]) =
                    (times(), before)
                {
                    let cost = Cost {
                        turns: done.all_times,
                        client: client.saturating_sub(client_then),
                        server: server.saturating_sub(server_then),
                    };
                    self.costs.add(row, *peer, cost);
                }
                Ok(Some(done.times as f64 / done.took.as_secs_f64()))
            }
            Measure::Readers { readers } => {
                let mut took = Duration::ZERO;
                for _ in 0..self.plan.releases {
                    took += until_all_hold(self.testbed, driver, &path, readers)
                        .await?
                        .took;
                }
                Ok(Some(took.as_secs_f64() * 1e3 / self.plan.releases as f64))
            }
            Measure::Memory => memory_of_a_waiter(self.testbed, self.plan, *peer, &path).await,
        }
    }
}

async fn driver(connect_string: &str, peer: Peer) -> anyhow::Result<Driver> {
    Driver::start(peer, connect_string, SESSION_TIMEOUT).await
}

/// Lets readers wait for a writer, and the writer go.
async fn until_all_hold(
    testbed: &Testbed,
    driver: &mut Driver,
    path: &str,
    readers: usize,
) -> anyhow::Result<Done> {
    driver.queue("readers", path, readers).await?;
    timeout(PATIENCE, testbed.until_watched(path, readers))
        .await
        .context("the readers do not wait")?;
    driver.release().await
}

/// By how many bytes a process grows for each waiter; none where the system does not tell.
///
/// The process is new: what another measurement has used and freed would hide what is used now.
async fn memory_of_a_waiter(
    testbed: &Testbed,
    plan: &Plan,
    peer: Peer,
    path: &str,
) -> anyhow::Result<Option<f64>> {
    let mut driver = driver(&testbed.server().connect_string(), peer).await?;
    let mut sizes = Vec::new();
    let mut watches = 0;
    for more in plan.waiters {
        for _ in 0..more / AT_A_TIME {
            driver.queue("waiters", path, AT_A_TIME).await?;
            // Each has one at least.
            watches += AT_A_TIME as u64;
            timeout(PATIENCE, until_watches(testbed, watches))
                .await
                .with_context(|| format!("{} does not come to wait", peer.name()))??;
        }
        timeout(PATIENCE, until_settled(testbed))
            .await
            .with_context(|| format!("{} does not settle", peer.name()))??;
        let heap = driver.heap_in_use().await?;
        match driver.process_id().and_then(resident) {
            Some(resident) => sizes.push((resident + heap) as f64),
            None => return Ok(None),
        }
    }
    driver.end().await?;
    Ok(Some((sizes[1] - sizes[0]) / plan.waiters[1] as f64))
}

/// Waits until there are so many watches.
async fn until_watches(testbed: &Testbed, watches: u64) -> anyhow::Result<()> {
    while testbed.server().monitor().await?.watches < watches {
        sleep(LOOK).await;
    }
    Ok(())
}

/// Waits until no more watches come.
async fn until_settled(testbed: &Testbed) -> anyhow::Result<()> {
    let watches = || async { anyhow::Ok(testbed.server().monitor().await?.watches) };
    let mut last = (watches().await?, Instant::now());
    while last.1.elapsed() < SETTLED {
        sleep(LOOK).await;
        let watches = watches().await?;
        if watches != last.0 {
            last = (watches, Instant::now());
        }
    }
    Ok(())
}

/// How many bytes of a process are in memory, where the system tells.
fn resident(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Where it does it.
fn path(peer: Peer, row: Row) -> String {
    format!("{}/{}", peer.directory(), row.name())
}
