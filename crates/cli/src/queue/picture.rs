//! A queue as a table for people.

use zookeeper_recipes_overview::{ContenderState, Mark, QueueKind, QueueStatus, printable};

use super::row::{Row, recipe};
use super::slot;
use super::table::{aligned, now};
use crate::addresses::Addresses;
use crate::plain_text::{counted, quoted};

/// What a table shows: a headline, the rows, and how many there are besides.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) headline: String,
    pub(crate) rows: Vec<Row>,
    /// How many contenders have no row.
    pub(crate) more: usize,
    /// What is recorded of a job of each time slot.
    job: Vec<String>,
    warnings: Vec<String>,
    has_addresses: bool,
}

impl Picture {
    /// The first contenders that were read, at most so many. `zkr` is how a shell runs it.
    pub(crate) fn new(
        queue: &QueueStatus,
        addresses: &Addresses,
        most: usize,
        zkr: &str,
    ) -> Picture {
        let mut rows = Row::of(queue, addresses);
        rows.truncate(most);
        // The data of a member may be of any program.
        if queue.kind() == QueueKind::Group {
            for row in &mut rows {
                row.contender.owner = row.contender.name.as_str().into();
            }
        }
        let holder = rows.iter().find(|row| row.holds()).map(Row::token);
        let job = queue.job();
        Picture {
            headline: headline(queue, &rows),
            job: job.map_or(Vec::new(), |job| slot::lines(job, holder)),
            more: queue.len().saturating_sub(rows.len()),
            warnings: warnings(queue, &rows, zkr),
            rows,
            has_addresses: !addresses.is_empty(),
        }
    }

    /// The lines of the table, at this time in milliseconds since 1970.
    pub(crate) fn lines(&self, now: i64) -> Vec<String> {
        let mut lines = vec![self.headline.clone()];
        if !self.rows.is_empty() {
            lines.extend(self.table(now));
        }
        lines.extend(self.notes());
        lines
    }

    /// What is recorded of a job, and what is unusual.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let warnings = self.warnings.iter().map(|it| format!("warning: {it}"));
        self.job.iter().cloned().chain(warnings)
    }

    fn table(&self, now: i64) -> Vec<String> {
        let mut cells = vec![header(self.has_addresses)];
        let rows = self.rows.iter();
        cells.extend(rows.map(|row| row.cells(now, self.has_addresses)));
        aligned(&cells, &[0])
    }

    /// The table as text, with a last line for what is not shown.
    pub(crate) fn text(&self, advice: &str) -> String {
        let mut lines = self.lines(now());
        if self.more > 0 {
            lines.push(format!("and {} more{advice}", self.more));
        }
        lines.join("\n") + "\n"
    }
}

/// What is unusual about the queue, each in a sentence.
fn warnings(queue: &QueueStatus, rows: &[Row], zkr: &str) -> Vec<String> {
    let marks = queue.marks().into_iter();
    let warnings = marks.flat_map(|mark| match mark {
        Mark::Persistent(_) => persistent(queue, rows, zkr),
        mark => vec![explained(&mark, queue)],
    });
    warnings.collect()
}

fn persistent(queue: &QueueStatus, rows: &[Row], zkr: &str) -> Vec<String> {
    let persistent = rows.iter().filter(|row| row.contender.is_persistent());
    let warning = |row: &Row| {
        let name = &row.contender.name;
        let (shown, path, name) = (printable(name), quoted(queue.path()), quoted(name));
        format!(
            "{shown} is persistent, so it holds or waits until somebody deletes it: if no program \
             needs it, run: {zkr} evict {path} {name}"
        )
    };
    persistent.map(warning).collect()
}

fn explained(mark: &Mark, queue: &QueueStatus) -> String {
    let text = match mark {
        Mark::Foreign(_) => match queue.foreign() {
            [one] => return format!("{} is not a contender", printable(one)),
            several => {
                let first = several.first().map(printable).unwrap_or_default();
                let number = several.len();
                return format!("{number} znodes are not contenders, the first is {first}");
            }
        },
        Mark::Mixed => {
            "contenders of several recipes are here, and do not see each other: use a path for one \
             recipe"
        }
        Mark::KazooBesideOthers => {
            "a lock of kazoo sees the contenders of other clients only with extra_lock_patterns, so \
             two may hold although one is shown to wait"
        }
        Mark::NumberChanged => {
            "the number of permits was changed after contenders had queued: those that held still \
             hold, and no znode records which do"
        }
        Mark::SharedSession { session_id, places } => {
            return format!(
                "session {session_id} has {places} places: a task that waits behind its own hold \
                 deadlocks"
            );
        }
        other => return other.to_string(),
    };
    text.to_owned()
}

fn headline(queue: &QueueStatus, rows: &[Row]) -> String {
    let path = queue.path();
    if !queue.exists() {
        return format!("{path}: does not exist, so nobody holds and nobody waits");
    }
    let permits = match (queue.kind(), queue.permits()) {
        (QueueKind::Semaphore, Some(permits)) => {
            let permits = usize::try_from(permits).unwrap_or(usize::MAX);
            format!(" of {}", counted(permits, "permit", "permits"))
        }
        _ => String::new(),
    };
    let counts = match (queue.len(), queue.holders()) {
        (0, _) => "nobody holds and nobody waits".to_owned(),
        (all, Some(holders)) => {
            let rows_in = |state| {
                rows.iter()
                    .filter(|row| row.contender.state == state)
                    .count()
            };
            let holders = holders.max(rows_in(ContenderState::Holds));
            let unknown = match rows.last() {
                // Nobody has read the contenders behind it.
                Some(last) if last.contender.state == ContenderState::Unknown => all - holders,
                _ => rows_in(ContenderState::Unknown),
            };
            let waiters = all - holders - unknown;
            let holding = doing(holders, "hold");
            let holding = match (holders, unknown) {
                (_, 0) => holding,
                (0, 1) => "1 holds or waits".to_owned(),
                (0, _) => format!("{unknown} hold or wait"),
                (_, 1) => format!("{holding}, 1 holds or waits"),
                _ => format!("{holding}, {unknown} hold or wait"),
            };
            match queue.kind() {
                QueueKind::KazooSemaphore => holding,
                _ => format!("{holding}, {}", doing(waiters, "wait")),
            }
        }
        (all, None) => format!("{all} hold or wait"),
    };
    match recipe(queue) {
        None => format!("{path}: {counts}"),
        Some(recipe) => format!("{path}: {recipe}{permits}, {counts}"),
    }
}

/// So many contenders do this.
fn doing(number: usize, verb: &str) -> String {
    match number {
        0 => format!("nobody {verb}s"),
        1 => format!("1 {verb}s"),
        _ => format!("{number} {verb}"),
    }
}

fn header(has_address: bool) -> Vec<String> {
    let mut names = vec!["#", "STATE", "KIND", "OWNER", "AGE", "TOKEN", "SESSION"];
    if has_address {
        names.push("ADDRESS");
    }
    names.into_iter().map(str::to_owned).collect()
}
