//! Signals to `zkr`, while it waits and while the command runs.

use rustix::process::{Signal, kill_process};
use zookeeper_recipes_suite::eventually;

use crate::support::{Stage, ended, line_in, parent_of, read, runs, send, zkr};

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_waiter_leaves_no_znode() {
    let stage = Stage::new();
    let _holder = stage.holder("/lock").await;
    for (signal, code) in [
        (Signal::INT, 130),
        (Signal::TERM, 143),
        (Signal::HUP, 129),
        (Signal::QUIT, 131),
    ] {
        let waiter = stage.start("lock /lock -- true");
        stage.queue("/lock", 2).await;
        send(signal, &waiter);
        let ended = ended(waiter).await;
        ended.quiet(code);
        assert_eq!(stage.contenders("/lock").len(), 1, "{signal:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_command_ends_first_and_then_the_lock_is_released() {
    let stage = Stage::new();
    let (started, cleaned) = (stage.file("started"), stage.file("cleaned"));
    // The next holder must find what the trap wrote.
    let script = r#"trap 'sleep 0.3; echo cleaned > "$2"; trap - INT; kill -INT $$' INT
        echo $$ > "$1"; while :; do sleep 0.05; done"#;
    let holder = stage.start(("lock /lock -- sh -c", [script, "sh", started, cleaned]));
    let id = line_in(&started).await;
    let next = stage.start(("lock /lock -- cat", [cleaned]));
    stage.queue("/lock", 2).await;
    send(Signal::INT, &holder);
    let (holder, next) = (ended(holder).await, ended(next).await);
    assert_eq!(holder.code, Some(130), "{holder:?}");
    next.printed("cleaned\n");
    assert!(!runs(&id));
    assert!(stage.contenders("/lock").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_signal_is_passed_on_to_the_whole_group() {
    let stage = Stage::new();
    let (started, heard) = (stage.file("started"), stage.file("heard"));
    let script = r#"
        for signal in TERM HUP QUIT USR1 USR2; do
            trap "echo $1 $signal >> '$2'" $signal
        done
        echo $$ >> "$3"; while :; do sleep 0.05; done"#;
    let both = format!(
        "sh -c '{}' sh child \"$2\" \"$3\" & {}",
        script.replace('\'', r"'\''"),
        script
    );
    let holder = stage.start([
        "lock", "/lock", "--", "sh", "-c", &both, "sh", "parent", heard, started,
    ]);
    let two_lines = async || read(started).lines().count() == 2;
    eventually("both have started", two_lines).await;
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ] {
        send(signal, &holder);
        let heard_by_both = async || {
            let heard = read(heard);
            let has = |who: &str| heard.lines().any(|line| line == format!("{who} {name}"));
            // A shell lets its background processes ignore SIGQUIT.
            has("parent") && (has("child") || signal == Signal::QUIT)
        };
        eventually(name, heard_by_both).await;
    }
    send(Signal::KILL, &holder);
    ended(holder).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn signal_that_is_ignored_from_the_start_stays_ignored() {
    let stage = Stage::new();
    let file = stage.file("id");
    let script = r#"trap '' HUP; exec "$0" lock /lock -- sh -c 'echo $$ > "$1"; sleep 60' sh "$1""#;
    let holder = zkr(&stage.connect);
    let program = holder.as_std().get_program().to_owned();
    let holder = tokio::process::Command::new("sh")
        .args(["-c", script])
        .args([program.as_os_str(), file.as_ref()])
        .env("ZOOKEEPER_CONNECT", &stage.connect)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let id = line_in(&file).await;
    send(Signal::HUP, &holder);
    // A signal that is passed on comes after the one before it.
    send(Signal::USR1, &holder);
    let holder = ended(holder).await;
    assert_eq!(holder.code, Some(128 + Signal::USR1.as_raw()), "{holder:?}");
    assert!(!runs(&id));
}

#[tokio::test(flavor = "multi_thread")]
async fn signal_to_all_processes_of_a_service_lets_the_command_end_in_its_own_way() {
    let stage = Stage::new();
    let file = stage.file("id");
    let script = r#"trap 'echo cleaned; exit 3' TERM
        echo $$ > "$1"; while :; do sleep 0.05; done"#;
    let holder = stage.start(("lock /lock -- sh -c", [script, "sh", file]));
    let id = line_in(&file).await;
    kill_process(parent_of(&id), Signal::TERM).expect("the guard gets it");
    send(Signal::TERM, &holder);
    let holder = ended(holder).await;
    assert_eq!(
        (holder.code, &*holder.stdout),
        (Some(3), "cleaned\n"),
        "{holder:?}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn command_begins_with_no_signal_blocked() {
    let stage = Stage::new();
    let look = ["grep", "SigBlk", "/proc/self/status"];
    let command = [&["lock", "/lock", "--"], &look[..]].concat();
    let signals = stage.run(&command).await;
    let none = "SigBlk:\t0000000000000000\n";
    assert_eq!(signals.stdout, none, "{signals:?}");
}
