//! Jepsen's workload for locks: a set that a lock guards, under pauses and partitions.
//!
//! `cargo xtask jepsen` installs what it needs and runs it, on Linux as root.
//!
//! Each client is a process of its own. A turn of a client acquires the lock, reads the set, works
//! for some milliseconds, and writes the set back with one more element. If two clients are in their
//! turns together, one of them overwrites the elements of the other.
//!
//! The program keeps three sets, and each turn writes to all three. So the same faults meet three
//! ways to write:
//!
//! | set | what a client does before the write | what the store refuses |
//! |---|---|---|
//! | unchecked | nothing | nothing |
//! | checked | asks its library whether it still holds, and withholds the write if not | nothing |
//! | fenced | sends the token with the read and with the write | a token older than the newest one that it has seen |
//!
//! An element is *lost* if the store acknowledged its write, and the set does not contain it in the
//! end: [`check`].
//!
//! The look at the lock is wrong if it began after a newer holder had acquired the lock, and the
//! library said that the lock was held: [`judge_looks`]. A run fails if a look of ours is wrong.
//! Without a wrong look, a checked write is late only by a pause or a delay after the look.

mod arena;
mod checker;
mod client;
mod clock;
mod fault;
mod faults;
mod judgement;
mod library;
mod looks;
mod machine;
mod namespace;
mod network;
mod report;
mod store;

use std::env;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use zookeeper_recipes_benches::report::{Destination, Machine, target};
use zookeeper_recipes_testkit::{Ensemble, ServerOptions};

use crate::arena::Arena;
use crate::checker::{Way, check, is_in_order};
use crate::fault::Fault;
use crate::faults::Failing;
use crate::judgement::failures;
use crate::library::{Client, Library};
use crate::looks::judge_looks;
use crate::machine::Disk;
use crate::network::ClientNetwork;
use crate::report::{Run, report};

const CLIENTS: usize = 4;
const SERVERS: usize = 3;
const SESSION_TIMEOUT: Duration = Duration::from_secs(3);
const TICK: Duration = Duration::from_millis(500);
const PATH: &str = "/jepsen";

/// A set that a lock guards, under pauses and partitions. Wants Linux and root.
#[derive(Debug, Parser)]
#[command(
    bin_name = "cargo xtask jepsen",
    args_conflicts_with_subcommands = true
)]
struct Arguments {
    #[command(subcommand)]
    client: Option<ClientArguments>,

    /// For how many minutes the clients of each library take turns.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,

    /// The libraries.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["ours", "curator", "kazoo"])]
    clients: Vec<Library>,

    /// The order of the faults. The same seed gives the same order, and not the same history.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Only to see that it works: a paused holder and a cut in one direction.
    #[arg(long, conflicts_with = "minutes")]
    quick: bool,

    #[command(flatten)]
    destination: Destination,

    /// This process is in a network namespace and a mount namespace of its own.
    #[arg(long, hide = true)]
    inside: bool,
}

#[derive(Debug, Subcommand)]
enum ClientArguments {
    /// A client of this project's lock.
    #[command(hide = true)]
    Client {
        connect: String,
        path: String,
        milliseconds: u64,
    },
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    match &arguments.client {
        Some(ClientArguments::Client {
            connect,
            path,
            milliseconds,
        }) => runtime.block_on(client::run(
            connect,
            path,
            Duration::from_millis(*milliseconds),
        )),
        None if arguments.inside => runtime.block_on(run_all(&arguments)),
        None => enter(),
    }
}

/// Runs the same command in namespaces of its own.
fn enter() -> anyhow::Result<()> {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount"]).arg(env::current_exe()?);
    let status = command
        .args(env::args_os().skip(1))
        .arg("--inside")
        .status();
    ensure!(
        status.context("cannot run unshare")?.success(),
        "it has failed, as it says above"
    );
    Ok(())
}

async fn run_all(arguments: &Arguments) -> anyhow::Result<()> {
    fastrand::seed(arguments.seed);
    namespace::run("ip link set lo up")?;
    let (time, faults) = match arguments.quick {
        true => (Duration::from_secs(18), &Fault::QUICK[..]),
        false => (
            Duration::from_secs_f64(60.0 * arguments.minutes),
            Fault::value_variants(),
        ),
    };
    let (mut machine, mut runs) = (None, Vec::new());
    for library in &arguments.clients {
        runs.push(run(*library, time, faults, &mut machine).await?);
    }
    let machine = machine.context("no library")?;
    let machine = machine.over("each client in a network namespace of its own");
    let words: Vec<String> = env::args()
        .skip(1)
        .filter(|word| word != "--inside")
        .collect();
    let command = format!("cargo xtask jepsen {}", words.join(" "));
    report(&runs, machine, command.trim(), SESSION_TIMEOUT).write(&arguments.destination)?;
    let failures = failures(&runs);
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

async fn run(
    library: Library,
    time: Duration,
    faults: &[Fault],
    machine: &mut Option<Machine>,
) -> anyhow::Result<Run> {
    let disk = Disk::new(&target())?;
    let options = ServerOptions::new()
        .tick_time(TICK)
        .configuration("clientPortAddress", "0.0.0.0")
        .data_on_disk(disk.path());
    let mut ensemble = Ensemble::start_with_partitions(SERVERS, options).await?;
    if machine.is_none() {
        *machine = Some(Machine::with(&ensemble).await?);
    }
    let arena = Arc::new(Arena::new(CLIENTS, time));
    let clients = start_clients(library, &arena, &ensemble)?;
    let failing = Failing {
        arena: &arena,
        clients: &clients,
        ensemble: &mut ensemble,
        disk: &disk,
        session_timeout: SESSION_TIMEOUT,
    };
    let faults = failing.run(faults).await?;
    for client in clients {
        client.end(10 * SESSION_TIMEOUT).await?;
    }
    // The disk is unmounted after the end of the servers.
    drop(ensemble);
    Ok(judge(library, &arena, faults))
}

fn start_clients(
    library: Library,
    arena: &Arc<Arena>,
    ensemble: &Ensemble,
) -> anyhow::Result<Vec<Client>> {
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let network = ClientNetwork::new(number)?;
        let address = network.servers();
        let ports = ensemble.members().iter().map(|member| member.port());
        let hosts: Vec<String> = ports.map(|port| format!("{address}:{port}")).collect();
        let queue = [&*hosts.join(","), PATH];
        let place = (arena, number);
        clients.push(Client::start(
            library,
            network,
            queue,
            SESSION_TIMEOUT,
            place,
        )?);
    }
    Ok(clients)
}

fn judge(library: Library, arena: &Arena, faults: Vec<(Fault, usize)>) -> Run {
    // A client that was killed in its turn has acquired the lock, too.
    (0..CLIENTS).for_each(|client| arena.gone(client));
    let state = arena.state();
    let verdicts = Way::ALL.map(|way| check(&state.history, way, &state.store.set(way)));
    let can_compare = state.foreign_times == 0;
    let looks = can_compare.then(|| {
        let lost = &verdicts[Way::Checked as usize].lost;
        let overwritten_by = state.store.overwritten_by(Way::Checked);
        judge_looks(&state.history, lost, overwritten_by)
    });
    Run {
        library: state.library.clone(),
        is_ours: library == Library::Ours,
        verdicts,
        in_order: is_in_order(&state.history),
        failures: state.failures,
        history: state.history.clone(),
        faults,
        looks,
        foreign_times: state.foreign_times,
        misunderstood: state.misunderstood.clone(),
    }
}
