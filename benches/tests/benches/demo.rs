//! The demo as its user runs it.

use std::process::Command;

#[test]
fn demo_shows_four_ways_and_that_the_default_wakes_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_demo"))
        .args(["--contenders", "3", "--hold", "5"])
        .output()
        .expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for part in [
        "| single node |",
        "| poll        |",
        "| parent      |",
        "predecessor    3/3 contender",
        "Never two at once: 12 holds",
        "Order kept, predecessor: all 3",
    ] {
        assert!(printed.contains(part), "{part:?} is not in\n{printed}");
    }
    let row = printed
        .lines()
        .find(|line| line.starts_with("| predecessor |"));
    let cells: Vec<&str> = row.expect("a row").split('|').map(str::trim).collect();
    assert_eq!(cells[6], "1", "woken per release: {cells:?}");
}
