//! The task `demo` becomes the demo: a signal reaches the demo itself.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

#[test]
fn signal_reaches_the_demo_and_its_end_is_the_end_of_the_task() -> Result<(), Box<dyn Error>> {
    // This replaces cargo, which becomes the program that it runs.
    let cargo = "#!/bin/sh\nprintf '%s ' \"$@\"; echo; exec cat\n";
    let directory = env!("CARGO_TARGET_TMPDIR");
    let path = std::path::Path::new(directory).join("cargo-that-prints");
    std::fs::write(&path, cargo)?;
    let made_runnable = Command::new("chmod").arg("+x").arg(&path).status()?;
    assert!(made_runnable.success());

    let mut task = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["demo", "--help", "--connect", "zk1:2181"])
        .env("CARGO", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(task.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    assert_eq!(
        line.trim_end(),
        "run --quiet --locked --package zookeeper-recipes-benches --bin demo -- \
         --help --connect zk1:2181"
    );
    // This is not an interrupt: a shell makes the programs that it starts in the background ignore
    // interrupts.
    kill_process(Pid::from_child(&task), Signal::TERM)?;
    assert_eq!(task.wait()?.signal(), Some(Signal::TERM.as_raw()));
    Ok(())
}
