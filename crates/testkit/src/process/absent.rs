//! No process of a server: what controls one needs Unix.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// The process that there cannot be.
#[derive(Debug)]
pub(crate) enum Process {}

impl Process {
    pub(crate) fn spawn(_: &Path, _: &[OsString], _: &Path, _: &Path) -> io::Result<Self> {
        let needs_unix = "servers can be started on Unix only";
        Err(io::Error::new(io::ErrorKind::Unsupported, needs_unix))
    }

    pub(crate) fn id(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        match *self {}
    }

    pub(crate) fn pause(&self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn resume(&self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) async fn terminate(self, _: Duration) -> io::Result<()> {
        match self {}
    }

    pub(crate) async fn kill(self) -> io::Result<()> {
        match self {}
    }
}
