//! The workload as its user runs it, as quickly as can be.

use std::error::Error;
use std::fs;
use std::process::Command;

use zookeeper_recipes_interop::can_run;

#[test]
fn paused_and_cut_off_clients_lose_no_element_of_the_fenced_set() -> Result<(), Box<dyn Error>> {
    // Linux and root cannot be installed, so that CI=true does not ask for them.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !status.contains("\nUid:\t0\t") {
        eprintln!("jepsen: not run, it wants Linux and root");
        return Ok(());
    }
    assert!(can_run("jepsen", &[]));
    let directory = tempfile::tempdir()?;
    let output = Command::new(env!("CARGO_BIN_EXE_jepsen"))
        .args(["--quick", "--clients", "ours", "--output"])
        .arg(directory.path())
        .output()?;
    assert!(output.status.success(), "{output:?}");
    let table = fs::read_to_string(directory.path().join("jepsen-lost.csv"))?;
    let row: Vec<&str> = table.lines().nth(1).ok_or("no row")?.split(',').collect();
    let turns: usize = row[1].parse()?;
    assert!(turns > 0, "{table}");
    assert_eq!(row.last(), Some(&"0"), "{table}");
    Ok(())
}
