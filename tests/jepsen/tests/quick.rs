//! The workload as its user runs it, as quickly as can be.

use std::env;
use std::error::Error;
use std::fs;
use std::process::Command;

use zookeeper_recipes_interop::can_run;

#[test]
fn paused_and_cut_off_clients_lose_no_element_of_the_fenced_set() -> Result<(), Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let missing: &[String] = match status.contains("\nUid:\t0\t") {
        true => &[],
        false => &["it wants Linux and root".to_owned()],
    };
    // Linux and root cannot be installed, so that CI=true does not ask for them.
    if !missing.is_empty() && env::var_os("CI").is_some_and(|value| value == "true") {
        eprintln!("jepsen: not run, {}", missing.join("; "));
        return Ok(());
    }
    if !can_run("jepsen", missing) {
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
