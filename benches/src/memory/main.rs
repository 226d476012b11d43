//! The memory of an idle lock, of a hold and of a waiter: ours, Apache Curator's and kazoo's.
//!
//! `cargo xtask bench memory` installs what it needs and runs it.
//!
//! Each library works in a process of its own, beside the server, and counts what it has allocated:
//! ours by a counting allocator in this program, Curator by Java's heap after a collection
//! (`java/CuratorMemory.java`), kazoo by Python's `tracemalloc` (`python/kazoo_memory.py`).
//! These two get the connect string, a path and a number, and print a line for each [`Kind`]: its
//! name, and the bytes of each.

mod kind;
mod ours;
mod report;

use std::path::Path;

use anyhow::{Context, bail};
use clap::{Parser, ValueEnum};
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::progress::Progress;
use zookeeper_recipes_benches::report::{Destination, Machine, target};
use zookeeper_recipes_interop::{Program, ProgramError};

use crate::kind::Kind;
use crate::report::{Measured, report};

/// The memory of an idle lock, of a hold and of a waiter.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench memory")]
struct Arguments {
    /// How many of each there are in one session.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    number: u16,

    /// Only to see that it works: 20 of each.
    #[arg(long, conflicts_with = "number")]
    quick: bool,

    #[command(flatten)]
    destination: Destination,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let number = match arguments.quick {
        true => 20,
        false => usize::from(arguments.number),
    };
    let testbed = Testbed::start();
    let mut progress = Progress::of(3);
    progress.step("ours".to_owned());
    let (machine, ours) = testbed.runtime().block_on(async {
        let machine = Machine::with(testbed.server()).await?;
        anyhow::Ok((machine, ours::measure(testbed.server(), number).await?))
    })?;
    let mut measured = vec![Measured::new("ours", ours)];
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, program) in [
        (
            "Curator",
            Program::with_curator(&package.join("java/CuratorMemory.java"), &target(), &[]),
        ),
        (
            "kazoo",
            Program::with_kazoo(&package.join("python/kazoo_memory.py"), &target()),
        ),
    ] {
        progress.step(name.to_owned());
        match program {
            Ok(program) => {
                let lines = other(&testbed, &program, name, number)?;
                measured.push(Measured::new(name, lines));
            }
            Err(missing @ ProgramError::Missing { .. }) => eprintln!("{missing}"),
            Err(broken) => return Err(broken.into()),
        }
    }
    progress.finish();
    report(&measured, number, machine)?.write(&arguments.destination)
}

/// Runs the program of another library, and reads its lines.
fn other(
    testbed: &Testbed,
    program: &Program,
    name: &str,
    number: usize,
) -> anyhow::Result<Vec<(Kind, f64)>> {
    let mut command = program.command();
    command.args([testbed.server().connect_string(), format!("/{name}")]);
    let output = command.arg(number.to_string()).output()?;
    if !output.status.success() {
        bail!("{name} has failed: {output:?}");
    }
    let answer = String::from_utf8(output.stdout)?;
    let kinds = Kind::value_variants().iter();
    let figures = kinds.map(|&kind| {
        let prefix = format!("{} ", kind.name());
        let mut lines = answer.lines();
        let bytes = lines.find_map(|line| line.strip_prefix(&prefix));
        let bytes = bytes.with_context(|| format!("{name}: no {prefix}in {answer:?}"))?;
        Ok((kind, bytes.parse()?))
    });
    figures.collect()
}
