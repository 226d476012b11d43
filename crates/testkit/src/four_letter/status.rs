//! A server's role and progress.

use super::ask::ask;
use super::listing::hexadecimal;
use super::word::FourLetterWord;
use crate::error::Error;

/// What a server is in its ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// It is alone, without an ensemble.
    Standalone,
    /// It leads.
    Leader,
    /// It follows, and has a vote.
    Follower,
    /// It follows, and has none.
    Observer,
    /// It has lost the quorum and serves reads.
    ReadOnly,
}

/// A server's role and progress, as `srvr` gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// What it is in its ensemble.
    pub mode: Mode,
    /// The last transaction it has seen. The upper 32 bits are the leader's epoch.
    pub zxid: i64,
    /// Its version, with what follows it there.
    pub version: String,
}

impl Status {
    /// Reads the answer to `srvr`.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] when a line is missing or makes no sense.
    pub fn parse(answer: &str) -> Result<Self, Error> {
        let malformed = || Error::Malformed {
            question: "srvr",
            answer: answer.to_owned(),
        };
        let line = |name: &str| {
            answer
                .lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.trim())
                .ok_or_else(malformed)
        };
        let mode = match line("Mode")? {
            "standalone" => Mode::Standalone,
            "leader" => Mode::Leader,
            "follower" => Mode::Follower,
            "observer" => Mode::Observer,
            "read-only" => Mode::ReadOnly,
            _ => return Err(malformed()),
        };
        Ok(Self {
            mode,
            zxid: hexadecimal(line("Zxid")?).ok_or_else(malformed)?,
            version: line("Zookeeper version")?.to_owned(),
        })
    }

    /// Reads the status of the server at `address` (host and port).
    ///
    /// # Errors
    ///
    /// As [`ask`], and [`Error::Malformed`].
    pub async fn read(address: &str) -> Result<Self, Error> {
        Self::parse(&ask(address, FourLetterWord::Srvr).await?)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/status.rs"]
mod tests;
