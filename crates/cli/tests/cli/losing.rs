//! A lock that is lost while a command runs: the command is dead before another command runs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use zookeeper_client::Client;
use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_suite::{administrator, children, eventually, in_time, proxy, server};
use zookeeper_recipes_testkit::proxy::{Fault, Operation, Proxy};

use crate::support::{
    Arguments, Ended, Stage, ended, files, line_in, parent_of, read, restrict, runs, send, start,
};

/// A command with a child. Both ignore SIGTERM, and write the time again and again.
const STUBBORN: &str = r#"
    trap '' TERM
    beat() { while :; do date +%s%N >> "$1"; sleep 0.01; done; }
    beat "$1.child" &
    echo "$! $$" > "$1.ids"
    beat "$1.parent""#;

/// The same, but the command itself ends at SIGTERM, without its child.
const OBEDIENT: &str = r#"
    exec 2>/dev/null
    beat() { while :; do date +%s%N >> "$1"; sleep 0.01; done; }
    (trap '' TERM; beat "$1.child") &
    echo "$! $$" > "$1.ids"
    trap 'exit 0' TERM
    beat "$1.parent""#;

/// The command of the next holder: writes when it begins, and which of the others still run.
const JUDGE: &str = r#"
    date +%s%N
    for id in $(cat "$1.ids"); do
        case "$(cat /proc/$id/stat 2>/dev/null)" in
            '') ;;
            *') Z '*) ;;
            *) echo "$id runs" ;;
        esac
    done"#;

/// One lock, a holder that reaches the server by a proxy, and the next holder.
struct Trial {
    proxy: Proxy,
    administrator: Client,
    path: String,
    files: PathBuf,
    holder: Child,
    next: Child,
}

impl Trial {
    async fn new(server: &str, files: &Path, timeout: &str) -> Trial {
        Trial::of(STUBBORN, server, files, timeout).await
    }

    /// The trial of a holder with this command.
    async fn of(script: &str, server: &str, files: &Path, timeout: &str) -> Trial {
        let proxy = proxy(server).await;
        let administrator = administrator(server).await;
        let path = format!("/lock-{timeout}");
        let files = files.join(timeout);
        let name = files.to_str().expect("text");
        let holds = format!("--session-timeout {timeout} --tick 500ms lock {path} -- sh -c");
        let holder = start(&proxy.connect_string(), (holds, [script, "sh", name]));
        line_in(&files.with_extension("ids")).await;
        let judges = format!("lock {path} --session-timeout 30s -- sh -c");
        let next = start(server, (judges, [JUDGE, "sh", name]));
        eventually("the next one waits", async || {
            children(&administrator, &path).await.len() == 2
        })
        .await;
        Trial {
            proxy,
            administrator,
            path,
            files,
            holder,
            next,
        }
    }

    /// Waits for the next holder, whose command is the judge, and returns the holder.
    async fn judge(self) -> Child {
        let next = ended(self.next).await;
        next.coded(0);
        let mut lines = next.stdout.lines();
        let time = |line: Option<&str>| -> u128 { line.expect("a time").parse().expect("a time") };
        let began = time(lines.next());
        assert_eq!(lines.next(), None, "{}: nobody else runs", self.path);
        for who in ["parent", "child"] {
            let beats = read(self.files.with_extension(who));
            let last = time(beats.lines().last());
            assert!(last < began, "{}: the {who} ran on", self.path);
        }
        let left = async || children(&self.administrator, &self.path).await.is_empty();
        eventually("nothing is left", left).await;
        self.holder
    }
}

