//! Judges what contenders of every language report.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use zookeeper_recipes_core::FencingToken;
use zookeeper_recipes_testkit::history::History;

use crate::owners::{Owned, Owners};

/// More than any number of contenders that share.
const EVERYTHING: u64 = 1_000;

/// With whom a contender may be inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With no other contender.
    Exclusive,
    /// With other contenders that share.
    Shared,
}

/// A contender that has come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The contender's name.
    pub name: String,
    /// With whom it may be inside.
    pub kind: Kind,
    /// The znode that it holds.
    pub znode: String,
}

/// What contenders have reported, and what was wrong.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// All contenders that came in, in that order.
    pub entries: Vec<Entry>,
    /// The contenders that are inside now.
    pub inside: Vec<Entry>,
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

/// A [`History`] of what contenders report by lines.
#[derive(Debug)]
pub(crate) struct Judge {
    report: Report,
    history: History,
    /// The number of each hold in the history, by the contender's name.
    numbers: BTreeMap<String, u64>,
    owners: Owners,
}

impl Default for Judge {
    fn default() -> Judge {
        Judge {
            report: Report::default(),
            history: History::new(EVERYTHING),
            numbers: BTreeMap::new(),
            owners: Owners::default(),
        }
    }
}

impl Judge {
    /// The report up to now.
    pub(crate) fn report(&self) -> &Report {
        &self.report
    }

    /// Judges a line that a contender has sent. The crate's first page lists the lines.
    ///
    /// # Errors
    ///
    /// If the line cannot be understood.
    pub(crate) fn hear(&mut self, line: &str) -> anyhow::Result<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.as_slice() {
            ["enter", name, kind, znode] => {
                let kind = match kind {
                    "exclusive" => Kind::Exclusive,
                    "shared" => Kind::Shared,
                    _ => bail!("neither exclusive nor shared: {line:?}"),
                };
                let name = name.to_owned();
                let znode = znode.to_owned();
                self.enter(Entry { name, kind, znode })?;
            }
            ["downgrade", name] => self.downgrade(name)?,
            ["leave", name] => {
                if !self.gone(name) {
                    self.violated(format!("{name} left and was not inside"));
                }
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
                let found = self.owners.own(worker, resource, owned);
                self.report.violations.extend(found);
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
        self.report.owners = self.owners.now();
        self.report.lapsed = self.owners.lapsed();
        Ok(())
    }

    /// Notes that a contender is no longer inside. The call returns whether the contender was
    /// inside.
    pub(crate) fn gone(&mut self, name: &str) -> bool {
        self.change_owners(|owners| owners.gone(name));
        self.report.inside.retain(|entry| entry.name != name);
        let number = self.numbers.remove(name);
        number.map(|number| self.history.letting_go(number));
        number.is_some()
    }

    /// Changes who owns the resources.
    pub(crate) fn change_owners(&mut self, change: impl FnOnce(&mut Owners)) {
        change(&mut self.owners);
        self.report.owners = self.owners.now();
        self.report.lapsed = self.owners.lapsed();
    }

    fn enter(&mut self, entry: Entry) -> anyhow::Result<()> {
        let companions = self.report.companions.entry(entry.name.clone());
        let inside = self.report.inside.iter().map(|other| other.name.clone());
        companions.or_default().extend(inside);
        self.hold(&entry)?;
        self.report.entries.push(entry.clone());
        self.report.inside.push(entry);
        Ok(())
    }

    /// Reports a hold to the history.
    fn hold(&mut self, entry: &Entry) -> anyhow::Result<()> {
        let Entry { name, kind, znode } = entry;
        let weight = match kind {
            Kind::Exclusive => EVERYTHING,
            Kind::Shared => 1,
        };
        let token = FencingToken::from(i64::from(sequence(znode)?));
        let (number, found) = self.history.granted_elsewhere(name, weight, token, znode);
        if self.numbers.insert(name.clone(), number).is_some() {
            self.violated(format!("{name} came in, and was inside"));
        }
        if !found.is_empty() {
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            self.violated(found.join("; "));
        }
        Ok(())
    }

    fn downgrade(&mut self, name: &str) -> anyhow::Result<()> {
        let mut inside = self.report.inside.iter_mut();
        let Some(entry) = inside.find(|it| it.name == name && it.kind == Kind::Exclusive) else {
            self.violated(format!("{name} downgraded what it did not hold"));
            return Ok(());
        };
        entry.kind = Kind::Shared;
        let entry = entry.clone();
        self.report.downgrades += 1;
        let number = self.numbers.remove(name);
        number.map(|number| self.history.letting_go(number));
        self.hold(&entry)
    }

    fn violated(&mut self, violation: String) {
        self.report.violations.push(violation);
    }
}

/// The number at the end of a znode's name.
fn sequence(znode: &str) -> anyhow::Result<i32> {
    let digits = znode.len().saturating_sub(10);
    znode
        .get(digits..)
        .and_then(|digits| digits.parse().ok())
        .with_context(|| format!("no sequential znode: {znode:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The violations that the judge finds in these lines.
    fn violations(lines: &[&str]) -> Vec<String> {
        let mut judge = Judge::default();
        for line in lines {
            judge.hear(line).expect("a line that can be understood");
        }
        judge.report.violations
    }

    #[test]
    fn what_contenders_report_is_judged_by_its_kind_and_its_znode() {
        let reader = "enter a shared r-0000000003";
        let writer = "enter a exclusive w-0000000003";
        let next_writer = "enter b exclusive w-0000000004";
        for (lines, found) in [
            ([writer, "leave a", next_writer], None),
            (
                [writer, "leave a", "enter b shared r-0000000002"],
                Some("tokens grow"),
            ),
            ([reader, "leave a", "enter b shared r-0000000002"], None),
            (
                [reader, "leave a", "enter b exclusive w-0000000002"],
                Some("tokens grow"),
            ),
            ([reader, "enter b shared r-0000000002", "leave b"], None),
            ([reader, next_writer, "leave b"], Some("a (r-0000000003)")),
            (
                [writer, next_writer, "leave b"],
                Some("b (w-0000000004) held beside a (w-0000000003)"),
            ),
            ([writer, "downgrade a", "enter b shared r-0000000004"], None),
            ([writer, "downgrade a", next_writer], Some("held beside a")),
            ([reader, reader, "leave a"], Some("was inside")),
            ([reader, "downgrade a", "leave a"], Some("did not hold")),
            ([reader, "leave a", "leave a"], Some("was not inside")),
        ] {
            let violations = violations(&lines);
            assert_eq!(
                violations.len(),
                usize::from(found.is_some()),
                "{lines:?}: {violations:?}"
            );
            assert!(
                violations
                    .iter()
                    .all(|it| it.contains(found.unwrap_or_default())),
                "{violations:?}"
            );
        }
    }

    #[test]
    fn line_that_makes_no_sense_is_an_error_that_quotes_it() {
        for line in [
            "",
            "enter a",
            "enter a both x-0000000001",
            "enter a shared nonsense",
        ] {
            let error = Judge::default().hear(line).expect_err("no sense");
            assert!(error.to_string().contains('"'), "{error}");
        }
    }
}
