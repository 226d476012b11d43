//! The plan of the measurement: which rows, how often, for how long.

use std::time::Duration;

use anyhow::Context;
use zookeeper_recipes_benches::report::Destination;

use crate::row::{Measure, Row};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// The number of rounds, in each of which each library is measured: 15, or 5 over a network.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// The length of a measurement in seconds: 0.5, or 2 over a network.
    #[arg(long)]
    seconds: Option<f64>,

    /// How long each library runs each workload before anything is measured, in seconds.
    #[arg(long, default_value_t = 4.0)]
    warm_up: f64,

    /// The workloads to measure, instead of all.
    #[arg(long, value_delimiter = ',', value_name = "ROW,...")]
    rows: Vec<Row>,

    /// The round trip between the libraries and the servers, in milliseconds: a proxy delays all
    /// traffic. Only workloads of acquisitions are measured.
    #[arg(long, default_value_t = 0.0, value_name = "MS")]
    round_trip: f64,

    /// The number of servers. Several keep their data on disk, and the clients use the followers.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=7))]
    servers: u8,

    /// A smoke test: one short round, whose figures mean nothing.
    #[arg(long)]
    pub(crate) quick: bool,

    #[command(flatten)]
    pub(crate) destination: Destination,
}

/// The rows to measure, how often, for how long, with how many contenders.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rows: Vec<Row>,
    pub(crate) round_trip: Duration,
    pub(crate) servers: usize,
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
    pub(crate) warm_up: Duration,
    /// How often in a round a writer releases and all readers come to hold.
    pub(crate) releases: usize,
    /// How many waiters come before the first measurement of memory, which allocate what all
    /// waiters share, and how many come between the two measurements.
    pub(crate) waiters: [usize; 2],
}

impl Plan {
    /// True if clients and server are next to each other: one server, no round trip.
    pub(crate) fn is_near(&self) -> bool {
        self.round_trip.is_zero() && self.servers == 1
    }
}

impl Options {
    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        let seconds = |seconds: f64| {
            Duration::try_from_secs_f64(seconds).with_context(|| format!("{seconds} seconds"))
        };
        let rows = match self.rows.as_slice() {
            [] => Row::all(),
            rows => rows,
        };
        let near = self.round_trip == 0.0;
        let (rounds, time) = if near { (15, 0.5) } else { (5, 2.0) };
        let short = |seconds: Duration| match self.quick {
            true => Duration::from_millis(200),
            false => seconds,
        };
        let sized = |quick, full| if self.quick { quick } else { full };
        let mut plan = Plan {
            rows: rows.to_vec(),
            round_trip: seconds(self.round_trip / 1e3)?,
            servers: usize::from(self.servers),
            rounds: sized(1, usize::try_from(self.rounds.unwrap_or(rounds))?),
            time: short(seconds(self.seconds.unwrap_or(time))?),
            warm_up: short(seconds(self.warm_up)?),
            releases: sized(1, 5),
            waiters: if self.quick { [20, 40] } else { [100, 1000] },
        };
        plan.rows.sort_unstable();
        plan.rows.dedup();
        if !plan.is_near() {
            // The other works look at the watches of one server, and count what a proxy adds.
            let is_turns = |row: &Row| matches!(row.measure(), Measure::Turns { .. });
            plan.rows.retain(is_turns);
        }
        Ok(plan)
    }
}
