//! The libraries of other languages, if the machine has them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use zookeeper_recipes_interop::{Program, ProgramError, can_run};

/// A library of another language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Curator,
    Kazoo,
}

impl Peer {
    /// The program that runs its contenders, or why there is none.
    fn program(self) -> &'static Result<Program, String> {
        static CURATOR: OnceLock<Result<Program, String>> = OnceLock::new();
        static KAZOO: OnceLock<Result<Program, String>> = OnceLock::new();
        match self {
            Peer::Curator => {
                let program = || Program::curator(&target(), &Program::QUICK_JAVA);
                CURATOR.get_or_init(|| unless_missing(program()))
            }
            Peer::Kazoo => KAZOO.get_or_init(|| unless_missing(Program::kazoo(&target()))),
        }
    }

    pub(crate) fn run(self) -> Command {
        let program = self.program().as_ref();
        program
            .expect("only asked for where it is available")
            .command()
    }
}

/// Whether Curator's downgraded readers keep the writer's place, as from 5.5.0 on.
pub(crate) fn curator_keeps_place_on_downgrade() -> bool {
    let output = Peer::Curator.run().arg("keeps-place-on-downgrade").output();
    let output = output.expect("Curator's contender runs");
    match String::from_utf8_lossy(&output.stdout).trim() {
        "true" => true,
        "false" => false,
        _ => panic!("no answer: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Whether the suite can run with this library. See [`can_run`].
pub(crate) fn available(suite: &str, peer: Peer) -> bool {
    let missing = peer.program().as_ref().err().cloned();
    can_run(&format!("mixed groups, {suite}"), missing.as_slice())
}

/// Fails the test that asks for a program which is there and does not work.
fn unless_missing(program: Result<Program, ProgramError>) -> Result<Program, String> {
    match program {
        Err(ProgramError::Broken(why)) => panic!("{why}"),
        program => program.map_err(|missing| missing.to_string()),
    }
}

/// The directory that cargo builds into.
pub(crate) fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("..")
}
