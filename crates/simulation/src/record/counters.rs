//! What a simulation has counted.

use std::collections::BTreeMap;

use super::request_kind::RequestKind;

/// Counts of requests, notifications and transactions since the simulation began.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zookeeper_recipes_simulation::{RequestKind, Simulation};
///
/// let simulation = Simulation::default();
/// let session = simulation.process("worker").connect().await?;
/// let (_, watch) = session.list_and_watch("/").await?;
///
/// let counters = simulation.counters();
/// assert_eq!(counters.requests(RequestKind::List), 1);
/// assert_eq!(counters.requests_of("worker"), 1);
/// assert_eq!(counters.watches(), 1);
/// # drop(watch);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub(crate) requests: BTreeMap<RequestKind, u64>,
    pub(crate) requests_of: BTreeMap<String, BTreeMap<RequestKind, u64>>,
    pub(crate) interrupted_removals: BTreeMap<String, u64>,
    pub(crate) notifications: u64,
    pub(crate) notifications_of: BTreeMap<String, u64>,
    pub(crate) transactions: u64,
    pub(crate) watches: usize,
}

impl Counters {
    /// Counts a request of a process.
    pub(crate) fn count_request(&mut self, process: String, kind: RequestKind) {
        *self.requests.entry(kind).or_default() += 1;
        let of_process = self.requests_of.entry(process).or_default();
        *of_process.entry(kind).or_default() += 1;
    }

    /// How many requests of this kind were sent.
    pub fn requests(&self, kind: RequestKind) -> u64 {
        self.requests.get(&kind).copied().unwrap_or(0)
    }

    /// How many requests this process sent, except its clients' own.
    pub fn requests_of(&self, process: &str) -> u64 {
        self.requests_of.get(process).map_or(0, asked_for)
    }

    /// How many connections of this process may have broken before a removal of a watch was
    /// answered.
    pub fn interrupted_removals_of(&self, process: &str) -> u64 {
        let of_process = self.interrupted_removals.get(process);
        of_process.copied().unwrap_or(0)
    }

    /// How many watch notifications the servers sent.
    pub fn notifications(&self) -> u64 {
        self.notifications
    }

    /// How many watch notifications the servers sent to this process.
    pub fn notifications_to(&self, process: &str) -> u64 {
        self.notifications_of.get(process).copied().unwrap_or(0)
    }

    /// How many transactions were committed. Refused transactions do not count.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// How many watches the servers have now.
    pub fn watches(&self) -> usize {
        self.watches
    }
}

fn asked_for(requests: &BTreeMap<RequestKind, u64>) -> u64 {
    let asked_for = requests.iter().filter(|(kind, _)| kind.is_asked_for());
    asked_for.map(|(_, count)| count).sum()
}