fn stopped_command(ended: &Ended) {
    ended.refused(81, ["the command was stopped"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn command_of_a_holder_that_is_cut_off_is_dead_before_another_runs() {
    let (server, files) = (server().await, files());
    let trial = async |timeout| {
        let trial = Trial::new(&server.connect_string(), files.path(), timeout).await;
        trial.proxy.freeze();
        stopped_command(&ended(trial.judge().await).await);
    };
    tokio::join!(trial("2s"), trial("4s"));
}

#[tokio::test(flavor = "multi_thread")]
async fn child_that_outlives_its_parent_is_dead_before_the_lock_is_released() {
    let stage = Stage::new();
    let trial = Trial::of(OBEDIENT, &stage.connect, stage.files(), "4s").await;
    // The servers still answer, so the hold is released as soon as the command has ended.
    let lost = trial
        .proxy
        .fault(Fault::on(Operation::Sync).repeatedly().reply_lost());
    stopped_command(&ended(trial.judge().await).await);
    assert!(lost.count() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn command_of_a_holder_that_is_killed_dies_at_once() {
    let stage = Stage::new();
    let trial = Trial::new(&stage.connect, stage.files(), "30s").await;
    let ids = read(trial.files.with_extension("ids"));
    let administrator = stage.server.administrator();
    let sessions = administrator.sessions();
    send(Signal::KILL, &trial.holder);
    let dead = async || !ids.split_whitespace().any(runs);
    eventually("the command and its child are dead", dead).await;
    assert_eq!(administrator.sessions(), sessions, "no session is over yet");
    let contenders = administrator.tree().into_iter();
    let contenders = contenders.filter(|it| it.path.starts_with(&format!("{}/", trial.path)));
    let first = contenders
        .min_by_key(|it| it.stat.czxid)
        .expect("the holder");
    administrator.expire(SessionId(first.stat.ephemeral_owner));
    trial.judge().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn command_of_a_holder_that_is_stopped_is_dead_before_another_runs() {
    let stage = Stage::new();
    let trial = async |timeout| {
        let trial = Trial::new(&stage.connect, stage.files(), timeout).await;
        send(Signal::STOP, &trial.holder);
        let holder = trial.judge().await;
        send(Signal::CONT, &holder);
        stopped_command(&ended(holder).await);
    };
    tokio::join!(trial("2s"), trial("4s"));
}

#[tokio::test(flavor = "multi_thread")]
async fn guard_that_is_killed_takes_the_command_with_it() {
    let stage = Stage::new();
    let trial = Trial::new(&stage.connect, stage.files(), "4s").await;
    let ids = read(trial.files.with_extension("ids"));
    let guard = parent_of(ids.split_whitespace().last().expect("two ids"));
    kill_process(guard, Signal::KILL).expect("it is killed");
    ended(trial.judge().await).await.refused(70, ["guard"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn guard_that_is_stopped_is_continued_and_the_lock_is_released() {
    let stage = Stage::new();
    let [begun, end] = ["begun", "end"].map(|name| stage.file(name));
    let script = r#"echo $$ > "$1"; until [ -e "$2" ]; do sleep 0.01; done"#;
    let command = [script, "sh", begun, end];
    let holder = stage.start(("lock /lock -- sh -c", command));
    let guard = parent_of(&line_in(&begun).await);
    kill_process(guard, Signal::STOP).expect("it is stopped");
    std::fs::write(end, "").expect("a file");
    let holder = ended(holder).await;
    holder.coded(0);
    let warning = "guard process was stopped";
    assert!(holder.stderr.contains(warning), "{holder:?}");
    assert!(stage.contenders("/lock").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn command_is_asked_to_stop_before_it_is_killed() {
    let stage = Stage::new();
    let proxy = proxy(&stage.connect).await;
    let file = stage.file("asked");
    let script = r#"exec 2>/dev/null
        trap 'echo asked >> "$1"; exit 0' TERM; echo ready > "$1"
        while :; do sleep 0.05; done"#;
    let holds = "--session-timeout 4s --tick 500ms lock /lock --grace 800ms -- sh -c";
    let holder = start(&proxy.connect_string(), (holds, [script, "sh", file]));
    line_in(&file).await;
    proxy.freeze();
    stopped_command(&ended(holder).await);
    assert_eq!(read(file), "ready\nasked\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn short_break_of_the_connection_stops_nothing() {
    let stage = Stage::new();
    let proxy = proxy(&stage.connect).await;
    let file = stage.file("began");
    let script = r#"echo > "$1"; sleep 2"#;
    let command = [script, "sh", file];
    let holds = "--session-timeout 10s --tick 500ms lock /lock -- sh -c";
    let holder = start(&proxy.connect_string(), (holds, command));
    line_in(&file).await;
    proxy.cut();
    proxy.freeze();
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.thaw();
    ended(holder).await.quiet(0);
}

/// As `sudo` does: only root can signal the command then.
#[tokio::test(flavor = "multi_thread")]
async fn command_that_becomes_another_user_is_warned_of_and_said_not_to_be_stopped() {
    const NOBODY: u32 = 65_534;
    let becomes = Path::new("/usr/bin/setpriv");
    if !rustix::process::geteuid().is_root() || !becomes.exists() {
        return;
    }
    let stage = Stage::new();
    let copy = |from: &Path, name: &str, mode| {
        let to = stage.file(name);
        std::fs::copy(from, to).expect("it is copied");
        restrict(to, mode);
        to
    };
    let directory = stage.file("");
    restrict(directory, 0o777);
    let zkr = copy(Path::new(env!("CARGO_BIN_EXE_zkr")), "zkr", 0o755);
    let sudo = copy(becomes, "sudo", 0o4755);
    let started = stage.file("started");
    let mut holder = tokio::process::Command::new(zkr);
    let connect = &stage.connect;
    let holds = format!("--connect {connect} --session-timeout 2s lock /lock -- {sudo} --reuid=0");
    let command = ["sh", "-c", "echo $$ > \"$0\"; sleep 60", started];
    let holder = holder
        .args((holds, command).list())
        .uid(NOBODY)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut holder = holder.expect("it starts");
    let command = line_in(&started).await;
    let mut lines = BufReader::new(holder.stderr.take().expect("a pipe")).lines();
    send(Signal::KILL, &holder);
    for part in ["can become another user", "so it cannot be signalled"] {
        let found = async {
            while let Some(line) = lines.next_line().await.expect("text") {
                if line.contains(part) {
                    return;
                }
            }
            panic!("{part:?} is not said");
        };
        in_time(part, found).await;
    }
    assert!(runs(&command), "nobody could stop it");
    let group = Pid::from_raw(command.trim().parse().expect("a number")).expect("an id");
    kill_process_group(group, Signal::KILL).expect("this test is root's");
}
