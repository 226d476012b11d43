//! `zkr once`: at most one run in each time slot.

use futures_util::future::join_all;
use rustix::process::Signal;

use crate::support::{Stage, ended, line_in, read, runs, send};
use zookeeper_recipes_suite::eventually;

/// A slot that does not end during a test.
const JOB: [&str; 4] = ["once", "/job", "--every", "36500d"];

fn arguments<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&JOB, options, &["--"], command].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_machines_runs_the_command_of_a_slot() {
    let stage = Stage::new();
    let file = stage.file("runs");
    let name = file.to_str().expect("text");
    let script = r#"echo "$ZKR_PATH $ZKR_FENCING_TOKEN" >> "$1""#;
    let command = ["sh", "-c", script, "sh", name];
    let machines = (0..6).map(async |_| stage.run(&arguments(&[], &command)).await);
    for machine in join_all(machines).await {
        assert_eq!(
            (machine.code, &*machine.stderr),
            (Some(0), ""),
            "{machine:?}"
        );
    }
    let late = stage.run(&arguments(&["-E", "9", "-v"], &command)).await;
    assert_eq!(late.code, Some(9), "{late:?}");
    assert!(
        late.stderr.contains("has been run in this slot"),
        "{late:?}"
    );
    let text = read(&file);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("/job "), "{text}");
    assert!(stage.contenders("/job").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn command_that_failed_is_run_again_if_wanted() {
    let stage = Stage::new();
    let failed = stage.run(&arguments(&[], &["sh", "-c", "exit 7"])).await;
    assert_eq!(failed.code, Some(7), "{failed:?}");
    let codes = [
        ("never", "exit 3", 0),
        ("after-failure", "exit 3", 3),
        ("after-failure", "exit 0", 0),
        ("after-failure", "exit 3", 0),
    ];
    for (again, script, code) in codes {
        let options = arguments(&["--again", again], &["sh", "-c", script]);
        let run = stage.run(&options).await;
        assert_eq!(run.code, Some(code), "{again} {script}: {run:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn command_whose_machine_died_is_run_again_unless_done() {
    let stage = Stage::new();
    let begun = stage.file("begun");
    let script = r#"echo $$ > "$1"; while :; do sleep 0.01; done"#;
    let hangs = ["sh", "-c", script, "sh", begun.to_str().expect("text")];
    let dies = ["--session-timeout", "2s"];
    let dies = stage.start(&[&dies[..], &arguments(&[], &hangs)].concat());
    let command = line_in(&begun).await;
    send(Signal::KILL, &dies);
    eventually("the command has ended", async || !runs(&command)).await;
    for (again, code) in [("after-failure", 0), ("unless-done", 5), ("unless-done", 5)] {
        let options = arguments(&["--again", again], &["sh", "-c", "exit 5"]);
        let run = stage.run(&options).await;
        assert_eq!(run.code, Some(code), "{again}: {run:?}");
    }
    ended(dies).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slot_without_a_length_is_refused() {
    let stage = Stage::new();
    let refused = ["once", "/job", "--every", "0s", "--", "true"];
    let line = stage.run(&refused).await;
    assert!(
        line.failed_with(64).contains("length of a slot"),
        "{line:?}"
    );
}
