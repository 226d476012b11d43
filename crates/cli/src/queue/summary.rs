//! A queue as one row of the table of all queues.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use zookeeper_recipes_overview::{Mark, Overview, QueueKind, QueueStatus};

use super::row::Row;
use super::table::{age, aligned, elapsed, or_dash};
use crate::addresses::Addresses;

/// The names of the columns.
pub(crate) const COLUMNS: [&str; 7] = [
    "PATH",
    "KIND",
    "HOLDER",
    "HELD",
    "WAITING",
    "OLDEST WAIT",
    "MARKS",
];

/// Who holds in a queue, how many wait, for how long, and what is unusual.
///
/// It has no ages but times, so that it stays right while nothing changes.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// The place of the queue in its overview.
    pub(crate) place: usize,
    pub(crate) path: String,
    pub(crate) kind: QueueKind,
    pub(crate) permits: Option<u32>,
    pub(crate) contenders: usize,
    pub(crate) holders: Option<usize>,
    /// The first holder, and how many others hold.
    pub(crate) holder: String,
    pub(crate) waiting: usize,
    /// When the oldest holder queued, in milliseconds since 1970.
    pub(crate) held_since: Option<i64>,
    /// When the oldest waiter queued, in milliseconds since 1970.
    pub(crate) waits_since: Option<i64>,
    marks: Vec<Mark>,
    pub(crate) is_in_circle: bool,
}

/// The order of the rows. Equal rows are in the order of their paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    #[default]
    Path,
    /// Queues of possible deadlocks first, then those with marks, then the oldest wait.
    ///
    /// The waits of an election do not count.
    Trouble,
    /// The queue that is held for the longest time first.
    Held,
    /// The queue with the most waiters first.
    Waiting,
    /// The queue with the oldest waiter first.
    Oldest,
}

/// How bad it is with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    None,
    /// The overview cannot say all of the queue.
    Unclear,
    /// The queue may be stuck, or may let two hold.
    Wrong,
    /// Sessions wait for each other.
    Circle,
}

impl Summary {
    /// The queues of an overview, in the order of their paths.
    pub(crate) fn of_all(overview: &Overview) -> Vec<Summary> {
        let waits = overview.circles().iter().flat_map(|circle| &circle.waits);
        let circles: HashSet<&str> = waits.map(|wait| &*wait.path).collect();
        let queues = overview.queues().iter().enumerate();
        let summary = |(place, queue): (usize, &Arc<QueueStatus>)| Summary {
            place,
            is_in_circle: circles.contains(queue.path()),
            ..Summary::of(queue)
        };
        queues.map(summary).collect()
    }

    fn of(queue: &QueueStatus) -> Summary {
        let rows = Row::of(queue, &Addresses::default());
        let (marks, holders) = (queue.marks(), queue.holders());
        let waiters = || rows.iter().filter(|row| row.waits());
        let waiting = match holders {
            // Some may not be read.
            Some(holders) if !marks.contains(&Mark::NumberChanged) => queue.len() - holders,
            // Some contenders hold or wait, and no znode records which.
            _ => waiters().count(),
        };
        Summary {
            place: 0,
            path: queue.path().to_owned(),
            kind: queue.kind(),
            permits: queue.permits(),
            contenders: queue.len(),
            holders,
            holder: holder(queue, &rows),
            waiting,
            held_since: rows
                .iter()
                .filter(|row| row.holds())
                .map(Row::created)
                .min(),
            waits_since: waiters().map(Row::created).min(),
            marks,
            is_in_circle: false,
        }
    }

