//! Judges what processes report of their holds: of a recipe, or of a partition.

use std::collections::{BTreeMap, BTreeSet};

use zookeeper_recipes_core::FencingToken;
use zookeeper_recipes_testkit::history::History;

/// A resource and a worker.
type Pair = (String, String);

/// A hold, as its worker reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owned {
    pub(crate) token: i64,
    pub(crate) weight: u64,
    /// How much all that own the resource at once may weigh.
    pub(crate) capacity: u64,
}

/// A hold from before a stop, whose end is not yet reported.
#[derive(Debug)]
struct Lapsed {
    token: i64,
    /// True if a line of work has come since the worker continued.
    worked: bool,
}

impl Lapsed {
    fn new(token: i64) -> Lapsed {
        let worked = false;
        Lapsed { token, worked }
    }
}

/// The owners of resources, as the workers report them.
///
/// A worker that is stopped cannot report that it has lost its holds, and does no work under them. So
/// the test reports the stop, and the worker owns nothing from then on. It may have looked at its hold
/// just before the stop. So one line of work on each resource may come after it, or one line that
/// reports an older hold than the newest one of that resource at the end of the stop.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    histories: BTreeMap<String, History>,
    newest: BTreeMap<String, i64>,
    /// The number in the history and the token of each hold.
    owned: BTreeMap<Pair, (u64, i64)>,
    stopped: BTreeSet<String>,
    /// The holds that a worker had when it was stopped.
    lapsed: BTreeMap<Pair, Lapsed>,
    /// The workers that have continued, with the newest token of each resource at that moment, until
    /// the worker reports a hold of the resource.
    continued: BTreeMap<String, BTreeMap<String, i64>>,
}

impl Owners {
    /// The resources that are owned, each with its worker.
    pub(crate) fn now(&self) -> BTreeSet<(String, String)> {
        self.owned.keys().cloned().collect()
    }

    /// The holds from before a stop whose end is not yet reported.
    pub(crate) fn lapsed(&self) -> BTreeSet<(String, String)> {
        self.lapsed.keys().cloned().collect()
    }

    /// A worker owns a resource from now on, by the znode of this path. Returns the broken promises.
    pub(crate) fn own(
        &mut self,
        worker: &str,
        resource: &str,
        path: &str,
        owned: Owned,
    ) -> Vec<String> {
        let pair = (resource.to_owned(), worker.to_owned());
        let Owned {
            token,
            weight,
            capacity,
        } = owned;
        if self.stopped.contains(worker) || self.is_late(worker, resource, token) {
            self.lapsed.insert(pair, Lapsed::new(token));
            return Vec::new();
        }
        let newest = self.newest.entry(resource.to_owned()).or_insert(token);
        *newest = token.max(*newest);
        let history = self.histories.entry(resource.to_owned());
        let history = history.or_insert_with(|| History::new(capacity));
        let fencing = FencingToken::from(token);
        let (number, found) = history.granted_elsewhere(worker, weight, fencing, path);
        let mut found: Vec<String> = found.iter().map(ToString::to_string).collect();
        if self.owned.insert(pair, (number, token)).is_some() {
            found.push(format!("{worker} owned {resource}, and owns it again"));
        }
        found
    }

    /// Whether this hold may be from before a stop of the worker.
    fn is_late(&mut self, worker: &str, resource: &str, token: i64) -> bool {
        let newest = self.continued.get_mut(worker);
        let newest = newest.and_then(|newest| newest.remove(resource));
        newest.is_some_and(|newest| token < newest)
    }

    /// A worker works on a resource. Returns the broken promise.
    pub(crate) fn works(&mut self, worker: &str, resource: &str, token: i64) -> Option<String> {
        let pair = (resource.to_owned(), worker.to_owned());
        let now = self.owned.get(&pair).map(|(_, token)| *token);
        if now == Some(token) {
            return None;
        }
        let stopped = self.stopped.contains(worker);
        if let Some(lapsed) = self.lapsed.get_mut(&pair) {
            if lapsed.token == token && !lapsed.worked {
                lapsed.worked = !stopped;
                return None;
            }
        }
        Some(format!(
            "{worker} works on {resource} with the token {token}, and owns it with {now:?}"
        ))
    }

    /// A worker does not own a resource any more. Returns the broken promise.
    pub(crate) fn free(&mut self, worker: &str, resource: &str) -> Option<String> {
        let pair = (resource.to_owned(), worker.to_owned());
        let lapsed = self.lapsed.remove(&pair).is_some();
        match self.owned.remove(&pair) {
            Some((number, _)) => {
                self.let_go(resource, number);
                None
            }
            None if lapsed => None,
            None => Some(format!("{worker} did not own {resource}")),
        }
    }

    /// A worker has ended, or its process has.
    pub(crate) fn gone(&mut self, worker: &str) {
        self.let_all_go(worker);
        self.lapsed.retain(|(_, of), _| of != worker);
        self.stopped.remove(worker);
        self.continued.remove(worker);
    }

    pub(crate) fn stopped(&mut self, worker: &str) {
        self.stopped.insert(worker.to_owned());
        for (pair, token) in self.let_all_go(worker) {
            self.lapsed.insert(pair, Lapsed::new(token));
        }
    }

    /// A worker's process is about to continue.
    pub(crate) fn continues(&mut self, worker: &str) {
        self.stopped.remove(worker);
        let newest = self.newest.clone();
        self.continued.insert(worker.to_owned(), newest);
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

    fn let_go(&mut self, resource: &str, number: u64) {
        if let Some(history) = self.histories.get_mut(resource) {
            history.letting_go(number);
        }
    }
}
