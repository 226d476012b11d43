//! The plan of the measurement: which rows, how often, for how long.

use std::time::Duration;

use anyhow::Context;
use zookeeper_recipes_benches::report::Destination;

use crate::peer::Peer;
use crate::row::Row;

/// How to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// How often each library is measured, in turns: 15 times, or 5 times over each network.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// How long a measurement of turns takes: 0.5 seconds, or 2 seconds over a network.
    #[arg(long)]
    seconds: Option<f64>,

    /// How long each library does each work before anything is measured, in seconds.
    #[arg(long, default_value_t = 4.0)]
    warm_up: f64,

    /// What to measure, instead of everything.
    #[arg(long, value_delimiter = ',', value_name = "ROW,...")]
    rows: Vec<Row>,

    /// One short round, which shows that the bench works. Its figures mean nothing.
    #[arg(long)]
    pub(crate) quick: bool,

    #[command(flatten)]
    pub(crate) destination: Destination,
}

/// The rows to measure, how often, for how long, with how many contenders.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) peers: &'static [Peer],
    pub(crate) rows: Vec<Row>,
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
    pub(crate) warm_up: Duration,
    /// How often in a round a writer releases and all readers come to hold.
    pub(crate) releases: usize,
    /// How many waiters come before the first measurement of memory, which allocate what all
    /// waiters share, and how many come between the two measurements.
    pub(crate) waiters: [usize; 2],
    /// The rounds of an uncontended lock beside its requests alone, and the times in each round.
    pub(crate) beside_requests: (usize, u64),
}

/// What a bench measures, unless the command line says something else.
pub(crate) struct Scope {
    peers: &'static [Peer],
    rows: fn() -> &'static [Row],
    rounds: u32,
    seconds: f64,
}

impl Plan {
    /// The scope of `bench peers`.
    pub(crate) const OF_PEERS: Scope = Scope {
        peers: &Peer::ALL,
        rows: Row::all,
        rounds: 15,
        seconds: 0.5,
    };

    /// The scope of `bench network`.
    pub(crate) const OF_A_NETWORK: Scope = Scope {
        peers: &[Peer::Ours, Peer::Curator, Peer::Kazoo],
        rows: || &Row::OF_A_NETWORK,
        rounds: 5,
        seconds: 2.0,
    };
}

impl Options {
    pub(crate) fn plan(&self, scope: &Scope) -> anyhow::Result<Plan> {
        let seconds = |seconds: f64| {
            Duration::try_from_secs_f64(seconds).with_context(|| format!("{seconds} seconds"))
        };
        let mut rows = match self.rows.as_slice() {
            [] => (scope.rows)().to_vec(),
            rows => rows.to_vec(),
        };
        rows.sort_unstable();
        rows.dedup();
        Ok(match self.quick {
            true => Plan {
                peers: scope.peers,
                rows,
                rounds: 1,
                time: Duration::from_millis(200),
                warm_up: Duration::from_millis(200),
                releases: 1,
                waiters: [20, 40],
                beside_requests: (5, 10),
            },
            false => Plan {
                peers: scope.peers,
                rows,
                rounds: usize::try_from(self.rounds.unwrap_or(scope.rounds))?,
                time: seconds(self.seconds.unwrap_or(scope.seconds))?,
                warm_up: seconds(self.warm_up)?,
                releases: 5,
                waiters: [100, 1000],
                beside_requests: (100, 100),
            },
        })
    }
}