    /// True if a contender waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting > 0
    }

    /// The words of the row, without its ages.
    pub(crate) fn words(&self) -> String {
        let (kind, marks) = (self.kind_text(), self.marks_text());
        format!("{} {kind} {} {marks}", self.path, self.holder)
    }

    /// True if the oldest holder queued longer ago than this.
    pub(crate) fn is_held_longer(&self, than: Duration, now: i64) -> bool {
        self.held_since
            .is_some_and(|since| elapsed(since, now) > than)
    }

    /// True if a contender waits for longer than this, and not for a leader's end.
    pub(crate) fn is_waited_for_longer(&self, than: Duration, now: i64) -> bool {
        let since = self.troubling_wait();
        since.is_some_and(|since| elapsed(since, now) > than)
    }

    /// How bad it is: a possible deadlock is the worst, then what the worst mark says.
    pub(crate) fn trouble(&self) -> Trouble {
        let marks = self.marks.iter().map(trouble).max();
        match self.is_in_circle {
            true => Trouble::Circle,
            false => marks.unwrap_or(Trouble::None),
        }
    }

    /// When the oldest waiter queued. Candidates wait for as long as the leader lives.
    pub(crate) fn troubling_wait(&self) -> Option<i64> {
        let is_usual = self.kind == QueueKind::Election;
        self.waits_since.filter(|_| !is_usual)
    }

    /// The row for people, at this time in milliseconds since 1970. See [`COLUMNS`].
    pub(crate) fn cells(&self, now: i64) -> [String; COLUMNS.len()] {
        let ago = |since: Option<i64>| since.map_or("-".to_owned(), |since| age(since, now));
        [
            self.path.clone(),
            self.kind_text(),
            self.holder.clone(),
            ago(self.held_since),
            self.waiting.to_string(),
            ago(self.waits_since),
            self.marks_text(),
        ]
    }

    /// What is unusual, in a few words.
    fn marks_text(&self) -> String {
        let circle = self.is_in_circle.then(|| "possible deadlock".to_owned());
        let marks = circle.into_iter().chain(self.mark_texts());
        marks.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn mark_texts(&self) -> impl Iterator<Item = String> {
        self.marks.iter().map(Mark::to_string)
    }

    pub(crate) fn kind_text(&self) -> String {
        match (self.kind, self.permits) {
            (kind @ QueueKind::Semaphore, Some(permits)) => format!("{kind} of {permits}"),
            (kind, _) => kind.to_string(),
        }
    }

    /// The row for programs, at this time in milliseconds since 1970.
    pub(crate) fn json(&self, now: i64) -> Value {
        let milliseconds = |since: Option<i64>| since.map(|since| (now - since).max(0));
        json!({
            "path": self.path,
            "kind": self.kind.to_string(),
            "permits": self.permits,
            "contenders": self.contenders,
            "holders": self.holders,
            "waiting": self.waiting,
            "held_ms": milliseconds(self.held_since),
            "oldest_wait_ms": milliseconds(self.waits_since),
            "marks": self.mark_texts().collect::<Vec<_>>(),
            "in_circle": self.is_in_circle,
        })
    }
}

impl Sort {
    pub(crate) fn order(self, summaries: &mut [impl Borrow<Summary>]) {
        summaries.sort_by_key(|it| it.borrow().place);
        // A missing time comes last.
        let oldest = |since: Option<i64>| since.unwrap_or(i64::MAX);
        match self {
            Sort::Path => {}
            Sort::Trouble => {
                summaries.sort_by_key(|it| {
                    let it = it.borrow();
                    (Reverse(it.trouble()), oldest(it.troubling_wait()))
                });
            }
            Sort::Held => summaries.sort_by_key(|it| oldest(it.borrow().held_since)),
            Sort::Waiting => summaries.sort_by_key(|it| Reverse(it.borrow().waiting)),
            Sort::Oldest => summaries.sort_by_key(|it| oldest(it.borrow().waits_since)),
        }
    }
}

fn trouble(mark: &Mark) -> Trouble {
    match mark {
        Mark::Persistent(_) | Mark::Mixed | Mark::NumbersUsed(_) => Trouble::Wrong,
        _ => Trouble::Unclear,
    }
}

/// The first holder, and how many others hold.
fn holder(queue: &QueueStatus, rows: &[Row]) -> String {
    let mut holders = rows.iter().filter(|row| row.holds());
    let (first, others) = (holders.next(), holders.count());
    let Some(first) = first else {
        return match queue.holders() {
            None => "unknown".to_owned(),
            Some(_) => "-".to_owned(),
        };
    };
    let name = or_dash(match queue.kind() {
        QueueKind::Group => &first.contender.name,
        _ => &first.contender.owner,
    });
    match others {
        0 => name,
        _ => format!("{name} and {others} more"),
    }
}

/// The table of these queues, at this time in milliseconds since 1970.
pub(crate) fn summary_table(summaries: &[Summary], now: i64) -> Vec<String> {
    let mut cells = vec![COLUMNS.map(str::to_owned).to_vec()];
    cells.extend(summaries.iter().map(|it| it.cells(now).to_vec()));
    aligned(&cells, &[4])
}

#[cfg(test)]
#[path = "../../tests/unit/summary.rs"]
mod tests;
