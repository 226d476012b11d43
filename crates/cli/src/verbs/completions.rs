//! `zkr completions` and `zkr man`: what a package installs beside the program.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;

/// Print a script that completes the arguments of zkr in a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, mut zkr: Command) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut zkr, "zkr", &mut script);
        print(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}

/// Print the manual page, or write one page for each verb to a directory.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The directory for the pages, such as /usr/local/share/man/man1.
    #[arg(long, value_name = "DIRECTORY")]
    to: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self, zkr: Command) -> Result<Exit, Failure> {
        let Some(directory) = &self.to else {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(zkr).render(&mut page);
            rendered.map_err(|error| Failure::internal("cannot write the page", error))?;
            print(&String::from_utf8_lossy(&page))?;
            return Ok(Exit::Done);
        };
        let written = clap_mangen::generate_to(zkr, directory);
        written
            .map_err(|error| Failure::usage(format!("cannot write to {directory:?}: {error}")))?;
        Ok(Exit::Done)
    }
}
