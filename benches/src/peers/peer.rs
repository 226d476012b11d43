//! The libraries that are compared.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use clap::ValueEnum;
use zookeeper_recipes_interop::Program;

use crate::row::Row;
use zookeeper_recipes_benches::report::target;

/// A heap of fixed size, which is in memory from the beginning.
///
/// All growth of the process is outside the heap, and collections are no more frequent at first
/// than later.
const JAVA_OPTIONS: [&str; 3] = ["-Xms512m", "-Xmx512m", "-XX:+AlwaysPreTouch"];

/// A library that works in this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rust {
    /// These recipes.
    Ours,
    /// The lock of `zookeeper-client`.
    Client,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    Ours,
    Curator,
    Kazoo,
    Client,
}

impl Peer {
    pub(crate) const ALL: [Peer; 4] = [Peer::Ours, Peer::Curator, Peer::Kazoo, Peer::Client];

    /// All but ours.
    pub(crate) fn others() -> impl Iterator<Item = Peer> {
        Peer::ALL.into_iter().filter(|peer| *peer != Peer::Ours)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Ours => "ours",
            Peer::Curator => "Curator",
            Peer::Kazoo => "kazoo",
            Peer::Client => "Client::lock",
        }
    }

    /// Whether the library can do the work of a row.
    pub(crate) fn has(self, row: Row) -> bool {
        match self {
            Peer::Ours => true,
            // A release is over when their call returns.
            Peer::Curator | Peer::Kazoo => row != Row::Dropped,
            // It has an exclusive lock only, and no try for it. It keeps nothing between two turns.
            Peer::Client => !matches!(
                row,
                Row::Fresh | Row::Read | Row::Write | Row::Semaphore | Row::Try | Row::Readers
            ),
        }
    }

    /// The program in which the library works. The caller adds connect string, session timeout and
    /// role.
    pub(crate) fn command(self) -> anyhow::Result<Command> {
        match self {
            Peer::Ours => itself(Rust::Ours),
            Peer::Client => itself(Rust::Client),
            Peer::Curator => Ok(Program::curator(&target(), &JAVA_OPTIONS)?.command()),
            Peer::Kazoo => Ok(Program::kazoo(&target())?.command()),
        }
    }
}

/// This program again, in the role of a library at work.
fn itself(library: Rust) -> anyhow::Result<Command> {
    let program: PathBuf = env::current_exe().context("cannot find the path of this program")?;
    let mut command = Command::new(program);
    let library = library.to_possible_value();
    command.arg("be");
    command.args(library.as_ref().map(clap::builder::PossibleValue::get_name));
    Ok(command)
}
