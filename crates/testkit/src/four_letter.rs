//! The four-letter words: a server's own account of itself, over a plain TCP connection.
//!
//! They reach a server that has no quorum, take no session, and leave nothing behind.
//! Each does count as a packet received in the server's own figures: see
//! [`Monitor::packets_received`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::error::Error;

/// How long [`ask`] waits for the whole of an answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A question that a ZooKeeper server answers to anyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FourLetterWord {
    /// `conf`: the configuration it runs with.
    Conf,
    /// `cons`: each connection with its session and figures.
    Cons,
    /// `dump`: sessions and their ephemeral znodes.
    Dump,
    /// `envi`: what it runs on, with the versions of it all.
    Envi,
    /// `mntr`: figures, one a line.
    Mntr,
    /// `ruok`: `imok` from any server whose process answers.
    Ruok,
    /// `srst`: sets the figures back to zero.
    Srst,
    /// `srvr`: its mode and its last zxid.
    Srvr,
    /// `wchp`: watched paths, each with the sessions that watch it.
    Wchp,
    /// `wchs`: how many watches there are.
    Wchs,
}

impl FourLetterWord {
    /// The word as it goes over the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conf => "conf",
            Self::Cons => "cons",
            Self::Dump => "dump",
            Self::Envi => "envi",
            Self::Mntr => "mntr",
            Self::Ruok => "ruok",
            Self::Srst => "srst",
            Self::Srvr => "srvr",
            Self::Wchp => "wchp",
            Self::Wchs => "wchs",
        }
    }
}

impl fmt::Display for FourLetterWord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Asks the server at `address` (host and port), waiting at most [`PATIENCE`].
///
/// # Errors
///
/// [`Error::Unanswered`] when it refuses the connection, cuts it or is silent;
/// [`Error::NotServing`] when it has no quorum; [`Error::NotWhitelisted`] when it will not answer
/// this word.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), zookeeper_recipes_testkit::Error> {
/// use zookeeper_recipes_testkit::four_letter::{self, FourLetterWord};
/// use zookeeper_recipes_testkit::{Server, ServerOptions};
///
/// let server = Server::start(ServerOptions::new()).await?;
/// let answer = four_letter::ask(&server.connect_string(), FourLetterWord::Ruok).await?;
/// assert_eq!(answer, "imok");
/// # Ok(())
/// # }
/// ```
pub async fn ask(address: &str, word: FourLetterWord) -> Result<String, Error> {
    ask_within(address, word, PATIENCE).await
}

/// As [`ask`], waiting at most `patience`.
///
/// # Errors
///
/// As [`ask`].
pub async fn ask_within(
    address: &str,
    word: FourLetterWord,
    patience: Duration,
) -> Result<String, Error> {
    let replace = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(word.as_str().as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(answer)
    };
    let answer = match timeout(patience, replace).await {
        Ok(answer) => answer,
        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
    };
    let answer = answer.map_err(|source| Error::Unanswered {
        address: address.to_owned(),
        question: word.as_str(),
        source,
    })?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    if answer.contains("is not currently serving requests") {
        return Err(Error::NotServing {
            address: address.to_owned(),
        });
    }
    if answer.contains("is not in the whitelist") {
        return Err(Error::NotWhitelisted {
            address: address.to_owned(),
            word,
        });
    }
    Ok(answer)
}

/// A server's figures, as `mntr` gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Monitor {
    /// Packets received since the server started or was told `srst`: requests, pings, and
    /// four-letter words. The `mntr` that read this figure is among them, so of the difference of
    /// two readings one is the second reading's own.
    pub packets_received: u64,
    /// Packets sent since the server started or was told `srst`: replies, watch notifications, and
    /// answers to four-letter words (but not yet this one).
    pub packets_sent: u64,
    /// Watches of all sessions connected to this server.
    pub watches: u64,
    /// Znodes in the whole tree, the server's own (under `/zookeeper`, and the root) included.
    pub znodes: u64,
    /// Ephemeral znodes in the whole tree.
    pub ephemerals: u64,
    /// Open connections, the one that asked included.
    pub connections: u64,
    /// Requests received and not yet answered.
    pub outstanding_requests: u64,
    /// Everything the server said, by its name without `zk_`: versions differ in what they tell.
    pub values: BTreeMap<String, String>,
}

impl Monitor {
    /// Reads the answer to `mntr`.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] when one of the figures is missing or no number.
    pub fn parse(answer: &str) -> Result<Self, Error> {
        let values: BTreeMap<String, String> = answer
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .filter_map(|(name, value)| Some((name.strip_prefix("zk_")?, value.trim())))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let figure = |name: &str| {
            values
                .get(name)
                .and_then(|value| value.parse::<i64>().ok())
                // A busy server counts without locks, and can say -1 for a moment.
                .map(|value| u64::try_from(value).unwrap_or(0))
                .ok_or_else(|| Error::Malformed {
                    question: "mntr",
                    answer: format!("{name}: {:?}", values.get(name)),
                })
        };
        Ok(Self {
            packets_received: figure("packets_received")?,
            packets_sent: figure("packets_sent")?,
            watches: figure("watch_count")?,
            znodes: figure("znode_count")?,
            ephemerals: figure("ephemerals_count")?,
            connections: figure("num_alive_connections")?,
            outstanding_requests: figure("outstanding_requests")?,
            values,
        })
    }

