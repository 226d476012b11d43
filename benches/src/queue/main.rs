//! The cost of entering the queue of a lock and of a handover, as the queue grows.
//!
//! `cargo xtask bench queue` installs what it needs and runs it.

mod findings;

use std::time::Duration;

use clap::Parser;
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::measure::{Field, Limits, Setting};
use zookeeper_recipes_benches::member::Member;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::report::{Destination, Machine};
use zookeeper_recipes_benches::way::{Subject, Wakes, Way};
use zookeeper_recipes_benches::wire::Wire;

use crate::findings::{Findings, Row};

/// How many sessions the contenders share.
const SESSIONS: usize = 100;

/// The cost of entering the queue of a lock and of a handover, as the queue grows.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench queue")]
struct Arguments {
    /// How many contenders are in the queue: several numbers, with commas between.
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [10, 100, 1_000, 10_000],
        value_parser = clap::value_parser!(u16).range(2..=10_000),
    )]
    contenders: Vec<u16>,

    /// Only to see that it works: 5 and 20 contenders, few times.
    #[arg(long, conflicts_with = "contenders")]
    quick: bool,

    #[command(flatten)]
    destination: Destination,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let testbed = Testbed::start();
    let (machine, findings) = testbed.runtime().block_on(async {
        let machine = Machine::with(testbed.server()).await?;
        anyhow::Ok((machine, measure(&testbed, &arguments).await?))
    })?;
    findings.report(machine)?.write(&arguments.destination)
}

async fn measure(testbed: &Testbed, arguments: &Arguments) -> anyhow::Result<Findings> {
    let (sizes, counting, timing) = match arguments.quick {
        true => (vec![5, 20], of_times(10), of_times(10)),
        false => (arguments.contenders.clone(), of_times(50), of_times(1_000)),
    };
    let ways = Way::ALL.into_iter();
    let ways: Vec<Way> = ways
        .filter(|way| way.wakes == Wakes::WhomItConcerns)
        .collect();
    let wire = Wire::to(testbed.server()).await?;
    let mut progress = Progress::of(1 + 2 * sizes.len() * ways.len());
    let direct = Member::connect(&testbed.server().connect_string(), SESSIONS).await?;
    let counted = Member::connect(&wire.connect_string(), SESSIONS).await?;
    let observing = Member::connect(&testbed.server().connect_string(), 1)
        .await?
        .remove(0);
    let mut field = Field::new(testbed, &observing);
    progress.step("warming up".to_owned());
    field.warm_up().await?;

    let mut rows = Vec::new();
    for size in sizes {
        let contenders = usize::from(size);
        for &way in &ways {
            let sessions = contenders.min(SESSIONS);
            let setting = |members| Setting {
                way,
                subject: Subject::Lock,
                contenders,
                members,
            };
            progress.step(format!("{way:?}, {contenders} contenders, timed"));
            let times = field.time(setting(&direct[..sessions]), timing, &progress);
            let times = times.await?;
            progress.step(format!("{way:?}, {contenders} contenders, counted"));
            let costs = field.count(setting(&counted[..sessions]), &wire, counting, &progress);
            rows.push(Row {
                way,
                contenders,
                times,
                costs: costs.await?,
            });
        }
    }
    for members in [direct, counted, vec![observing]] {
        Member::close(members).await;
    }
    progress.finish();
    Ok(Findings {
        rows,
        ways,
        sessions: SESSIONS,
    })
}

/// At most this number of times, and fewer if that takes too long.
fn of_times(times: usize) -> Limits {
    Limits {
        least: times.min(20),
        most: times,
        time: Duration::from_secs(5),
    }
}
