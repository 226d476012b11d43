//! The workload as its user runs it, as quickly as can be.

use std::error::Error;
use std::fs;
use std::process::Command;

use zookeeper_recipes_interop::{can_run, can_run_as_root};

#[test]
fn paused_and_cut_off_clients_lose_no_element_of_the_fenced_set() -> Result<(), Box<dyn Error>> {
    if !can_run_as_root("jepsen") || !can_run("jepsen", &[]) {
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    let output = Command::new(env!("CARGO_BIN_EXE_jepsen"))
        .args(["--quick", "--clients", "ours", "--output"])
        .arg(directory.path())
        .output()?;
    assert!(output.status.success(), "{output:?}");
    let figure = |table: &str, column: &str| -> Result<usize, Box<dyn Error>> {
        let text = fs::read_to_string(directory.path().join(table))?;
        figure(&text, column).ok_or_else(|| format!("no {column}: {text}").into())
    };
    assert!(figure("jepsen-lost.csv", "turns")? > 0);
    assert_eq!(figure("jepsen-lost.csv", "\"lost, fenced\"")?, 0);
    assert_eq!(figure("jepsen-looks.csv", "wrong looks")?, 0);
    let lost = figure("jepsen-looks.csv", "\"lost, checked\"")?;
    let earlier = figure("jepsen-looks.csv", "by a look before the newer holder")?;
    assert_eq!(earlier, lost);
    Ok(())
}

/// The figure of this column in the first row.
fn figure(table: &str, column: &str) -> Option<usize> {
    let (head, rows) = table.split_once('\n')?;
    // A name with a comma is in quotes. None has a comma beside a quote.
    let head = head.replace(", ", "; ");
    let column = column.replace(", ", "; ");
    let place = head.split(',').position(|name| name == column)?;
    rows.lines().next()?.split(',').nth(place)?.parse().ok()
}
