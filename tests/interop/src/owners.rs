//! Judges what the workers of an assignment report of their partitions.

use std::collections::{BTreeMap, BTreeSet};

use zookeeper_recipes_core::FencingToken;
use zookeeper_recipes_testkit::history::History;

/// A partition and a worker.
type Pair = (String, String);

/// The owners of partitions, as the workers report them.
///
/// A worker that is stopped cannot report that it has lost its partitions, and does not work on
/// them. So the test reports the stop, and the worker owns nothing from then on. It may have looked at
/// its hold just before the stop. So one line of work on each partition may come after it.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// One for each partition.
    histories: BTreeMap<String, History>,
    /// The number in the history and the token of each hold.
    owned: BTreeMap<Pair, (u64, i64)>,
    stopped: BTreeSet<String>,
    /// The tokens of holds that a worker had when it was stopped.
    lapsed: BTreeMap<Pair, i64>,
}

impl Owners {
    /// The worker of each partition.
    pub(crate) fn now(&self) -> BTreeMap<String, String> {
        self.owned.keys().cloned().collect()
    }

    /// A worker owns a partition from now on. Returns the broken promises.
    pub(crate) fn own(&mut self, worker: &str, partition: &str, token: i64) -> Vec<String> {
        let pair = (partition.to_owned(), worker.to_owned());
        if self.stopped.contains(worker) {
            self.lapsed.insert(pair, token);
            return Vec::new();
        }
        let history = self.histories.entry(partition.to_owned());
        let history = history.or_insert_with(|| History::new(1));
        let fencing = FencingToken::from(token);
        let (number, found) = history.granted_elsewhere(worker, 1, fencing, partition);
        let mut found: Vec<String> = found.iter().map(ToString::to_string).collect();
        if self.owned.insert(pair, (number, token)).is_some() {
            found.push(format!("{worker} owned {partition}, and owns it again"));
        }
        found
    }

    /// A worker works on a partition. Returns the broken promise.
    pub(crate) fn works(&mut self, worker: &str, partition: &str, token: i64) -> Option<String> {
        let pair = (partition.to_owned(), worker.to_owned());
        let now = self.owned.get(&pair).map(|(_, token)| *token);
        if now == Some(token) {
            return None;
        }
        if self.lapsed.get(&pair) == Some(&token) {
            if !self.stopped.contains(worker) {
                self.lapsed.remove(&pair);
            }
            return None;
        }
        Some(format!(
            "{worker} works on {partition} with the token {token}, and owns it with {now:?}"
        ))
    }

    /// A worker does not own a partition any more. Returns the broken promise.
    pub(crate) fn free(&mut self, worker: &str, partition: &str) -> Option<String> {
        let pair = (partition.to_owned(), worker.to_owned());
        let lapsed = self.lapsed.remove(&pair).is_some();
        match self.owned.remove(&pair) {
            Some((number, _)) => {
                self.let_go(partition, number);
                None
            }
            None if lapsed => None,
            None => Some(format!("{worker} did not own {partition}")),
        }
    }

    /// A worker has ended, or its process has.
    pub(crate) fn gone(&mut self, worker: &str) {
        self.let_all_go(worker);
        self.lapsed.retain(|(_, of), _| of != worker);
        self.stopped.remove(worker);
    }

    /// A worker's process is stopped.
    pub(crate) fn stopped(&mut self, worker: &str) {
        self.stopped.insert(worker.to_owned());
        for (pair, token) in self.let_all_go(worker) {
            self.lapsed.insert(pair, token);
        }
    }

    /// A worker's process is about to continue.
    pub(crate) fn continues(&mut self, worker: &str) {
        self.stopped.remove(worker);
    }

    fn let_all_go(&mut self, worker: &str) -> Vec<(Pair, i64)> {
        let own = self.owned.iter().filter(|((_, of), _)| of == worker);
        let own: Vec<_> = own.map(|(pair, hold)| (pair.clone(), *hold)).collect();
        for (pair, (number, _)) in &own {
            self.owned.remove(pair);
            self.let_go(&pair.0, *number);
        }
        own.into_iter()
            .map(|(pair, (_, token))| (pair, token))
            .collect()
    }

    fn let_go(&mut self, partition: &str, number: u64) {
        if let Some(history) = self.histories.get_mut(partition) {
            history.letting_go(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_owners_and_older_tokens_are_found() {
        let mut owners = Owners::default();
        assert_eq!(owners.own("a", "p", 5), [""; 0]);
        assert!(owners.own("b", "p", 7)[0].contains("b (p) held beside a (p)"));
        assert_eq!(owners.free("a", "p"), None);
        assert!(owners.free("a", "p").is_some(), "it is free");
        assert_eq!(owners.free("b", "p"), None);
        assert!(owners.own("a", "p", 6)[0].contains("tokens grow"));
        assert_eq!(owners.own("a", "q", 1), [""; 0], "another partition");
        owners.gone("a");
        assert_eq!(owners.own("b", "p", 8), [""; 0]);
        assert_eq!(owners.works("b", "p", 8), None);
        assert!(owners.works("b", "p", 7).is_some());
        assert!(owners.works("a", "q", 1).is_some());
    }

    #[test]
    fn stopped_worker_owns_nothing_and_may_end_one_piece_of_work() {
        let mut owners = Owners::default();
        owners.own("a", "p", 5);
        owners.stopped("a");
        assert_eq!(owners.own("b", "p", 7), [""; 0]);
        // These lines were under way.
        assert_eq!(owners.own("a", "q", 6), [""; 0]);
        assert_eq!(owners.works("a", "p", 5), None);
        owners.continues("a");
        assert_eq!(owners.works("a", "p", 5), None, "it looked before the stop");
        assert!(owners.works("a", "p", 5).is_some());
        assert_eq!(owners.free("a", "q"), None);
        assert_eq!(owners.now(), BTreeMap::from([("p".into(), "b".into())]));
    }
}