    /// Reads the figures of the server at `address` (host and port).
    ///
    /// # Errors
    ///
    /// As [`ask`], and [`Error::Malformed`].
    pub async fn read(address: &str) -> Result<Self, Error> {
        Self::parse(&ask(address, FourLetterWord::Mntr).await?)
    }

    /// One of [`values`](Self::values) as a number; `None` when the server does not tell it, or
    /// when it is none.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), zookeeper_recipes_testkit::Error> {
    /// # use zookeeper_recipes_testkit::{Server, ServerOptions};
    /// # let server = Server::start(ServerOptions::new()).await?;
    /// let monitor = server.monitor().await?;
    /// assert!(monitor.number("approximate_data_size").is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn number(&self, name: &str) -> Option<f64> {
        self.values.get(name)?.parse().ok()
    }

    /// How many watchers the server has notified of anything so far; `None` where it does not say
    /// (before ZooKeeper 3.6).
    pub fn notifications(&self) -> Option<u64> {
        ["created", "deleted", "changed", "children"]
            .into_iter()
            .map(|what| self.number(&format!("sum_node_{what}_watch_count")))
            .try_fold(0, |all, some| Some(all + some? as u64))
    }
}

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

/// Reads the answer to `wchp`: each watched path with the sessions that watch it.
pub fn parse_watches(answer: &str) -> BTreeMap<String, BTreeSet<i64>> {
    let mut watches: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    let mut path = None;
    for line in answer.lines() {
        match line.strip_prefix('\t') {
            Some(session) => {
                if let (Some(path), Some(session)) = (&path, hexadecimal(session.trim())) {
                    watches
                        .entry(String::clone(path))
                        .or_default()
                        .insert(session);
                }
            }
            None => path = line.starts_with('/').then(|| line.to_owned()),
        }
    }
    watches
}

/// Reads the answer to `dump`: each session that has ephemeral znodes, with their paths.
pub fn parse_ephemerals(answer: &str) -> BTreeMap<i64, BTreeSet<String>> {
    let mut ephemerals: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    let mut session = None;
    let section = answer
        .lines()
        .skip_while(|line| !line.starts_with("ephemeral nodes dump"))
        .take_while(|line| !line.starts_with("Connections dump"));
    for line in section {
        match line.strip_prefix('\t') {
            Some(path) => {
                if let Some(session) = session {
                    ephemerals
                        .entry(session)
                        .or_default()
                        .insert(path.to_owned());
                }
            }
            None => session = line.strip_suffix(':').and_then(hexadecimal),
        }
    }
    ephemerals
}

/// `0x…` as Java prints a long: two's complement.
fn hexadecimal(text: &str) -> Option<i64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16)
        .ok()
        .map(|bits| bits as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monitor_keeps_what_it_does_not_know() {
        let answer = "zk_version\t3.8.0, built\nzk_packets_received\t7\nzk_packets_sent\t6\n\
                      zk_watch_count\t2\nzk_znode_count\t5\nzk_ephemerals_count\t1\n\
                      zk_num_alive_connections\t3\nzk_outstanding_requests\t-1\n\
                      zk_avg_latency\t0.5\n";
        let monitor = Monitor::parse(answer).expect("figures");
        assert_eq!((monitor.packets_received, monitor.packets_sent), (7, 6));
        assert_eq!(
            (monitor.watches, monitor.znodes, monitor.ephemerals),
            (2, 5, 1)
        );
        assert_eq!((monitor.connections, monitor.outstanding_requests), (3, 0));
        assert_eq!(monitor.number("avg_latency"), Some(0.5));
        assert_eq!(monitor.number("version"), None);
    }

    #[test]
    fn monitor_without_a_figure_is_an_error_that_names_it() {
        let error = Monitor::parse("zk_packets_received\tmany\n").expect_err("no number");
        assert!(error.to_string().contains("packets_received"), "{error}");
    }

    #[test]
    fn status_reads_mode_and_epoch() {
        let answer = "Zookeeper version: 3.8.0-x, built on 2024\nLatency min/avg/max: 0/0.0/0\n\
                      Zxid: 0x200000003\nMode: leader\nNode count: 5\n";
        let status = Status::parse(answer).expect("a status");
        assert_eq!(status.mode, Mode::Leader);
        assert_eq!(status.zxid >> 32, 2);
        assert!(Status::parse("Mode: leader\n").is_err());
        assert!(Status::parse("").is_err());
    }

    #[test]
    fn watches_are_read_by_path() {
        let watches = parse_watches("/a\n\t0x100\n\t0xfffffffffffffff0\n/b\n\t0x100\n");
        assert_eq!(watches["/a"], BTreeSet::from([0x100, -16]));
        assert_eq!(watches["/b"], BTreeSet::from([0x100]));
        assert!(parse_watches("").is_empty());
    }

    #[test]
    fn ephemerals_are_read_by_session() {
        let answer = "SessionTracker dump:\nSession Sets (2)/(1):\n0 expire at x:\n\t0x5\n\
                      ephemeral nodes dump:\nSessions with Ephemerals (1):\n0x100:\n\t/a\n\t/b\n\
                      Connections dump:\nConnections Sets (1)/(1):\n\tip: /127.0.0.1\n";
        let ephemerals = parse_ephemerals(answer);
        assert_eq!(ephemerals.len(), 1);
        assert_eq!(ephemerals[&0x100].len(), 2);
    }
}
