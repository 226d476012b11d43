//! Exit codes, the environment, the standard streams.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use zookeeper_recipes_suite::server_with;
use zookeeper_recipes_testkit::ServerOptions;

use crate::support::{Stage, ended, run, zkr};

#[tokio::test(flavor = "multi_thread")]
async fn code_of_the_command_is_passed_on() {
    let stage = Stage::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -9 $$", 137),
    ] {
        let ended = stage.run(("lock /lock -- sh -c", [script])).await;
        assert_eq!((ended.code, &*ended.stderr), (Some(code), ""), "{script}");
    }
    assert!(stage.contenders("/lock").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn command_that_cannot_be_started_has_the_codes_of_a_shell() {
    let stage = Stage::new();
    let missing = stage.run("lock /lock -- no-such-command").await;
    let line = missing.failed_with(127);
    assert!(
        line.starts_with("cannot start \"no-such-command\""),
        "{line}"
    );
    let directory = stage.run("lock /lock -- /").await;
    directory.failed_with(126);
    assert!(stage.contenders("/lock").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn command_finds_its_environment_arguments_and_input() {
    let stage = Stage::new();
    let script = r#"cat; echo "$ZKR_PATH $ZKR_NODE $ZKR_FENCING_TOKEN" "$@"; echo oops >&2"#;
    let mut child = zkr(&stage.connect)
        .args([
            "lock", "/a/lock", "--", "sh", "-c", script, "sh", "one two", "--three",
        ])
        .env("ZKR_NODE", "of an outer zkr")
        .stdin(Stdio::piped())
        .spawn()
        .expect("zkr starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"input\n").await.expect("it is read");
    drop(input);
    let ended = ended(child).await;
    assert_eq!((ended.code, &*ended.stderr), (Some(0), "oops\n"));
    let (input, rest) = ended.stdout.split_once('\n').expect("two lines");
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [path, node, token, one, two, three] = words[..] else {
        panic!("{words:?}");
    };
    assert_eq!(input, "input");
    assert_eq!(path, "/a/lock");
    assert!(
        node.starts_with("/a/lock/_c_") && node.contains("-lock-"),
        "{node}"
    );
    assert!(token.parse::<i64>().is_ok_and(|token| token > 0), "{token}");
    assert_eq!([one, two, three], ["one", "two", "--three"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_lock_is_a_conflict_and_a_timeout_has_its_own_code() {
    let stage = Stage::new();
    let holder = stage.holder("/lock").await;
    for (options, code) in [
        ("--try", 75),
        ("-n -E 9", 9),
        ("--timeout 100ms", 80),
        ("-w 0.1 --conflict-exit-code 0", 0),
    ] {
        let arguments = format!("lock /lock {options} -- touch ran");
        let ended = stage.run(arguments).await;
        let line = ended.failed_with(code);
        assert!(line.starts_with("/lock: "), "{line}");
        stage.queue("/lock", 1).await;
    }
    drop(holder);
    stage.queue("/lock", 0).await;
    let free = stage.run("lock /lock --try -- true").await;
    assert_eq!(free.code, Some(0), "{free:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn timeout_of_zero_is_one_try() {
    let stage = Stage::new();
    let free = stage.run("lock /lock -w 0 -- true").await;
    assert_eq!(free.code, Some(0), "{free:?}");
    let holder = stage.holder("/lock").await;
    let taken = stage.run("lock /lock -w 0 -- true").await;
    let line = taken.failed_with(80);
    assert!(line.contains("another contender holds"), "{line}");
    assert_eq!(stage.contenders("/lock").len(), 1);
    drop(holder);
}

#[tokio::test(flavor = "multi_thread")]
async fn line_for_a_shell_runs_in_one() {
    let stage = Stage::new();
    let line = "echo \"$ZKR_PATH\" | tr a-z A-Z; exit 3";
    let ran = stage.run(("lock /lock -c", [line])).await;
    assert_eq!((ran.code, &*ran.stdout), (Some(3), "/LOCK\n"), "{ran:?}");
    let both = "lock /lock -c true -- true";
    stage.run(&both).await.failed_with(64);
}

#[tokio::test(flavor = "multi_thread")]
async fn candidate_that_does_not_lead_in_time_ends() {
    let stage = Stage::new();
    let leader = stage.start("lead /leader --id a -- sleep 60");
    stage.queue("/leader", 1).await;
    let second = "lead /leader --id a --timeout 500ms -- true";
    let second = stage.run(&second).await;
    assert_eq!(second.code, Some(80), "{second:?}");
    let lines: Vec<&str> = second.stderr.lines().collect();
    let [warning, failure] = lines[..] else {
        panic!("{second:?}")
    };
    assert!(
        warning.contains("another candidate has the id"),
        "{warning}"
    );
    assert!(warning.contains("at 127.0.0.1:"), "{warning}");
    assert!(failure.contains("does not lead within"), "{failure}");
    stage.queue("/leader", 1).await;
    drop(leader);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_hold_together_and_exclude_a_writer() {
    let stage = Stage::new();
    let reader = stage.start("lock -s /lock -- sleep 60");
    stage.queue("/lock", 1).await;
    let second = stage.run("lock --shared --try /lock -- true").await;
    assert_eq!(second.code, Some(0), "{second:?}");
    let writer = stage.run("lock --write --try /lock -- true").await;
    writer.failed_with(75);
    let exclusive = stage.run("lock --try /lock -- true").await;
    let line = exclusive.failed_with(64);
    assert!(
        line.contains("is a contender of a read/write lock"),
        "{line}"
    );
    drop(reader);
}

#[tokio::test(flavor = "multi_thread")]
async fn permits_are_counted_by_weight() {
    let stage = Stage::new();
    let with = |rest: &str| format!("semaphore /exports --permits 3 {rest}");
    let holder = stage.start(with("--weight 2 -- sleep 60"));
    stage.queue("/exports", 1).await;
    let one = stage.run(with("--try -- true")).await;
    assert_eq!(one.code, Some(0), "{one:?}");
    stage
        .run(&*with("--weight 2 --try -- true"))
        .await
        .failed_with(75);
    stage
        .run(&*with("--weight 4 -- true"))
        .await
        .failed_with(64);
    let mistaken = "semaphore /exports --permits 5 -- true";
    let mistaken = stage.run(&mistaken).await;
    let line = mistaken.failed_with(64);
    assert!(
        line.contains("is not the 3 that /exports is recorded with"),
        "{line}"
    );
    drop(holder);
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_runs_the_command_and_resigns_when_it_ends() {
    let stage = Stage::new();
    let script = "echo $ZKR_PATH; exit 3";
    let ended = stage.run(("lead /leader --id a -- sh -c", [script])).await;
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(3), "/leader\n"),
        "{ended:?}"
    );
    assert!(stage.contenders("/leader").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_is_kept_at_least_as_long_as_wanted() {
    let stage = Stage::new();
    let began = std::time::Instant::now();
    let ended = stage.run("lock /lock --at-least 1s -- true").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(began.elapsed().as_millis() >= 1000, "{:?}", began.elapsed());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn waiter_whose_program_was_replaced_runs_its_command() {
    let stage = Stage::new();
    let program = stage.file("zkr");
    std::fs::copy(env!("CARGO_BIN_EXE_zkr"), &program).expect("it is copied");
    let holder = stage.holder("/lock").await;
    let waiter = tokio::process::Command::new(&program)
        .args([
            "--connect",
            &stage.connect,
            "lock",
            "/lock",
            "--",
            "echo",
            "runs",
        ])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    stage.queue("/lock", 2).await;
    std::fs::remove_file(&program).expect("it is removed");
    drop(holder);
    let waiter = ended(waiter).await;
    assert_eq!(
        (waiter.code, &*waiter.stdout),
        (Some(0), "runs\n"),
        "{waiter:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_and_pages_name_the_verbs() {
    let stage = Stage::new();
    for shell in ["bash", "fish", "zsh"] {
        let script = stage.run(&["completions", shell]).await;
        assert_eq!(script.code, Some(0), "{shell}");
        assert!(script.stdout.contains("semaphore") && script.stdout.contains("doctor"));
    }
    let page = stage.run(&["man"]).await;
    assert!(
        page.stdout.contains(".TH zkr 1") && page.stdout.contains("zkr\\-lock"),
        "{page:?}"
    );
    let directory = stage.file("man1");
    std::fs::create_dir(&directory).expect("it is created");
    let pages = stage
        .run(("man --to", [directory.to_str().expect("text")]))
        .await;
    assert_eq!(pages.code, Some(0), "{pages:?}");
    assert!(directory.join("zkr-lock.1").is_file());
    stage
        .run("man --to /no/such/directory")
        .await
        .failed_with(64);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_requires_sasl_is_named_at_once() {
    const REQUIRED: &str = "sessionRequireClientSASLAuth";
    const PROVIDER: &str = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider";
    let options = ServerOptions::new()
        .configuration("authProvider.1", PROVIDER)
        .system_property(format!("zookeeper.{REQUIRED}"), "true");
    let server = server_with(options).await;
    let arguments: [&[&str]; 2] = [&["lock", "/lock", "--", "true"], &["who", "/lock"]];
    for arguments in arguments {
        let ended = run(&server.connect_string(), arguments).await;
        let line = ended.failed_with(77);
        assert!(line.contains(REQUIRED), "{line}");
        assert!(line.ends_with("; zkr has no SASL"), "{line}");
    }
}
