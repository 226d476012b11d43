//! The cost of a release, by each way to wait, as the number of contenders grows.
//!
//! `cargo xtask bench herd` installs what it needs and runs it.

mod findings;

use std::time::Duration;

use clap::Parser;
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::measure::{Field, Limits, Setting};
use zookeeper_recipes_benches::member::Member;
use zookeeper_recipes_benches::open_files::allow_open_files;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::report::{Destination, Machine};
use zookeeper_recipes_benches::way::{Subject, Way};
use zookeeper_recipes_benches::wire::Wire;

use crate::findings::{Findings, Row};

/// What a release costs, by each way to wait, as the number of contenders grows.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench herd")]
struct Arguments {
    /// How many contenders, each with a session of its own: several numbers, with commas between.
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [2, 10, 50, 100, 500, 1_000],
        value_parser = clap::value_parser!(u16).range(2..=5_000),
    )]
    contenders: Vec<u16>,

    /// How many handoffs to time at most for each figure.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    handoffs: u32,

    /// For how many seconds to time handoffs for each figure, as long as there are a few.
    #[arg(long, default_value_t = 4)]
    seconds: u64,

    /// Only to see that it works: 2 and 5 contenders, few releases.
    #[arg(long, conflicts_with_all = ["contenders", "handoffs", "seconds"])]
    quick: bool,

    #[command(flatten)]
    destination: Destination,
}

impl Arguments {
    fn sizes(&self) -> Vec<usize> {
        match self.quick {
            true => vec![2, 5],
            false => self.contenders.iter().copied().map(usize::from).collect(),
        }
    }

    fn counting(&self) -> Limits {
        Limits {
            least: if self.quick { 10 } else { 3 },
            most: if self.quick { 10 } else { 100 },
            time: Duration::from_secs(2),
        }
    }

    fn timing(&self) -> Limits {
        match self.quick {
            true => Limits {
                least: 10,
                most: 10,
                time: Duration::ZERO,
            },
            false => Limits {
                least: self.handoffs.min(5) as usize,
                most: self.handoffs as usize,
                time: Duration::from_secs(self.seconds),
            },
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let sizes = arguments.sizes();
    // Each contender has a connection, and a counted connection passes both ends of the proxy.
    let contenders = sizes.iter().copied().max().unwrap_or(0);
    allow_open_files(3 * contenders as u64 + 200)?;
    let testbed = Testbed::start();
    let (machine, rows) = testbed.runtime().block_on(async {
        let machine = Machine::with(testbed.server()).await?;
        let rows = measure(&testbed, &arguments, &sizes).await?;
        anyhow::Ok((machine, rows))
    })?;
    let findings = Findings { rows };
    findings.report(machine)?.write(&arguments.destination)
}

/// Each kind of lock with each way to wait that it has.
fn pairs() -> impl Iterator<Item = (Subject, Way)> {
    let subjects = [Subject::Lock, Subject::RwLock].into_iter();
    subjects.flat_map(|subject| {
        let ways = Way::ALL.into_iter().filter(move |way| way.fits(subject));
        ways.map(move |way| (subject, way))
    })
}

async fn measure(
    testbed: &Testbed,
    arguments: &Arguments,
    sizes: &[usize],
) -> anyhow::Result<Vec<Row>> {
    let server = testbed.server();
    let direct = server.connect_string();
    let wire = Wire::to(server).await?;
    let mut progress = Progress::of(1 + 2 * sizes.len() * pairs().count());
    let observing = Member::connect(&direct, 1).await?.remove(0);
    let mut field = Field::new(testbed, &observing);

    if !arguments.quick {
        progress.step("warming up".to_owned());
        field.warm_up().await?;
    }
    let mut rows = Vec::new();
    for &contenders in sizes {
        let mut times = Vec::new();
        let members = Member::connect(&direct, contenders).await?;
        for (subject, way) in pairs() {
            progress.step(format!(
                "{subject}, {way:?}, {contenders} contenders, timed"
            ));
            let setting = Setting {
                way,
                subject,
                contenders,
                members: &members,
            };
            times.push(field.time(setting, arguments.timing(), &progress).await?);
        }
        Member::close(members).await;

        let members = Member::connect(&wire.connect_string(), contenders).await?;
        for ((subject, way), times) in pairs().zip(times) {
            progress.step(format!(
                "{subject}, {way:?}, {contenders} contenders, counted"
            ));
            let setting = Setting {
                way,
                subject,
                contenders,
                members: &members,
            };
            let costs = field.count(setting, &wire, arguments.counting(), &progress);
            rows.push(Row {
                subject,
                way,
                contenders,
                handoffs: times.handoffs,
                costs: costs.await?,
            });
        }
        Member::close(members).await;
    }
    Member::close(vec![observing]).await;
    progress.finish();
    Ok(rows)
}
