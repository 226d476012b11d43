//! The plans of all workers, as they are at the server, and the writes that change them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Acl, CreateMode, Error, NodePath, Operation, ServerError};
use zookeeper_recipes_election::Term;

use crate::children::Children;
use crate::next_plans::WorkerPlan;
use crate::own_plan::PLAN;
use crate::pieces::{self, Lines, Piece, Unreadable, arrange, complete, parse_name};

/// A transaction has at most so many bytes of data, and so many operations.
const MOST_BYTES: usize = 96 * 1024;
const MOST_OPERATIONS: usize = 128;

/// The plans at the server.
#[derive(Debug)]
pub(crate) struct Plans {
    directory: NodePath,
    /// The names of all znodes.
    names: BTreeSet<String>,
    /// The note and the pieces of each plan that is complete.
    plans: BTreeMap<String, (String, Vec<Lines>)>,
}

/// Why the plans cannot be used.
#[derive(Debug)]
pub(crate) enum NotRead {
    Server(ServerError),
    /// The path of a plan of another version.
    OtherVersion(String, Unreadable),
}

impl Plans {
    pub(crate) async fn read(
        server: &dyn ServerSession,
        directory: &NodePath,
    ) -> Result<Plans, NotRead> {
        let names = server.list(directory.as_str()).await;
        let names = names.map_err(NotRead::Server)?;
        let path = |name: &String| format!("{directory}/{name}");
        let paths: Vec<String> = names.iter().map(path).collect();
        let nodes = match paths.is_empty() {
            true => Vec::new(),
            false => server.get_each(&paths).await.map_err(NotRead::Server)?,
        };
        let (mut found, mut there) = (Vec::new(), BTreeSet::new());
        for ((name, path), node) in names.into_iter().zip(paths).zip(nodes) {
            let Some((data, _)) = node else {
                continue;
            };
            match Piece::parse(PLAN, &data) {
                Ok(piece) => found.push((name.clone(), piece)),
                Err(problem @ Unreadable::Version(_)) => {
                    return Err(NotRead::OtherVersion(path, problem));
                }
                // A worker keeps what it has while its plan cannot be read.
                Err(Unreadable::Line(..) | Unreadable::Other) => {}
            }
            there.insert(name);
        }
        Ok(Plans {
            directory: directory.clone(),
            names: there,
            plans: complete(found),
        })
    }

    /// The plan of each worker.
    pub(crate) fn all(&self) -> BTreeMap<String, WorkerPlan> {
        let plan = |(note, pieces): &(String, Vec<Lines>)| WorkerPlan {
            note: note.clone(),
            lines: pieces.iter().flatten().map(own).collect(),
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
            let path = format!("{}/{name}", self.directory);
            let version = None;
            operations.push(Operation::Delete { path, version });
        }
        self.names.retain(|name| !is_over(name));
        self.plans.retain(|worker, _| plans.contains_key(worker));
        for (worker, WorkerPlan { note, lines }) in plans {
            let (old_note, old) = self.plans.remove(&worker).unwrap_or_default();
            let new = arrange(&old, lines, String::len);
            for (index, lines) in new.iter().enumerate() {
                let name = pieces::name(&worker, index);
                let is_head_same = index > 0 || (old.len() == new.len() && old_note == note);
                if is_head_same && old.get(index) == Some(lines) {
                    continue;
                }
                let piece = Piece {
                    of: new.len(),
                    note: note.clone(),
                    lines: lines.clone(),
                };
                let path = format!("{}/{name}", self.directory);
                let data = piece.text(PLAN);
                operations.push(match self.names.insert(name) {
                    true => Operation::create(path, data, CreateMode::Persistent, acl),
                    false => Operation::set_data(path, data),
                });
            }
            self.plans.insert(worker, (note, new));
        }
        operations
    }
}

/// Writes changes of the plans, under the leader's hold.
///
/// After an error the plans must be read again.
///
/// Returns the longest time that a transaction took.
pub(crate) async fn write(term: &Term, operations: Vec<Operation>) -> Result<Duration, Error> {
    let mut longest = Duration::ZERO;
    let mut operations = operations.into_iter().peekable();
    while operations.peek().is_some() {
        let (mut transaction, mut bytes, mut number) = (term.transaction(), 0, 0);
        while let Some(next) = operations.peek() {
            bytes += size(next);
            number += 1;
            if number > 1 && (bytes > MOST_BYTES || number > MOST_OPERATIONS) {
                break;
            }
            if let Some(next) = operations.next() {
                transaction = transaction.operation(next);
            }
        }
        let began = Instant::now();
        transaction.commit().await?;
        longest = longest.max(began.elapsed());
    }
    Ok(longest)
}

/// The plan of each worker, of the plans that are complete and can be read.
pub(crate) fn plans_of(children: &Children) -> BTreeMap<String, WorkerPlan> {
    let pieces = children.iter();
    let pieces =
        pieces.filter_map(|(name, data)| Some((name.clone(), Piece::parse(PLAN, data).ok()?)));
    let whole = complete(pieces).into_iter();
    let plan = |(worker, (note, pieces)): (String, (String, Vec<Lines>))| {
        let lines = pieces.into_iter().flatten().collect();
        (worker, WorkerPlan { note, lines })
    };
    whole.map(plan).collect()
}

fn own((partition, word): (&String, &String)) -> (String, String) {
    (partition.clone(), word.clone())
}

fn size(operation: &Operation) -> usize {
    match operation {
        Operation::Create { data, .. } | Operation::SetData { data, .. } => data.len(),
        Operation::Check { .. } | Operation::Delete { .. } => 0,
    }
}
