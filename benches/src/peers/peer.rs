//! Who does it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use clap::ValueEnum;
use zookeeper_recipes_interop::{Program, ProgramError};

use crate::row::Row;
use zookeeper_recipes_benches::report::target;

/// A heap of fixed size, that is in memory from the beginning: what else the process grows by is
/// not heap, and it does not collect more often at first than later.
const JAVA_OPTIONS: [&str; 3] = ["-Xms512m", "-Xmx512m", "-XX:+AlwaysPreTouch"];

/// A library that is at work in this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rust {
    /// These recipes.
    Ours,
    /// The lock of `zookeeper-client`.
    Client,
}

/// Whose library it is.
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

    /// What a report calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Ours => "ours",
            Peer::Curator => "Curator",
            Peer::Kazoo => "kazoo",
            Peer::Client => "Client::lock",
        }
    }

    /// A directory of its own.
    pub(crate) fn directory(self) -> &'static str {
        match self {
            Peer::Ours => "/ours",
            Peer::Curator => "/curator",
            Peer::Kazoo => "/kazoo",
            Peer::Client => "/client",
        }
    }

    /// Whether it has such a thing at all.
    pub(crate) fn has(self, row: Row) -> bool {
        match self {
            Peer::Ours => true,
            // Their releases are over when they return.
            Peer::Curator | Peer::Kazoo => row != Row::Dropped,
            // Nothing but an exclusive lock, and no try for it.
            Peer::Client => !matches!(
                row,
                Row::Read | Row::Write | Row::Semaphore | Row::Try | Row::Readers
            ),
        }
    }

    /// The program that does it; the connect string and the session timeout are to be added.
    ///
    /// # Errors
    ///
    /// [`ProgramError::Missing`] where the machine lacks the library.
    pub(crate) fn command(self) -> anyhow::Result<Command> {
        let of_package = |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let program = |program: Result<Program, ProgramError>| Ok(program?.command());
        match self {
            Peer::Ours => itself(Rust::Ours),
            Peer::Client => itself(Rust::Client),
            Peer::Curator => program(Program::with_curator(
                &of_package("java/CuratorPeer.java"),
                &target(),
                &JAVA_OPTIONS,
            )),
            Peer::Kazoo => program(Program::with_kazoo(
                &of_package("python/kazoo_peer.py"),
                &target(),
            )),
        }
    }
}

/// This program again, which then is the library at work.
fn itself(library: Rust) -> anyhow::Result<Command> {
    let program: PathBuf = env::current_exe().context("cannot tell which program this is")?;
    let mut command = Command::new(program);
    let library = library.to_possible_value();
    command.arg("work");
    command.args(library.as_ref().map(clap::builder::PossibleValue::get_name));
    Ok(command)
}
