//! A command on a terminal: input, Ctrl-C, Ctrl-Z, a terminal that closes.

use crate::pty::Terminal;
use crate::support::{Stage, contains, ended, line_in, read, runs};

#[tokio::test(flavor = "multi_thread")]
async fn command_reads_from_the_terminal_and_ctrl_c_reaches_it_alone() {
    let stage = Stage::new();
    let script = r#""$ZKR" lock /lock -- sh -c 'trap "echo interrupted; exit 9" INT
        echo begun; read line; echo "got $line"; while :; do sleep 0.05; done'
        echo "code $?""#;
    let (mut terminal, shell) = Terminal::start(&["sh", "-c", script], &stage.connect);
    terminal.shows("begun").await;
    terminal.types("hello\n");
    terminal.shows("got hello").await;
    assert_eq!(stage.contenders("/lock").len(), 1);
    terminal.types("\x03");
    terminal.shows("interrupted").await;
    terminal.shows("code 9").await;
    assert!(stage.contenders("/lock").is_empty());
    ended(shell).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn command_in_a_pipeline_gets_the_terminal_when_it_reads() {
    let stage = Stage::new();
    let script = r#""$ZKR" lock /lock -- sh -c 'echo begun; read line; echo "got $line"' | cat
        read line; echo "then $line""#;
    let (mut terminal, shell) = Terminal::start(&["sh", "-c", script], &stage.connect);
    terminal.shows("begun").await;
    terminal.types("hello\n");
    terminal.shows("got hello").await;
    terminal.types("world\n");
    terminal.shows("then world").await;
    ended(shell).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_while_waiting_ends_the_waiter() {
    let stage = Stage::new();
    let _holder = stage.holder("/lock").await;
    let script = r#"trap : INT; "$ZKR" lock /lock -- true; echo "code $?""#;
    let (mut terminal, shell) = Terminal::start(&["sh", "-c", script], &stage.connect);
    stage.queue("/lock", 2).await;
    terminal.types("\x03");
    terminal.shows("code 130").await;
    assert_eq!(stage.contenders("/lock").len(), 1);
    ended(shell).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_wait_is_reported_on_a_terminal_and_elsewhere_if_asked() {
    let stage = Stage::new();
    let _holder = stage.holder("/lock").await;
    let silent = stage.start("lock /lock --timeout 3s -- true");
    let verbose = stage.start("lock /lock --timeout 3s --verbose -- true");
    let script = r#""$ZKR" lock /lock -w 3s -- true"#;
    let (mut terminal, shell) = Terminal::start(&["sh", "-c", script], &stage.connect);
    terminal.shows("/lock: waiting for 2s: sleep@").await;
    let verbose = ended(verbose).await;
    let first = verbose.stderr.lines().next().unwrap_or_default();
    contains(first, ["sleep@", "holds"]);
    ended(silent).await.failed_with(80);
    ended(shell).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_that_closes_ends_the_command_and_releases() {
    let stage = Stage::new();
    let file = stage.file("id");
    let script = r#""$ZKR" lock /lock -- sh -c 'echo $$ > "$1"; read line' sh "$1""#;
    let (terminal, shell) = Terminal::start(&["sh", "-c", script, "sh", file], &stage.connect);
    let id = line_in(&file).await;
    assert!(runs(&id));
    drop(terminal);
    stage.queue("/lock", 0).await;
    assert!(!runs(&id));
    ended(shell).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_z_stops_and_fg_continues() {
    let stage = Stage::new();
    let shell = ["bash", "--norc", "--noediting", "-i"];
    let (mut terminal, shell) = Terminal::start(&shell, &stage.connect);
    terminal.shows("$ ").await;
    terminal
        .types("\"$ZKR\" lock /lock -- sh -c 'echo be\"\"gun; read line; echo \"got $line\"'\n");
    terminal.shows("begun").await;
    terminal.types("\x1a");
    terminal.shows("Stopped").await;
    assert_eq!(stage.contenders("/lock").len(), 1);
    terminal.types("fg\n");
    terminal.types("hello\n");
    terminal.shows("got hello").await;
    stage.queue("/lock", 0).await;
    terminal.types("exit\n");
    ended(shell).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_z_for_too_long_loses_the_lock_and_fg_says_so() {
    is_lost_by_a_long_ctrl_z("true").await;
}

/// When it is asked to stop, it continues and reads, for which it is stopped again.
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_z_for_too_long_of_a_command_that_ignores_sigterm_stops_zkr_once() {
    is_lost_by_a_long_ctrl_z("trap : TERM").await;
}

/// The command begins with `first`, and then reads from the terminal.
async fn is_lost_by_a_long_ctrl_z(first: &str) {
    let stage = Stage::new();
    let file = stage.file("id");
    let shell = ["bash", "--norc", "--noediting", "-i"];
    let (mut terminal, shell) = Terminal::start(&shell, &stage.connect);
    terminal.shows("$ ").await;
    // Long enough for a machine that runs all tests at once.
    let options = "--session-timeout 4s --tick 500ms lock /lock";
    terminal.types(&format!(
        "\"$ZKR\" {options} -- sh -c '{first}; echo $$ > {file}; read line; read line'\n"
    ));
    terminal.until(async || read(file).ends_with('\n')).await;
    let id = read(file);
    let next = stage.start("lock /lock -- true");
    stage.queue("/lock", 2).await;
    terminal.types("\x1a");
    terminal.shows("Stopped").await;
    ended(next).await.coded(0);
    assert!(!runs(&id), "the stopped command was killed");
    terminal.types("fg; echo code $?\n");
    terminal.shows("the command was stopped").await;
    terminal.shows("code 81").await;
    terminal.types("exit\n");
    ended(shell).await;
}
