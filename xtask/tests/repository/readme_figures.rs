//! The figures of the README and of the page of the benches are those of the reports.
//!
//! After a report is taken again, `UPDATE_FIGURES=1 cargo test -p xtask figures -- --test-threads 1`
//! writes its figures into both.

use std::error::Error;
use std::fs;

use crate::root;

type Outcome = Result<(), Box<dyn Error>>;

const REPORTS: &str = "benches/report";
const PAGE: &str = "benches/report/README.md";

/// A table, with the lines of its rows as they are written.
struct Table<'a> {
    columns: Vec<&'a str>,
    rows: Vec<(&'a str, Vec<&'a str>)>,
}

fn cells(line: &str) -> Vec<&str> {
    let cells = line.trim_matches('|').split('|');
    cells.map(str::trim).collect()
}

impl<'a> Table<'a> {
    /// The first table below a heading.
    fn below(heading: &str, text: &'a str) -> Option<Table<'a>> {
        let (_, below) = text.split_once(&format!("{heading}\n"))?;
        let mut lines = below
            .lines()
            .skip_while(|line| !line.starts_with('|'))
            .take_while(|line| line.starts_with('|'));
        let columns = cells(lines.next()?);
        let rows = lines.skip(1).map(|line| (line, cells(line))).collect();
        Some(Table { columns, rows })
    }

    /// The cell of the row that begins with `names`, in the first column whose name ends so.
    fn find(&self, names: &[&str], column: &str) -> Option<String> {
        let column = self.columns.iter().position(|it| it.ends_with(column))?;
        let (_, row) = self.rows.iter().find(|(_, row)| row.starts_with(names))?;
        row.get(column).map(ToString::to_string)
    }
}

/// The first report with this name that the page of the benches links to.
fn report(name: &str) -> Result<String, Box<dyn Error>> {
    let page = fs::read_to_string(root().join(PAGE))?;
    let link = page.split(['(', ')']).find(|part| part.ends_with(name));
    let link = link.ok_or_else(|| format!("no link to {name}"))?;
    Ok(fs::read_to_string(root().join(REPORTS).join(link))?)
}

/// A cell with another figure, in the form of the cell.
fn with_figure(cell: &str, figure: &str) -> String {
    let is_of_figure = |char: char| char.is_ascii_digit() || char == '–';
    let shown = cell.trim_matches(|char: char| !is_of_figure(char));
    match shown.is_empty() {
        true => figure.to_owned(),
        false => cell.replacen(shown, figure, 1),
    }
}

/// Compares the first table below a heading with the reports. Its first `names` columns name a row,
/// and `found` is the figure of a report for such a row and the name of a column.
fn compare(
    page: &str,
    heading: &str,
    names: usize,
    found: impl Fn(&[&str], &str) -> Option<String>,
) -> Outcome {
    let path = root().join(page);
    let text = fs::read_to_string(&path)?;
    let shown = Table::below(heading, &text).filter(|table| !table.rows.is_empty());
    let shown = shown.ok_or_else(|| format!("no table below {heading:?}"))?;
    let mut renewed = text.clone();
    for (line, row) in &shown.rows {
        let key: Vec<&str> = row[..names].iter().map(|it| it.trim_matches('*')).collect();
        let mut cells: Vec<String> = row[..names].iter().map(ToString::to_string).collect();
        for (cell, column) in row.iter().zip(&shown.columns).skip(names) {
            let figure = found(&key, column).ok_or_else(|| format!("{key:?} has no {column:?}"))?;
            cells.push(with_figure(cell, &figure));
        }
        renewed = renewed.replacen(line, &format!("| {} |", cells.join(" | ")), 1);
    }
    if std::env::var_os("UPDATE_FIGURES").is_some() {
        fs::write(path, renewed)?;
        return Ok(());
    }
    let differs = text
        .lines()
        .zip(renewed.lines())
        .find(|(shown, found)| shown != found);
    assert_eq!(differs, None, "{page}: set UPDATE_FIGURES=1");
    Ok(())
}

/// Compares with one table of one report, whose columns have the same names.
fn compare_with(page_heading: &str, names: usize, name: &str, heading: &str) -> Outcome {
    let report = report(name)?;
    let table = Table::below(heading, &report).ok_or_else(|| format!("{name}: {heading}"))?;
    compare(PAGE, page_heading, names, |key, column| {
        table.find(key, column)
    })
}

#[test]
fn figures_of_the_herd_are_those_of_the_report() -> Outcome {
    let report = report("herd.md")?;
    let table = Table::below("## Exclusive lock", &report).ok_or("no table")?;
    let heading = "## The cost of the thundering herd";
    compare(PAGE, heading, 2, |key, column| {
        let way = match key[0] {
            "predecessor" => "predecessor (no read)",
            "poll, every 100 ms" => "poll",
            way => way,
        };
        table.find(&[way, key[1]], column)
    })
}

const WORKS: &str = "# Compared with Curator, kazoo and Client::lock";

#[test]
fn figures_on_loopback_are_those_of_the_report() -> Outcome {
    compare_with("## Measured on loopback", 1, "peers.md", WORKS)
}

#[test]
fn figures_over_a_network_are_those_of_the_reports() -> Outcome {
    let (one, three) = (report("network.md")?, report("ensemble.md")?);
    let one_server = Table::below(WORKS, &one).ok_or("no table")?;
    let three_servers = Table::below(WORKS, &three).ok_or("no table")?;
    let costs = Table::below("## What a turn costs", &one).ok_or("no table")?;
    let find = |key: &[&str], column: &str| match column.split_once(", ") {
        Some((column, "three servers")) => three_servers.find(key, column),
        Some(("round trips", library)) => costs.find(&[key[0], library], "round trips"),
        _ => one_server.find(key, column),
    };
    compare(PAGE, "## Measured over a network", 1, find)?;
    compare("README.md", "## Cost", 1, find)
}

#[test]
fn figures_of_many_sessions_are_those_of_the_report() -> Outcome {
    compare_with("## Many sessions", 1, "sessions.md", "## Handoffs")?;
    let heading = "### The death of a member";
    compare_with(heading, 2, "sessions.md", "## The death of a member")
}

#[test]
fn figures_of_the_assignment_are_those_of_the_report() -> Outcome {
    let heading = "## A start, a death, an arrival";
    compare_with("## Assignment", 3, "assignment.md", heading)?;
    let heading = "## The memory of a worker";
    compare_with("### Memory of an assignment", 2, "assignment.md", heading)
}
