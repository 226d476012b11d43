//! The servers in a file, read again at each SIGHUP.

use std::convert::Infallible;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use zookeeper_recipes_core::Session;

use crate::failure::{Failure, warn};

/// A file with a connect string, and the hangups of the terminal or of an operator.
pub(super) struct HostsFile {
    path: PathBuf,
    hangups: Stream,
}

impl HostsFile {
    /// Notes each SIGHUP from now on.
    pub(super) fn new(path: &Path) -> Result<HostsFile, Failure> {
        let hangups = signal(SignalKind::hangup());
        Ok(HostsFile {
            path: path.to_owned(),
            hangups: hangups.map_err(|error| Failure::internal("cannot receive signals", error))?,
        })
    }

    pub(super) fn read(&self) -> Result<String, Failure> {
        read(&self.path)
    }

    /// Replaces the hosts of the session at each SIGHUP, and warns if they cannot be used.
    pub(super) async fn follow(mut self, session: &Session) -> Infallible {
        loop {
            // The stream of a signal does not end.
            let _ = self.hangups.recv().await;
            let path = self.path.clone();
            let read = tokio::task::spawn_blocking(move || read(&path)).await;
            let read = read.map_err(|error| Failure::internal("cannot read a file", error));
            let hosts = read.and_then(|read| read);
            let replaced = hosts.and_then(|hosts| Ok(session.set_hosts(&hosts)?));
            if let Err(failure) = replaced {
                let file = self.path.display();
                warn(&format!("{file}: {failure}; the servers are as before"));
            }
        }
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let text = read_to_string(path);
    let text = text.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    Ok(text.trim().to_owned())
}
