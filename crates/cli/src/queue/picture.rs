//! A queue as a table for people.

use zookeeper_recipes_overview::{ContenderState, QueueKind, QueueStatus, printable};

use super::circle::quoted;
use super::row::{Row, recipe};
use super::slot;
use super::table::{aligned, now};

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
}

impl Picture {
    pub(crate) fn new(path: &str, queue: &QueueStatus, rows: Vec<Row>) -> Picture {
        let holder = rows.iter().find(|row| row.holds()).map(Row::token);
        let job = queue.job();
        Picture {
            headline: headline(path, queue, &rows),
            job: job.map_or(Vec::new(), |job| slot::lines(job, holder)),
            more: queue.len().saturating_sub(rows.len()),
            warnings: warnings(path, queue, &rows),
            rows,
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
        let has_address = self.rows.iter().any(|row| row.address.is_some());
        let mut cells = vec![header(has_address)];
        cells.extend(self.rows.iter().map(|row| row.cells(now, has_address)));
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

fn warnings(path: &str, queue: &QueueStatus, rows: &[Row]) -> Vec<String> {
    let persistent = rows.iter().filter(|row| row.contender.is_persistent());
    let persistent = persistent.map(|row| {
        let name = &row.contender.name;
        let (shown, path, name) = (printable(name), quoted(path), quoted(name));
        format!(
            "{shown} is persistent, so it holds or waits until somebody deletes it: if no program \
             needs it, run: zkr evict {path} {name}"
        )
    });
    let is_numbered = queue.kind() == QueueKind::Semaphore && queue.permits().is_some();
    let unknown = is_numbered
        && rows
            .iter()
            .any(|row| row.contender.state == ContenderState::Unknown);
    let unknown = unknown.then(|| {
        let text = "the number of permits was changed after contenders had queued: those that held \
                    still hold, and no znode records which do";
        text.to_owned()
    });
    of_directory(queue)
        .into_iter()
        .chain(persistent)
        .chain(unknown)
        .collect()
}

/// What is unusual about the directory.
fn of_directory(queue: &QueueStatus) -> Vec<String> {
    let mut warnings = Vec::new();
    match queue.foreign() {
        [] => {}
        [one] => warnings.push(format!("{} is not a contender", printable(one))),
        [first, ..] => warnings.push(format!(
            "{} znodes are not contenders, the first is {}",
            queue.foreign().len(),
            printable(first)
        )),
    }
    if queue.is_mixed() {
        let text = "contenders of several recipes are here, and do not see each other: \
                    use a path for one recipe";
        warnings.push(text.to_owned());
    }
    warnings
}

fn headline(path: &str, queue: &QueueStatus, rows: &[Row]) -> String {
    if !queue.exists() {
        return format!("{path}: does not exist, so nobody holds and nobody waits");
    }
    let permits = match (queue.kind(), queue.permits()) {
        (QueueKind::Semaphore, Some(1)) => " of 1 permit".to_owned(),
        (QueueKind::Semaphore, Some(permits)) => format!(" of {permits} permits"),
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
            let holding = counted(holders, "hold");
            let holding = match (holders, unknown) {
                (_, 0) => holding,
                (0, 1) => "1 holds or waits".to_owned(),
                (0, _) => format!("{unknown} hold or wait"),
                (_, 1) => format!("{holding}, 1 holds or waits"),
                _ => format!("{holding}, {unknown} hold or wait"),
            };
            format!("{holding}, {}", counted(waiters, "wait"))
        }
        (all, None) => format!("{all} hold or wait"),
    };
    match recipe(queue) {
        None => format!("{path}: {counts}"),
        Some(recipe) => format!("{path}: {recipe}{permits}, {counts}"),
    }
}

/// So many contenders do this.
fn counted(number: usize, verb: &str) -> String {
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
