//! The same work over a network: `cargo xtask bench network`.

mod limit;
mod link;
mod measurement;
mod report;

use std::env;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use zookeeper_recipes_benches::report::{Machine, target};
use zookeeper_recipes_benches::{BareSocket, Spread, Testbed};
use zookeeper_recipes_testkit::ServerOptions;

use self::link::{Behaviour, Link, SERVERS};
use self::measurement::Measured;
use self::report::report;
use crate::bench::Bench;
use crate::place::Place;
use crate::plan::{Options, Plan};
use crate::row::Measure;
use crate::summary::Summary;

/// The networks: the round trip in microseconds, and the share of packets that is lost.
const NETWORKS: [(u64, f64); 4] = [(500, 0.0), (2000, 0.0), (10_000, 0.0), (2000, 0.01)];

/// The network by which `--quick` shows that the bench works: that of the goals.
const MIDDLE: usize = 1;

/// The numbers of servers. More than one have their data on disk.
const SIZES: [usize; 2] = [1, 3];

/// How often the round trip is measured, and the turn of a bare socket.
const ROUND_TRIPS: usize = 51;

/// Becomes the same command in a network namespace of its own, where it measures.
///
/// # Errors
///
/// If this process may not do so, or there is no program `unshare`.
pub(crate) fn enter() -> anyhow::Result<()> {
    let mut command = Command::new("unshare");
    command.arg("--net").arg(env::current_exe()?);
    let error = command.args(env::args_os().skip(1)).arg("--inside").exec();
    Err(error).context("cannot run unshare")
}

/// Measures in the network namespace of this process, and writes the report.
///
/// # Errors
///
/// If the network cannot be made, and as [`crate::bench::run`].
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mut plan = options.plan(&Plan::OF_A_NETWORK)?;
    // The other works look at the watches of one server.
    plan.rows
        .retain(|row| matches!(row.measure(), Measure::Turns { .. }));
    let networks = match options.quick {
        true => &NETWORKS[MIDDLE..=MIDDLE],
        false => &NETWORKS[..],
    };
    let link = Link::start()?;
    let (mut machine, mut measured) = (None, Vec::new());
    for servers in SIZES {
        let options = ServerOptions::new().configuration("clientPortAddress", "0.0.0.0");
        let options = match servers {
            1 => options,
            _ => options.data_on_disk(target()),
        };
        let testbed = Testbed::of(servers, options);
        testbed.runtime().block_on(async {
            if machine.is_none() {
                machine = Some(Machine::with(testbed.server()).await?);
            }
            measure(&testbed, &plan, &link, networks, &mut measured).await
        })?;
    }
    let machine = machine.context("no servers")?;
    report(&measured, machine.over(report::NETWORK))?.write(&options.destination)
}

/// Measures all works over each network.
async fn measure<'p>(
    testbed: &Testbed,
    plan: &'p Plan,
    link: &Link,
    networks: &[(u64, f64)],
    measured: &mut Vec<Measured<'p>>,
) -> anyhow::Result<()> {
    let members = testbed.ensemble().members();
    let leader = testbed.ensemble().leader().await?;
    // A session with the leader would be faster than the sessions of others.
    let serving = members.iter().enumerate();
    let serving = serving.filter(|(place, _)| members.len() == 1 || *place != leader);
    let addresses: Vec<String> = serving
        .map(|(_, server)| format!("{SERVERS}:{}", server.port()))
        .collect();
    let place = Place {
        connect_string: addresses.join(","),
        entrance: link.entrance(),
        packets: link.packets.clone(),
    };
    link.behave(Behaviour::default());
    let steps = (1 + networks.len()) * plan.rows.len();
    let mut bench = Bench::start(testbed, plan, place.clone(), steps).await?;
    // Without a delay, so that there are turns enough for Java's compilers.
    bench.warm_up().await?;
    for &(micros, loss) in networks {
        let round_trip = Duration::from_micros(micros);
        link.behave(Behaviour { round_trip, loss });
        let [connects_in, bare_turn] = alone(&place, &addresses[0])?;
        let mut found = Measured {
            servers: members.len(),
            round_trip,
            loss,
            connects_in,
            bare_turn,
            summary: Summary::of(plan),
        };
        bench.measure(&format!("{}: ", found.name())).await?;
        std::mem::swap(&mut found.summary.figures, &mut bench.summary.figures);
        std::mem::swap(&mut found.summary.costs, &mut bench.summary.costs);
        found.summary.versions.clone_from(&bench.summary.versions);
        found.summary.missing.clone_from(&bench.summary.missing);
        measured.push(found);
    }
    bench.progress.finish();
    link.behave(Behaviour::default());
    bench.end().await
}

/// What connecting to a server takes, and what a turn of a bare socket takes, in milliseconds.
fn alone(place: &Place, address: &str) -> anyhow::Result<[f64; 2]> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["connect", address]);
    let output = place.command(command).output()?;
    let answer = String::from_utf8_lossy(&output.stdout);
    let times: Result<Vec<f64>, _> = answer.split_whitespace().map(str::parse).collect();
    let times = times.ok().and_then(|times| times.try_into().ok());
    times.with_context(|| format!("cannot connect to {address}: {output:?}"))
}

/// Prints two medians in milliseconds: of the times to connect to this address, and of the times
/// of the requests of an uncontended lock.
///
/// # Errors
///
/// If nobody listens there.
pub(crate) fn connect(address: &str) -> anyhow::Result<()> {
    let connects = median(|| {
        TcpStream::connect(address)?;
        Ok(())
    })?;
    let mut socket = BareSocket::open(address);
    let turn = median(|| {
        socket.turn("");
        Ok(())
    })?;
    println!("{connects} {turn}");
    Ok(())
}

fn median(mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let began = Instant::now();
        work()?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Spread::of(times).context("no times")?.median)
}
