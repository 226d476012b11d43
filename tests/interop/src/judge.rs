//! Who may be inside with whom, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

/// With whom a contender may be inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// With nobody.
    Exclusive,
    /// With others that share.
    Shared,
}

/// A contender that has come in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The contender's name.
    pub name: String,
    /// With whom it may be inside.
    pub kind: Kind,
    /// The znode that it holds.
    pub znode: String,
}

/// What the judge has seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// All who came in, in that order.
    pub entries: Vec<Entry>,
    /// Who is inside now.
    pub inside: Vec<Entry>,
    /// How many write locks have become read locks.
    pub downgrades: usize,
    /// Whom each contender has found inside when it came in.
    pub companions: BTreeMap<String, BTreeSet<String>>,
    /// Whom each contender has listed.
    pub seen: BTreeMap<String, BTreeSet<String>>,
    /// Everything that should not have been, as it happened.
    pub violations: Vec<String>,
}

/// Decides on what contenders tell.
#[derive(Debug, Default)]
pub struct Judge {
    report: Report,
    newest: Option<i32>,
    newest_exclusive: Option<i32>,
}

impl Judge {
    /// What it has seen up to now.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Judges a line that a contender has sent (see the crate's first page); the answer is `ok`,
    /// or the violation.
    ///
    /// # Errors
    ///
    /// When the line cannot be understood.
    pub fn hear(&mut self, line: &str) -> anyhow::Result<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let violation = match *words.as_slice() {
            ["enter", name, kind, znode] => {
                let kind = match kind {
                    "exclusive" => Kind::Exclusive,
                    "shared" => Kind::Shared,
                    _ => bail!("neither exclusive nor shared: {line:?}"),
                };
                self.enter(name, kind, znode)?
            }
            ["downgrade", name] => self.downgrade(name),
            ["leave", name] => self.leave(name),
            ["sees", name, ref contenders @ ..] => {
                let seen = self.report.seen.entry(name.to_owned()).or_default();
                seen.extend(contenders.iter().map(|&contender| contender.to_owned()));
                None
            }
            _ => bail!("not understood: {line:?}"),
        };
        Ok(match violation {
            None => "ok".to_owned(),
            Some(violation) => {
                self.report.violations.push(violation.clone());
                violation
            }
        })
    }

    /// The contender's process is gone, and it is no more inside.
    pub fn gone(&mut self, name: &str) {
        self.report.inside.retain(|entry| entry.name != name);
    }

    fn enter(&mut self, name: &str, kind: Kind, znode: &str) -> anyhow::Result<Option<String>> {
        let number = sequence(znode)?;
        let entry = Entry {
            name: name.to_owned(),
            kind,
            znode: znode.to_owned(),
        };
        let overlaps = self.report.inside.iter().any(|other| {
            entry.kind == Kind::Exclusive || other.kind == Kind::Exclusive || other.name == name
        });
        let before = match kind {
            Kind::Exclusive => self.newest,
            Kind::Shared => self.newest_exclusive,
        };
        let violation = if overlaps {
            Some(format!("{entry:?} came in beside {:?}", self.report.inside))
        } else if before.is_some_and(|before| before >= number) {
            let before = self.report.entries.last();
            Some(format!("{entry:?} came in too late, after {before:?}"))
        } else {
            None
        };
        self.newest = self.newest.max(Some(number));
        if kind == Kind::Exclusive {
            self.newest_exclusive = self.newest_exclusive.max(Some(number));
        }
        let companions = self.report.companions.entry(name.to_owned()).or_default();
        companions.extend(self.report.inside.iter().map(|other| other.name.clone()));
        self.report.entries.push(entry.clone());
        self.report.inside.push(entry);
        Ok(violation)
    }

    fn downgrade(&mut self, name: &str) -> Option<String> {
        let inside = &mut self.report.inside;
        match inside.iter_mut().find(|entry| entry.name == name) {
            Some(entry) if entry.kind == Kind::Exclusive => {
                entry.kind = Kind::Shared;
                self.report.downgrades += 1;
                None
            }
            other => Some(format!("{name} downgraded what it did not hold: {other:?}")),
        }
    }

    fn leave(&mut self, name: &str) -> Option<String> {
        let inside = self.report.inside.len();
        self.gone(name);
        let left = self.report.inside.len() < inside;
        (!left).then(|| format!("{name} left and was not inside"))
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

    /// What the judge says to each of these.
    fn violations(lines: &[&str]) -> Vec<String> {
        let mut judge = Judge::default();
        for line in lines {
            judge.hear(line).expect("a line that can be understood");
        }
        judge.report.violations
    }

    #[test]
    fn two_exclusive_ones_inside_are_a_violation_that_names_both_znodes() {
        let enter = "enter a exclusive x-0000000001";
        assert!(violations(&[enter, "leave a", "enter b exclusive y-0000000002"]).is_empty());
        let said = violations(&[enter, "enter b exclusive y-0000000002"]);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("x-0000000001") && said[0].contains("y-0000000002"));
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        let reader = "enter a shared r-0000000001";
        assert!(violations(&[reader, "enter b shared r-0000000002"]).is_empty());
        assert_eq!(
            violations(&[reader, "enter b exclusive w-0000000002"]).len(),
            1
        );
        let writer = "enter a exclusive w-0000000001";
        assert_eq!(
            violations(&[writer, "enter b shared r-0000000002"]).len(),
            1
        );
        let downgrade = "downgrade a";
        assert!(violations(&[writer, downgrade, "enter b shared r-0000000002"]).is_empty());
        assert_eq!(
            violations(&[writer, downgrade, "enter b exclusive w-0000000002"]).len(),
            1
        );
    }

    #[test]
    fn coming_in_out_of_order_is_a_violation() {
        let first = ["enter a exclusive x-0000000007", "leave a"];
        let then = |line| violations(&[first[0], first[1], line]).len();
        assert_eq!(then("enter b exclusive x-0000000008"), 0);
        assert_eq!(then("enter b exclusive x-0000000006"), 1);
        assert_eq!(then("enter b shared x-0000000006"), 1);
    }

    #[test]
    fn readers_between_two_writers_have_no_order() {
        let lines = [
            "enter a shared x-0000000003",
            "enter b shared x-0000000002",
            "leave a",
            "leave b",
        ];
        assert!(violations(&lines).is_empty());
        let writer = "enter c exclusive x-0000000001";
        assert_eq!(violations(&[lines.as_slice(), &[writer]].concat()).len(), 1);
    }

    #[test]
    fn leaving_or_downgrading_what_was_not_held_is_a_violation() {
        assert_eq!(violations(&["leave a"]).len(), 1);
        assert_eq!(violations(&["downgrade a"]).len(), 1);
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
