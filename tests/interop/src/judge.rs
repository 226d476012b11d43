//! Judges what contenders of every language report.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};

use crate::owners::{Owned, Owners};

/// More than any number of contenders that share.
const EVERYTHING: u64 = 1_000;

/// The resource of contenders, whose lines name none.
const QUEUE: &str = "the queue";

/// What contenders have reported, and what was wrong.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The names of all contenders that came in, in that order.
    pub entries: Vec<String>,
    /// The names of the contenders that are inside now.
    pub inside: Vec<String>,
    /// How many write locks have become read locks.
    pub downgrades: usize,
    /// The contenders that each contender has found inside when it came in.
    pub companions: BTreeMap<String, BTreeSet<String>>,
    /// The contenders that each contender has listed.
    pub seen: BTreeMap<String, BTreeSet<String>>,
    /// The resources that are owned now, each with its worker.
    pub owners: BTreeSet<(String, String)>,
    /// The resources that a worker owned when it was stopped, until it reports the end.
    pub lapsed: BTreeSet<(String, String)>,
    /// How often a worker has come to own each resource.
    pub grants: BTreeMap<String, usize>,
    /// How many pieces of work were done on each resource.
    pub works: BTreeMap<String, usize>,
    /// The violations, in the order in which they happened.
    pub violations: Vec<String>,
}

/// Judges holds by the lines that report them.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    report: Report,
    owners: Owners,
    /// The znodes of the contenders inside that exclude all others.
    exclusive: BTreeMap<String, String>,
}

impl Judge {
    pub(crate) fn report(&self) -> Report {
        Report {
            owners: self.owners.now(),
            lapsed: self.owners.lapsed(),
            ..self.report.clone()
        }
    }

    pub(crate) fn owners(&mut self) -> &mut Owners {
        &mut self.owners
    }

    /// Judges a line that a contender has sent. The crate's first page lists the lines.
    pub(crate) fn hear(&mut self, line: &str) -> anyhow::Result<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.as_slice() {
            ["enter", name, kind, znode] => self.enter(name, kind, znode)?,
            ["downgrade", name] => match self.exclusive.remove(name) {
                Some(znode) => {
                    self.report.downgrades += 1;
                    self.owners.free(name, QUEUE);
                    self.own(name, QUEUE, &znode, shared(&znode)?);
                }
                None => self.violated(format!("{name} downgraded what it did not hold")),
            },
            ["leave", name] => {
                self.report.inside.retain(|inside| inside != name);
                self.exclusive.remove(name);
                let found = self.owners.free(name, QUEUE);
                self.report.violations.extend(found);
            }
            ["sees", name, ref contenders @ ..] => {
                let seen = self.report.seen.entry(name.to_owned()).or_default();
                seen.extend(contenders.iter().map(|&contender| contender.to_owned()));
            }
            ["own", worker, resource, token, weight, capacity] => {
                let owned = Owned {
                    token: token.parse()?,
                    weight: weight.parse()?,
                    capacity: capacity.parse()?,
                };
                self.own(worker, resource, resource, owned);
                *self.report.grants.entry(resource.to_owned()).or_default() += 1;
            }
            ["works", worker, resource, token] => {
                let found = self.owners.works(worker, resource, token.parse()?);
                self.report.violations.extend(found);
                *self.report.works.entry(resource.to_owned()).or_default() += 1;
            }
            ["free", worker, resource] => {
                let found = self.owners.free(worker, resource);
                self.report.violations.extend(found);
            }
            _ => bail!("not understood: {line:?}"),
        }
        Ok(())
    }

    /// Notes that the process of a contender or of a worker has ended.
    pub(crate) fn gone(&mut self, name: &str) {
        self.owners.gone(name);
        self.report.inside.retain(|inside| inside != name);
        self.exclusive.remove(name);
    }

    fn enter(&mut self, name: &str, kind: &str, znode: &str) -> anyhow::Result<()> {
        let mut owned = shared(znode)?;
        match kind {
            "exclusive" => owned.weight = EVERYTHING,
            "shared" => {}
            _ => bail!("neither exclusive nor shared: {kind:?}"),
        }
        let inside = self.report.inside.iter().cloned();
        let companions = self.report.companions.entry(name.to_owned());
        companions.or_default().extend(inside);
        self.own(name, QUEUE, znode, owned);
        if owned.weight == EVERYTHING {
            self.exclusive.insert(name.to_owned(), znode.to_owned());
        }
        self.report.entries.push(name.to_owned());
        self.report.inside.push(name.to_owned());
        Ok(())
    }

    fn own(&mut self, worker: &str, resource: &str, path: &str, owned: Owned) {
        let found = self.owners.own(worker, resource, path, owned);
        if !found.is_empty() {
            self.violated(found.join("; "));
        }
    }

    fn violated(&mut self, violation: String) {
        self.report.violations.push(violation);
    }
}

/// The hold of a contender that shares.
///
/// The number at the end of its znode's name is its token.
fn shared(znode: &str) -> anyhow::Result<Owned> {
    let digits = znode.get(znode.len().saturating_sub(10)..);
    let sequence = digits.and_then(|digits| digits.parse::<i32>().ok());
    let sequence = sequence.with_context(|| format!("no sequential znode: {znode:?}"))?;
    Ok(Owned {
        token: i64::from(sequence),
        weight: 1,
        capacity: EVERYTHING,
    })
}

#[cfg(test)]
#[path = "../tests/unit/judge.rs"]
mod tests;
