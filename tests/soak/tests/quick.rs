//! The program as its user runs it, with each fault once.

use std::error::Error;
use std::fs;
use std::process::Command;

#[test]
fn nothing_is_held_twice_on_a_failing_ensemble() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let seed = fastrand::u16(..);
    let output = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(["--minutes", "0", "--seed", &seed.to_string(), "--output"])
        .arg(directory.path())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    println!("--seed {seed}\n{said}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let table = fs::read_to_string(directory.path().join("soak-recipes.csv"))?;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|it| it.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 6, "{table}");
    for row in rows {
        let (grants, works): (u32, u32) = (row[1].parse()?, row[2].parse()?);
        assert!(grants > 20 && works >= grants, "{table}");
    }
    Ok(())
}
