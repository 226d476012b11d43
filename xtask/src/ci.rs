//! `cargo xtask ci`: every check that a change has to pass.

use std::time::{Duration, Instant};

use crate::cargo::{InBackground, cargo, packages, run as run_command};
use crate::{licences, simulate, test};

/// Runs all checks, the quick ones first; the first that fails ends the run.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut times = Vec::new();
    let mut step = |name: String, check: &mut dyn FnMut() -> anyhow::Result<()>| {
        println!("== {name}");
        let began = Instant::now();
        check().map_err(|error| error.context(format!("{name}: failed")))?;
        let took = began.elapsed();
        println!("== {name}: {}", seconds(took));
        times.push((name, took));
        anyhow::Ok(())
    };

    step("format".to_owned(), &mut || {
        run_command(&mut cargo(&["fmt", "--all", "--check"]))
    })?;
    step("licences".to_owned(), &mut licences::run)?;
    step("lints".to_owned(), &mut || {
        let targets = ["--workspace", "--all-targets", "--locked"];
        run_command(
            cargo(&["clippy"])
                .args(targets)
                .args(["--", "--deny", "warnings"]),
        )
    })?;
    step("documentation".to_owned(), &mut || {
        let mut command = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
        run_command(command.env("RUSTDOCFLAGS", "--deny warnings"))
    })?;
    for package in packages()?
        .iter()
        .filter(|package| package.is_published_here())
    {
        step(format!("{} alone", package.name), &mut || {
            let check = |features: &str| {
                run_command(&mut cargo(&[
                    "check",
                    "--locked",
                    "--package",
                    &package.name,
                    features,
                ]))
            };
            check("--no-default-features")?;
            match package.features.is_empty() {
                true => Ok(()),
                false => check("--all-features"),
            }
        })?;
    }
    step("build of the tests".to_owned(), &mut || {
        run_command(&mut cargo(&["test", "--workspace", "--locked", "--no-run"]))
    })?;
    // The tests wait for their servers half of the time.
    let mut simulation = Some(simulate::begin_for_ci()?);
    step("tests".to_owned(), &mut || {
        test::run(&test::Arguments::default())
    })?;
    step("simulation".to_owned(), &mut || {
        simulation.take().map_or(Ok(()), InBackground::end)
    })?;

    println!();
    for (name, took) in &times {
        println!("{:>8}  {name}", seconds(*took));
    }
    Ok(())
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}
