//! Exit codes, the environment, the standard streams.

use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use zookeeper_recipes_suite::server_with;
use zookeeper_recipes_testkit::ServerOptions;

use crate::support::{Arguments, Stage, contains, ended, run, zkr};

#[tokio::test(flavor = "multi_thread")]
async fn code_of_the_command_is_passed_on() {
    let stage = Stage::new();
    for (arguments, script, code, printed) in [
        ("lock /lock -- sh -c", "exit 0", 0, ""),
        ("lock /lock -- sh -c", "exit 255", 255, ""),
        ("lock /lock -- sh -c", "kill -9 $$", 137, ""),
        (
            "lock /lock -c",
            "echo \"$ZKR_PATH\" | tr a-z A-Z; exit 3",
            3,
            "/LOCK\n",
        ),
        (
            "lead /leader --id a -- sh -c",
            "echo $ZKR_PATH; exit 7",
            7,
            "/leader\n",
        ),
    ] {
        let ended = stage.run((arguments, [script])).await;
        let seen = (ended.code, &*ended.stdout, &*ended.stderr);
        assert_eq!(seen, (Some(code), printed, ""), "{script}");
    }
    for (command, code) in [("no-such-command", 127), ("/", 126)] {
        let ended = stage.run(format!("lock /lock -- {command}")).await;
        ended.refused(code, [&format!("cannot start \"{command}\"")]);
    }
    assert!(stage.contenders("/lock").is_empty() && stage.contenders("/leader").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_hold_is_a_conflict_and_a_timeout_has_its_own_code() {
    let stage = Stage::new();
    let mut holders = Vec::new();
    for (verb, path) in [
        ("lock", "/lock"),
        ("lock -s", "/shared"),
        ("semaphore --permits 3 --weight 2", "/exports"),
    ] {
        holders.push(stage.start(format!("{verb} {path} -- sleep 60")));
        stage.queue(path, 1).await;
    }
    for (arguments, code, part) in [
        ("lock /lock --try", 75, "/lock: "),
        ("lock /lock -n -E 9", 9, "/lock: "),
        ("lock /lock --timeout 100ms", 80, "/lock: "),
        ("lock /lock -w 0.1 --conflict-exit-code 0", 0, "/lock: "),
        ("lock /lock -w 0", 80, "another contender holds"),
        ("lock --write --try /shared", 75, ""),
        (
            "lock --try /shared",
            64,
            "is a contender of a read/write lock",
        ),
        ("semaphore /exports --permits 3 --weight 2 --try", 75, ""),
        ("semaphore /exports --permits 3 --weight 4", 64, ""),
        (
            "semaphore /exports --permits 5",
            64,
            "is not the 3 that /exports is recorded with",
        ),
    ] {
        let ended = stage.run(format!("{arguments} -- echo ran")).await;
        ended.refused(code, [part]);
        assert_eq!(ended.stdout, "", "{arguments}");
    }
    for arguments in [
        "lock --shared --try /shared",
        "semaphore /exports --permits 3 --try",
        // The recorded number of permits.
        "semaphore /exports --try",
        "lock /free -w 0",
    ] {
        let ended = stage.run(format!("{arguments} -- echo ran")).await;
        ended.printed("ran\n");
    }
    for path in ["/lock", "/shared", "/exports"] {
        assert_eq!(
            stage.contenders(path).len(),
            1,
            "something is left in {path}"
        );
    }
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
    contains(node, ["/a/lock/_c_", "-lock-"]);
    assert!(token.parse::<i64>().is_ok_and(|token| token > 0), "{token}");
    assert_eq!([one, two, three], ["one", "two", "--three"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn candidate_that_does_not_lead_in_time_ends() {
    let stage = Stage::new();
    let _leader = stage.start("lead /leader --id a -- sleep 60");
    stage.queue("/leader", 1).await;
    let second = "lead /leader --id a --timeout 500ms -- true";
    let second = stage.run(&second).await;
    second.coded(80);
    let lines: Vec<&str> = second.stderr.lines().collect();
    let [warning, failure] = lines[..] else {
        panic!("{second:?}")
    };
    contains(warning, ["another candidate has the id", "at 127.0.0.1:"]);
    contains(failure, ["does not lead within"]);
    stage.queue("/leader", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_is_kept_at_least_as_long_as_wanted() {
    let stage = Stage::new();
    let began = std::time::Instant::now();
    let kept = "lock /lock --at-least 1s -- true";
    stage.run(kept).await.coded(0);
    assert!(began.elapsed().as_millis() >= 1000, "{:?}", began.elapsed());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn waiter_whose_program_was_replaced_runs_its_command() {
    let stage = Stage::new();
    let program = stage.file("zkr");
    std::fs::copy(env!("CARGO_BIN_EXE_zkr"), program).expect("it is copied");
    let holder = stage.holder("/lock").await;
    let waiter = tokio::process::Command::new(program)
        .args("lock /lock -- echo runs".list())
        .env("ZOOKEEPER_CONNECT", &stage.connect)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    stage.queue("/lock", 2).await;
    std::fs::remove_file(program).expect("it is removed");
    drop(holder);
    ended(waiter).await.printed("runs\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_requires_sasl_is_named_at_once() {
    const REQUIRED: &str = "sessionRequireClientSASLAuth";
    const PROVIDER: &str = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider";
    let options = ServerOptions::new()
        .configuration("authProvider.1", PROVIDER)
        .system_property(format!("zookeeper.{REQUIRED}"), "true");
    let server = server_with(options).await;
    for arguments in ["lock /lock -- true", "who /lock"] {
        let ended = run(&server.connect_string(), arguments).await;
        ended.refused(77, [REQUIRED, "; give sasl:user:password by"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_and_pages_name_the_verbs() {
    let stage = Stage::new();
    for shell in ["bash", "fish", "zsh"] {
        let script = stage.run(&["completions", shell]).await;
        script.shows(["semaphore", "doctor"]);
    }
    let page = stage.run(&["man"]).await;
    page.shows(["zkr\\-lock"]);
    let directory = stage.file("");
    let pages = stage.run(("man --to", [directory])).await;
    pages.coded(0);
    assert!(Path::new(stage.file("zkr-lock.1")).is_file());
}
