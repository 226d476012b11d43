//! `zkr once`: at most one run in each time slot.

use std::process::Stdio;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use rustix::process::Signal;
use zookeeper_recipes_core::CreateMode;
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind};

use crate::support::{Stage, contains, ended, line_in, read, restrict, runs, send, zkr};
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
    let script = r#"echo "$ZKR_PATH $ZKR_FENCING_TOKEN" >> "$1""#;
    let command = ["sh", "-c", script, "sh", file];
    let machines = (0..6).map(async |_| stage.run(&arguments(&[], &command)).await);
    for machine in join_all(machines).await {
        machine.quiet(0);
    }
    let late = stage.run(&arguments(&["-E", "9", "-v"], &command)).await;
    let parts = [
        "/job: the slot of 19",
        " was claimed by sh@",
        ": it succeeded at 20",
    ];
    late.refused(9, parts);
    let text = read(file);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("/job "), "{text}");
    assert!(stage.contenders("/job").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn command_that_failed_is_run_again_if_wanted() {
    let stage = Stage::new();
    let failed = stage.run(&arguments(&[], &["sh", "-c", "exit 7"])).await;
    failed.coded(7);
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
    let hangs = ["sh", "-c", script, "sh", begun];
    let dies = ["--session-timeout", "2s"];
    let dies = stage.start([&dies[..], &arguments(&[], &hangs)].concat());
    let command = line_in(&begun).await;
    send(Signal::KILL, &dies);
    eventually("the command has ended", async || !runs(&command)).await;
    let died = "it has recorded no end: its process has died";
    let finds_it = arguments(&["--if-unfinished-exit", "9", "-v"], &["true"]);
    let is_said = async || {
        let found = stage.run(&finds_it).await;
        assert_eq!(found.code, Some(9), "{found:?}");
        found.stderr.contains(died)
    };
    eventually("the session of the machine has ended", is_said).await;
    let who = stage.run("who /job").await;
    who.shows([died]);
    for (again, code) in [("after-failure", 0), ("unless-done", 5), ("unless-done", 5)] {
        let options = arguments(&["--again", again], &["sh", "-c", "exit 5"]);
        let run = stage.run(&options).await;
        assert_eq!(run.code, Some(code), "{again}: {run:?}");
    }
    ended(dies).await;
}

/// A machine whose command is missing must not keep the others from running theirs.
#[tokio::test(flavor = "multi_thread")]
async fn command_that_cannot_be_started_takes_no_slot() {
    let stage = Stage::new();
    let script = |name: &str, text: &str, mode| {
        let file = stage.file(name);
        std::fs::write(file, text).expect("it is written");
        restrict(file, mode);
        file
    };
    let plain = script("plain", "#!/bin/sh\n", 0o644);
    // The file is executable. Only the system finds that its interpreter is missing.
    let broken = script("broken", "#!/no/such/interpreter\n", 0o755);
    for (options, command, code) in [
        (&[][..], "no-such-command", 127),
        (&[], "/no/such/command", 127),
        (&[], plain, 126),
        (&[], "/", 126),
        (&[], broken, 127),
        (&["--grace", "9s"], "true", 64),
        (&["--max-hold", "100ms"], "true", 64),
    ] {
        let refused = stage.run(&arguments(options, &[command])).await;
        refused.failed_with(code);
        stage.queue("/job", 0).await;
    }
    let runs = stage.run(&arguments(&[], &["echo", "runs"])).await;
    runs.printed("runs\n");
}

/// A service manager may end a zkr that has just been started.
#[tokio::test(flavor = "multi_thread")]
async fn zkr_that_is_ended_before_its_command_begins_takes_no_slot() {
    let stage = Stage::new();
    let administrator = stage.server.administrator();
    let created = administrator.create("/job", b"", CreateMode::Persistent);
    created.expect("it is new");
    let job = arguments(&[], &["echo", "runs"]);
    let late = Duration::from_secs(2);
    // The first transaction of a session tries who may write to its contenders. The second is the
    // claim, and the third is the start.
    for (nth, kind) in [
        (2, FaultKind::ReplyLate(late)),
        (3, FaultKind::RequestLate(late)),
        (3, FaultKind::ReplyLate(late)),
    ] {
        let faults = stage.server.faults();
        let write = Fault::new(kind).on(RequestKind::Transact).nth(nth);
        faults.inject(write.under("/job"));
        let first = stage.start(&job);
        let is_under_way = async || faults.waiting() == 0;
        eventually("the write is under way", is_under_way).await;
        send(Signal::TERM, &first);
        let first = ended(first).await;
        let what = format!("{nth}, {kind:?}: {first:?}");
        assert_eq!((first.code, &*first.stdout), (Some(143), ""), "{what}");
        stage.queue("/job", 0).await;
        let who = stage.run("who /job --json").await.json();
        assert_eq!(who["job"]["last_run"], serde_json::Value::Null, "{what}");
    }
    let second = stage.run(&job).await;
    assert_eq!(second.stdout, "runs\n", "{second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn machine_that_finds_the_slot_taken_says_by_whom_and_how_it_ended() {
    let stage = Stage::new();
    let begun = stage.file("begun");
    let script = r#"echo $$ > "$1"; read line; exit 7"#;
    let runs = arguments(&[], &["sh", "-c", script, "sh", begun]);
    let first = zkr(&stage.connect).args(runs).stdin(Stdio::piped()).spawn();
    let mut first = first.expect("zkr starts");
    line_in(&begun).await;
    let finds_it = arguments(&["-v", "--if-unfinished-exit", "75"], &["true"]);
    let found = stage.run(&finds_it).await;
    let line = found.failed_with(75);
    assert!(line.ends_with(": it runs"), "{line}");
    let who = stage.run("who /job").await;
    who.shows([": it runs"]);
    let quiet = stage.run(&arguments(&[], &["true"])).await;
    quiet.quiet(0);

    drop(first.stdin.take());
    assert_eq!(ended(first).await.code, Some(7));
    let found = stage.run(&finds_it).await;
    found.refused(75, [": it failed at 20"]);
    let who = stage.run("who /job --json").await.json();
    let run = &who["job"]["last_run"];
    assert_eq!(run["state"], "failed", "{who}");
    contains(run["owner"].as_str().unwrap_or_default(), ["sh@"]);
    let time = |name: &str| run[name].as_u64();
    assert!(time("ended_ms") >= time("claimed_ms"), "{who}");
    assert_eq!(who["job"]["every_ms"], 36_500_u64 * 86_400_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_are_others_than_the_recorded_ones_are_refused() {
    let stage = Stage::new();
    let once = |options: &[&'static str]| [&["once", "/job"], options, &["--", "true"]].concat();
    stage.run(&once(&["--every", "1d"])).await.coded(0);
    let length = "is not the 86400s that /job is recorded with";
    for (options, part) in [
        (&["--every", "6h"][..], length),
        (&["--every", "1d", "--offset", "2h"], "is not the 0ns"),
    ] {
        stage.run(&once(options)).await.refused(64, [part]);
    }
}

/// A machine a year ahead would end the job of all others for a year.
#[tokio::test(flavor = "multi_thread")]
async fn machine_with_a_wrong_clock_runs_nothing_and_takes_no_slot() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let stage = Stage::new();
    let job = |options: &[&'static str]| {
        let once = ["once", "/job", "--every", "1m"];
        [&once[..], options, &["--", "echo", "runs"]].concat()
    };
    for time in [SystemTime::now() - HOUR, SystemTime::now() + HOUR] {
        stage.server.faults().set_system_time(time);
        let refused = stage.run(&job(&[])).await;
        refused.refused(70, ["the ensemble's"]);
    }
    let allowed = stage.run(&job(&["--clock-may-differ", "2h"])).await;
    assert_eq!(allowed.stdout, "runs\n", "{allowed:?}");
}
