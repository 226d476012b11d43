//! The measurement: which library does which work, in which order.

use std::time::Duration;

use anyhow::{Context, bail};
use tokio::time::timeout;
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::process::processor_time;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::report::{Machine, target};
use zookeeper_recipes_benches::wire::Wire;
use zookeeper_recipes_interop::ProgramError;
use zookeeper_recipes_testkit::{Server, ServerOptions};

use crate::driver::{Done, Driver, PATIENCE};
use crate::memory::memory_of_a_waiter;
use crate::peer::Peer;
use crate::plan::{Options, Plan};
use crate::processor::Cost;
use crate::row::{Measure, Row};
use crate::summary::{Passed, Summary, summarise};

/// More rounds of the memory of a waiter say nothing new.
const ROUNDS_OF_MEMORY: usize = 5;

/// A library that has no turn in this time has none.
const LONGEST_ROUND: Duration = Duration::from_secs(30);

/// Measures, writes the report, and says where it is.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let plan = options.plan()?;
    let servers = match plan.servers {
        1 => ServerOptions::new(),
        _ => ServerOptions::new().data_on_disk(target()),
    };
    let testbed = Testbed::of(plan.servers, servers);
    let (mut machine, mut bench) = testbed.runtime().block_on(async {
        let machine = Machine::with(testbed.ensemble()).await?;
        let mut bench = Bench::start(&testbed, &plan).await?;
        bench.warm_up().await?;
        bench.measure().await?;
        bench.end().await?;
        bench.count().await?;
        anyhow::Ok((machine, bench))
    })?;
    if !plan.round_trip.is_zero() {
        let round_trip = plan.round_trip;
        machine = machine.over(format!("clients over a proxy that adds {round_trip:?}"));
    }
    bench.progress.finish();
    summarise(&bench.summary, machine).write(&options.destination)
}

/// The libraries at work, and what was measured.
struct Bench<'p> {
    testbed: &'p Testbed,
    plan: &'p Plan,
    wire: Wire,
    drivers: Vec<(Peer, Driver)>,
    summary: Summary<'p>,
    progress: Progress,
}

