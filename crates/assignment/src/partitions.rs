//! The partitions of an assignment.

use std::collections::BTreeMap;
use std::sync::Arc;

use zookeeper_recipes_core::InvalidInput;

use crate::names::{NO_ZONE, problem_of_partition, problem_of_zone};
use crate::pieces::Unreadable;
use crate::plan::PlannedPartition;

/// The most partitions of an assignment.
const MOST: usize = 100_000;

/// The names of the partitions, with their weights and zones.
///
/// ```
/// use zookeeper_recipes_assignment::Partitions;
///
/// let queues = Partitions::numbered(64);
/// let tenants = Partitions::named(["acme", "globex"]).weight("acme", 5).zone("globex", "eu");
/// assert_eq!((queues.len(), tenants.len()), (64, 2));
/// ```
///
/// A mistake in the names is reported where the partitions are used, as
/// [`InvalidInput`](crate::InvalidInput):
///
/// * no partition, or more than 100,000;
/// * the same name twice;
/// * a name that is no segment of a path, such as one with a `/`, or that is longer than 200 bytes;
/// * a weight of 0, or a weight or a zone of a partition that is not named;
/// * a zone that is empty, or has a space or a control character in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    all: Arc<BTreeMap<String, PlannedPartition>>,
    /// The first mistake.
    mistake: Option<InvalidInput>,
}

impl Partitions {
    /// The partitions `0`, `1`, and so on.
    pub fn numbered(count: usize) -> Partitions {
        // One more than the limit is enough for the error.
        Partitions::named((0..count.min(MOST + 1)).map(|number| number.to_string()))
    }

    /// The partitions of these names.
    pub fn named(names: impl IntoIterator<Item = impl Into<String>>) -> Partitions {
        let (mut all, mut mistake) = (BTreeMap::new(), None);
        for name in names {
            let name: String = name.into();
            let problem = match all.len() < MOST {
                true => problem_of_partition(&name),
                false => Some(format!("is one more than {MOST} partitions")),
            };
            let default = PlannedPartition::default();
            let twice = || "is the name of two partitions".to_owned();
            let problem = problem.or_else(|| all.insert(name.clone(), default).map(|_| twice()));
            if let Some(problem) = problem {
                mistake = mistake.or(Some(InvalidInput::new("partition", name, problem)));
            }
            if all.len() >= MOST && mistake.is_some() {
                break;
            }
        }
        if all.is_empty() && mistake.is_none() {
            mistake = Some(InvalidInput::new("number of partitions", "0", "is too few"));
        }
        Partitions {
            all: Arc::new(all),
            mistake,
        }
    }

    /// Sets the share of the load that a partition is. 1 by default.
    pub fn weight(self, partition: &str, weight: u32) -> Partitions {
        let problem = (weight == 0).then(|| "must not have the weight 0".to_owned());
        self.set(partition, problem, |it| it.weight = weight)
    }

    /// Sets the zone whose workers a partition prefers.
    ///
    /// The partition goes to a worker of another zone if its own has none.
    pub fn zone(self, partition: &str, zone: &str) -> Partitions {
        let problem = problem_of_zone(zone);
        self.set(partition, problem, |it| it.zone = Some(zone.to_owned()))
    }

    fn set(
        mut self,
        partition: &str,
        problem: Option<String>,
        set: impl FnOnce(&mut PlannedPartition),
    ) -> Partitions {
        let problem = match Arc::make_mut(&mut self.all).get_mut(partition) {
            Some(found) => {
                set(found);
                problem
            }
            None => Some("has a weight or a zone, and is not named".to_owned()),
        };
        if let Some(problem) = problem {
            let mistake = InvalidInput::new("partition", partition, problem);
            self.mistake.get_or_insert(mistake);
        }
        self
    }

    /// The number of partitions.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn planned(&self) -> &Arc<BTreeMap<String, PlannedPartition>> {
        &self.all
    }

    /// The partitions, unless there is a mistake in them.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        self.mistake.clone().map_or(Ok(()), Err)
    }

    /// The lines of the record, in pieces of at most so many bytes.
    pub(crate) fn pieces(&self, bytes: usize) -> Vec<String> {
        let mut pieces = vec![String::new()];
        for (name, partition) in &*self.all {
            let zone = partition.zone.as_deref().unwrap_or(NO_ZONE);
            let line = format!("{} {zone} {name}\n", partition.weight);
            match pieces.last_mut() {
                Some(last) if last.len() + line.len() <= bytes => *last += &line,
                _ => pieces.push(line),
            }
        }
        pieces
    }

    /// Reads the lines of the pieces. `Err` has the index of a piece, and what is wrong with it.
    ///
    /// The first piece has a line before these.
    pub(crate) fn parse(pieces: &[impl AsRef<str>]) -> Result<Partitions, (usize, Unreadable)> {
        let mut all = BTreeMap::new();
        for (index, piece) in pieces.iter().enumerate() {
            let first = if index == 0 { 2 } else { 1 };
            for (number, line) in (first..).zip(piece.as_ref().lines()) {
                let read = parse_line(line).and_then(|(name, partition)| {
                    let twice = all.insert(name.to_owned(), partition).is_some();
                    match twice {
                        true => Err(format!("{name:?} is the name of two partitions")),
                        false if all.len() > MOST => Err(format!("is one more than {MOST}")),
                        false => Ok(()),
                    }
                });
                read.map_err(|problem| (index, Unreadable::Line(number, problem)))?;
            }
        }
        if all.is_empty() {
            return Err((0, Unreadable::Line(2, "no partition is named".to_owned())));
        }
        Ok(Partitions {
            all: Arc::new(all),
            mistake: None,
        })
    }
}

fn parse_line(line: &str) -> Result<(&str, PlannedPartition), String> {
    let mut words = line.splitn(3, ' ');
    let (Some(weight), Some(zone), Some(name)) = (words.next(), words.next(), words.next()) else {
        return Err("is not a weight, a zone and a name".to_owned());
    };
    let weight = weight.parse().ok().filter(|weight| *weight > 0);
    let weight = weight.ok_or_else(|| "has no weight above 0".to_owned())?;
    let zone = Some(zone).filter(|zone| *zone != NO_ZONE);
    let of_name = problem_of_partition(name).map(|problem| format!("{name:?} {problem}"));
    match of_name.or_else(|| zone.and_then(problem_of_zone)) {
        Some(problem) => Err(problem),
        None => {
            let (zone, worker) = (zone.map(str::to_owned), None);
            let partition = PlannedPartition {
                weight,
                zone,
                worker,
            };
            Ok((name, partition))
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/partitions.rs"]
mod tests;
