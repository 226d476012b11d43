//! A queue as a table for people.

use std::time::{Duration, SystemTime};

use super::kind::RecipeKind;
use super::row::{Row, State, milliseconds, printable};
use super::slot;
use super::snapshot::Snapshot;

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
    pub(crate) fn new(path: &str, snapshot: &Snapshot, rows: Vec<Row>) -> Picture {
        let holder = rows.iter().find(|row| row.state == State::Holds);
        let holder = holder.map(|row| row.token);
        let job = snapshot.job.as_ref();
        Picture {
            headline: headline(path, snapshot, &rows),
            job: job.map_or(Vec::new(), |job| slot::lines(job, holder)),
            more: snapshot.len().saturating_sub(rows.len()),
            warnings: warnings(path, snapshot, &rows),
            rows,
        }
    }

    /// The lines of the table, at this time in milliseconds since 1970.
    pub(crate) fn lines(&self, now: i64) -> Vec<String> {
        let mut lines = vec![self.headline.clone()];
        if !self.rows.is_empty() {
            lines.extend(self.table(now));
        }
        lines.extend(self.job.iter().cloned());
        lines.extend(self.warnings.iter().map(|it| format!("warning: {it}")));
        lines
    }

    fn table(&self, now: i64) -> Vec<String> {
        let has_address = self.rows.iter().any(|row| row.address.is_some());
        let mut cells = vec![header(has_address)];
        cells.extend(
            self.rows
                .iter()
                .map(|row| self::cells(row, now, has_address)),
        );
        aligned(&cells)
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

fn warnings(path: &str, snapshot: &Snapshot, rows: &[Row]) -> Vec<String> {
    let persistent = rows.iter().filter(|row| row.session.0 == 0).map(|row| {
        let name = printable(&row.name);
        format!(
            "{name} is persistent, so it holds or waits until somebody deletes it: if no program \
             needs it, `zkr evict {path} {name}`"
        )
    });
    let is_numbered = snapshot.recipe == RecipeKind::Semaphore && snapshot.permits.is_some();
    let unknown = is_numbered && rows.iter().any(|row| row.state == State::Unknown);
    let unknown = unknown.then(|| {
        let text = "the number of permits was changed after contenders had queued: those that held \
                    still hold, and no znode records which do";
        text.to_owned()
    });
    let warnings = snapshot.warnings().into_iter();
    warnings.chain(persistent).chain(unknown).collect()
}

fn headline(path: &str, snapshot: &Snapshot, rows: &[Row]) -> String {
    if !snapshot.exists {
        return format!("{path}: does not exist, so nobody holds and nobody waits");
    }
    let permits = match (snapshot.recipe, snapshot.permits) {
        (RecipeKind::Semaphore, Some(1)) => " of 1 permit".to_owned(),
        (RecipeKind::Semaphore, Some(permits)) => format!(" of {permits} permits"),
        _ => String::new(),
    };
    let counts = match (snapshot.len(), snapshot.holders()) {
        (0, _) => "nobody holds and nobody waits".to_owned(),
        (all, Some(holders)) => {
            let rows_in = |state| rows.iter().filter(|row| row.state == state).count();
            let holders = holders.max(rows_in(State::Holds));
            let unknown = match rows.last() {
                // Nobody has read the contenders behind it.
                Some(last) if last.state == State::Unknown => all - holders,
                _ => rows_in(State::Unknown),
            };
            let waiters = all - holders - unknown;
            let unknown = match unknown {
                0 => String::new(),
                1 => ", 1 holds or waits".to_owned(),
                _ => format!(", {unknown} hold or wait"),
            };
            format!(
                "{}{unknown}, {}",
                counted(holders, "hold"),
                counted(waiters, "wait")
            )
        }
        (all, None) => format!("{all} hold or wait"),
    };
    match snapshot.recipe {
        RecipeKind::Unknown => format!("{path}: {counts}"),
        recipe => format!("{path}: {recipe}{permits}, {counts}"),
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

fn cells(row: &Row, now: i64, has_address: bool) -> Vec<String> {
    let or_dash = |text: &str| {
        if text.is_empty() {
            "-".to_owned()
        } else {
            text.to_owned()
        }
    };
    let mut cells = vec![
        (row.place + 1).to_string(),
        row.state_text(),
        row.kind.clone(),
        or_dash(&row.owner),
        age(row.created, now),
        row.token.to_string(),
        row.session.to_string(),
    ];
    if has_address {
        cells.push(or_dash(row.address.as_deref().unwrap_or_default()));
    }
    cells
}

/// Pads the columns. Numbers are at the right of theirs.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let padded = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// How long ago this was, both in milliseconds since 1970.
pub(crate) fn age(then: i64, now: i64) -> String {
    age_of(Duration::from_millis((now - then).max(0).unsigned_abs()))
}

/// A time in at most two units.
pub(crate) fn age_of(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// The time now, in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    milliseconds(SystemTime::now())
}

#[cfg(test)]
#[path = "../../tests/unit/picture.rs"]
mod tests;
