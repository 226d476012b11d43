//! A server's figures.

use std::collections::BTreeMap;

use super::ask::ask;
use super::word::FourLetterWord;
use crate::error::Error;

/// A server's figures, as `mntr` gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Monitor {
    /// Packets received since the server started or got `srst`: requests, pings, and
    /// four-letter words. The `mntr` that read this figure is among them, so of the difference of
    /// two readings one is the second reading's own.
    pub packets_received: u64,
    /// Packets sent since the server started or got `srst`: replies, watch notifications, and
    /// answers to four-letter words (but not yet this one).
    pub packets_sent: u64,
    /// Watches of all sessions connected to this server.
    pub watches: u64,
    /// Znodes in the whole tree, the server's own (under `/zookeeper`, and the root) included.
    pub znodes: u64,
    /// Ephemeral znodes in the whole tree.
    pub ephemerals: u64,
    /// Open connections, including the connection of this request.
    pub connections: u64,
    /// Requests received and not yet answered.
    pub outstanding_requests: u64,
    /// All figures by their names without `zk_`. Versions of the server have different figures.
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

    /// One of [`values`](Self::values) as a number.
    ///
    /// `None` if the server does not report the value, or if it is not a number.
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

    /// The number of watchers that the server has notified until now.
    ///
    /// `None` if the server does not say (before ZooKeeper 3.6).
    pub fn notifications(&self) -> Option<u64> {
        ["created", "deleted", "changed", "children"]
            .into_iter()
            .map(|what| self.number(&format!("sum_node_{what}_watch_count")))
            .try_fold(0, |all, some| Some(all + some? as u64))
    }
}

#[cfg(test)]
#[path = "../../tests/unit/monitor.rs"]
mod tests;