impl Bench<'_> {
    /// Starts each library in a process of its own.
    async fn start<'p>(testbed: &'p Testbed, plan: &'p Plan) -> anyhow::Result<Bench<'p>> {
        let ensemble = testbed.ensemble();
        let leader = ensemble.leader().await?;
        let serving = ensemble.members().iter().enumerate();
        // A session with the leader would be faster than the sessions of others.
        let serving = serving.filter(|(place, _)| plan.servers == 1 || *place != leader);
        let serving: Vec<&Server> = serving.map(|(_, server)| server).collect();
        let wire = Wire::to_all(serving.iter().copied()).await?;
        let addresses: Vec<String> = serving.iter().map(|it| it.connect_string()).collect();
        let connect_string = match plan.round_trip.is_zero() {
            true => addresses.join(","),
            false => wire.connect_string(),
        };
        let mut bench = Bench {
            testbed,
            plan,
            wire,
            drivers: Vec::new(),
            summary: Summary::of(plan),
            progress: Progress::of(2 * plan.rows.len() + 1),
        };
        for peer in Peer::ALL {
            match Driver::start(peer, &connect_string).await {
                Ok(driver) => {
                    let version = driver.version().to_owned();
                    bench.summary.versions.push((peer, version));
                    bench.drivers.push((peer, driver));
                }
                Err(error) => match error.downcast_ref::<ProgramError>() {
                    Some(missing @ ProgramError::Missing { .. }) => {
                        bench.summary.missing.push((peer, missing.to_string()));
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(bench)
    }

    /// Lets each library do each work for a while, so that Java compiles the code in use. There is no
    /// round trip yet, so that there are turns enough.
    async fn warm_up(&mut self) -> anyhow::Result<()> {
        let mut turns: Vec<u64> = vec![0; self.drivers.len()];
        for row in &self.plan.rows {
            self.progress.step(format!("warm-up: {}", row.title()));
            for (turns, (peer, driver)) in turns.iter_mut().zip(&mut self.drivers) {
                if !peer.has(*row) {
                    continue;
                }
                let path = path(*peer, *row);
                let times = match row.measure() {
                    Measure::Turns { .. } => 1,
                    Measure::Readers { .. } => self.plan.releases,
                    // Memory that was used before would hide the growth.
                    Measure::Memory => 0,
                };
                for _ in 0..times {
                    let done = work(self.testbed, driver, *row, &path, self.plan.warm_up);
                    *turns += done.await?.times;
                }
            }
        }
        let peers = self.drivers.iter().map(|(peer, _)| *peer);
        self.summary.warm_up_turns = peers.zip(turns).collect();
        Ok(())
    }

    /// Measures each row in rounds. Each round begins with another peer than the round before.
    async fn measure(&mut self) -> anyhow::Result<()> {
        self.wire.set_round_trip(self.plan.round_trip);
        for row in &self.plan.rows {
            self.progress.step(row.title());
            let rounds = match row.measure() {
                Measure::Turns { .. } | Measure::Readers { .. } => self.plan.rounds,
                // Each round takes a new process, and is much like the others.
                Measure::Memory => self.plan.rounds.min(ROUNDS_OF_MEMORY),
            };
            for round in 0..rounds {
                for place in 0..self.drivers.len() {
                    let which = (round + place) % self.drivers.len();
                    let peer = self.drivers[which].0;
                    if peer.has(*row) {
                        if let Some(figure) = self.figure(which, *row).await? {
                            self.summary.figures.add(*row, peer, figure);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    async fn end(&mut self) -> anyhow::Result<()> {
        for (_, driver) in self.drivers.drain(..) {
            driver.end().await?;
        }
        Ok(())
    }

    /// Counts what passes on the wire, for each library in a new process.
    async fn count(&mut self) -> anyhow::Result<()> {
        self.progress.step("what passes on the wire".to_owned());
        let wire = &self.wire;
        for (peer, _) in &self.summary.versions {
            let mut driver = Driver::start(*peer, &wire.connect_string()).await?;
            for row in self.plan.rows.iter().filter(|row| peer.has(**row)) {
                let path = format!("{}-counted", path(*peer, *row));
                if row.measure() == Measure::Memory {
                    continue;
                }
                // The first time opens sessions and makes directories.
                for _ in 0..2 {
                    let before = wire.read();
                    let done = work(self.testbed, &mut driver, *row, &path, self.plan.time).await?;
                    let (traffic, turns) = (before.until(&wire.read()), done.all_times);
                    self.summary
                        .passed
                        .insert((*row, *peer), Passed { traffic, turns });
                }
            }
            driver.end().await?;
        }
        Ok(())
    }

    /// The turns in a second of one library that takes turns for this time.
    async fn turns(
        &mut self,
        which: usize,
        row: Row,
        path: &str,
        time: Duration,
    ) -> anyhow::Result<f64> {
        let (peer, driver) = &mut self.drivers[which];
        let client = driver.process_id();
        let servers = self.testbed.ensemble().members().iter();
        let servers: Vec<u32> = servers.filter_map(Server::process_id).collect();
        let times = || {
            let servers = servers.iter().map(|server| processor_time(*server));
            Some((processor_time(client?)?, servers.sum::<Option<Duration>>()?))
        };
        let before = times();
        let done = work(self.testbed, driver, row, path, time).await?;
        let figure = done.times as f64 / done.took.as_secs_f64();
        if let (Some((client, server)), Some((client_then, server_then))) = (times(), before) {
            let cost = Cost {
                turns: done.all_times,
                client: client.saturating_sub(client_then),
                server: server.saturating_sub(server_then),
                measured: done.times,
                switches: done.switches,
                each: done.each,
            };
            *self.summary.costs.entry((row, *peer)).or_default() += cost;
        }
        Ok(figure)
    }

    /// The figure of one library in one round; `None` if the system does not report it.
    async fn figure(&mut self, which: usize, row: Row) -> anyhow::Result<Option<f64>> {
        let (peer, driver) = &mut self.drivers[which];
        let path = path(*peer, row);
        match row.measure() {
            Measure::Turns { .. } => {
                let mut time = self.plan.time;
                loop {
                    let figure = self.turns(which, row, &path, time).await?;
                    // On a busy machine, a short round can end before the first turn does.
                    if figure > 0.0 || time >= LONGEST_ROUND {
                        return Ok(Some(figure));
                    }
                    time *= 2;
                }
            }
            Measure::Readers { .. } => {
                let mut took = Duration::ZERO;
                for _ in 0..self.plan.releases {
                    let done = work(self.testbed, driver, row, &path, self.plan.time);
                    took += done.await?.took;
                }
                Ok(Some(took.as_secs_f64() * 1e3 / self.plan.releases as f64))
            }
            Measure::Memory => memory_of_a_waiter(self.testbed, self.plan, *peer, &path).await,
        }
    }
}

/// Does the work of a row once: turns for this time, or a release that lets readers in.
async fn work(
    testbed: &Testbed,
    driver: &mut Driver,
    row: Row,
    path: &str,
    time: Duration,
) -> anyhow::Result<Done> {
    match row.measure() {
        Measure::Turns { work, size } => driver.run(work, path, size, time).await,
        Measure::Readers { readers } => {
            driver.queue("readers", path, readers).await?;
            timeout(PATIENCE, testbed.until_watched(path, readers))
                .await
                .context("the readers do not wait")?;
            driver.release().await
        }
        Measure::Memory => bail!("memory is no work"),
    }
}

/// The path of a library's lock for a row. No other library uses its directory.
fn path(peer: Peer, row: Row) -> String {
    format!("/{peer:?}/{}", row.name()).to_lowercase()
}
