//! The plans of all workers, as they are at the server, and the writes that change them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;
use zookeeper_recipes_core::{Acl, CreateMode, Error, GuardedTransaction, NodePath, Operation};
use zookeeper_recipes_election::Term;

use crate::children::Children;
use crate::next_plans::WorkerPlan;
use crate::pieces::{self, Lines, PLAN, Piece, Record, Unreadable, arrange, complete, parse_name};
use crate::recorded::unreadable;

/// A transaction writes at most so many pieces, each of little more than 4 KiB.
const AT_ONCE: usize = 32;

/// The plans at the server.
#[derive(Debug)]
pub(crate) struct Plans {
    directory: NodePath,
    /// The names of all znodes.
    names: BTreeSet<String>,
    /// The pieces of each plan that is complete.
    plans: BTreeMap<String, Vec<Piece>>,
}

impl Plans {
    pub(crate) fn none(directory: &NodePath) -> Plans {
        Plans {
            directory: directory.clone(),
            names: BTreeSet::new(),
            plans: BTreeMap::new(),
        }
    }

    /// Fails if a plan is of another version. Any other plan that cannot be read is written anew.
    pub(crate) fn new(directory: &NodePath, children: &Children) -> Result<Plans, Error> {
        let mut plans = Plans::none(directory);
        let mut found = Vec::new();
        for (name, data) in children {
            match Piece::parse(PLAN, data) {
                Ok(piece) => found.push((name.clone(), piece)),
                Err(problem @ Unreadable::Version(_)) => {
                    return Err(unreadable(&format!("{directory}/{name}"), &problem));
                }
                Err(Unreadable::Line(..) | Unreadable::Other) => {}
            }
        }
        plans.names = children.keys().cloned().collect();
        plans.plans = complete(found);
        Ok(plans)
    }

    /// The plan of each worker.
    pub(crate) fn all(&self) -> BTreeMap<String, WorkerPlan> {
        let plan = |pieces: &Vec<Piece>| WorkerPlan {
            note: pieces[0].note.clone(),
            lines: pieces.iter().flat_map(|it| it.lines.clone()).collect(),
        };
        let all = self.plans.iter();
        all.map(|(worker, it)| (worker.clone(), plan(it))).collect()
    }

    /// Notes these plans, and returns the operations that write them.
    pub(crate) fn change(
        &mut self,
        acl: &[Acl],
        plans: BTreeMap<String, WorkerPlan>,
    ) -> Vec<Operation> {
        let mut operations = Vec::new();
        let is_over = |name: &String| {
            let owner = parse_name(name).map(|(owner, _)| owner);
            owner.is_none_or(|owner| !plans.contains_key(owner))
        };
        for name in self.names.iter().filter(|name| is_over(name)) {
            operations.push(Operation::delete(format!("{}/{name}", self.directory)));
        }
        self.names.retain(|name| !is_over(name));
        self.plans.retain(|worker, _| plans.contains_key(worker));
        for (worker, WorkerPlan { note, lines }) in plans {
            let old = self.plans.remove(&worker).unwrap_or_default();
            let new = arrange(&old, &note, lines);
            for (index, piece) in new.iter().enumerate() {
                if old.get(index) == Some(piece) {
                    continue;
                }
                let name = pieces::name(&worker, index);
                let (path, data) = (format!("{}/{name}", self.directory), piece.text(PLAN));
                operations.push(match self.names.insert(name) {
                    true => Operation::create(path, data, CreateMode::Persistent, acl),
                    false => Operation::set_data(path, data),
                });
            }
            self.plans.insert(worker, new);
        }
        operations
    }
}

/// The plan of one worker, by its pieces.
pub(crate) fn own_plan(directory: &NodePath, worker: &str, found: &Children) -> Record<Lines> {
    let mut pieces = Vec::new();
    for (name, data) in found {
        match Piece::parse(PLAN, data) {
            Ok(piece) => pieces.push((name.clone(), piece)),
            Err(problem) => return Record::Unreadable(format!("{directory}/{name}"), problem),
        }
    }
    complete(pieces)
        .remove(worker)
        .map_or(Record::Missing, |pieces| {
            let of = pieces[0].of.max(1);
            let lines = pieces.into_iter().take(of).flat_map(|it| it.lines);
            Record::Found(lines.collect())
        })
}

/// Writes changes of the plans, under the leader's hold.
///
/// After an error the plans must be read again.
///
/// Returns the longest time that a transaction took.
pub(crate) async fn write(term: &Term, operations: Vec<Operation>) -> Result<Duration, Error> {
    let mut longest = Duration::ZERO;
    let mut operations = operations.into_iter();
    while operations.len() > 0 {
        let some = operations.by_ref().take(AT_ONCE);
        let transaction = some.fold(term.transaction(), GuardedTransaction::operation);
        let began = Instant::now();
        transaction.commit().await?;
        longest = longest.max(began.elapsed());
    }
    Ok(longest)
}
