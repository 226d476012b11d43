//! `zkr watch` on a terminal.

use rustix::process::{Pid, Signal, kill_process};
use zookeeper_client::Client;
use zookeeper_recipes_suite::create;

use crate::pty::Terminal;
use crate::support::{Printed, Stage, ended, line_in, queue};

/// A client with these directories, each with its contender.
async fn client(stage: &Stage, directories: &[&str]) -> Client {
    let client = Client::connect(&stage.connect).await.expect("it connects");
    create(&client, "/locks").await;
    for directory in directories {
        create(&client, directory).await;
        queue(&client, directory, "billing@host-1:7").await;
    }
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn handoff_is_drawn_at_once_and_q_ends_it() {
    let stage = Stage::new();
    // No draw waits for the interval.
    let command = [
        env!("CARGO_BIN_EXE_zkr"),
        "watch",
        "/lock",
        "--interval",
        "1h",
    ];
    let (mut terminal, watch) = Terminal::start(&command, &stage.connect);
    terminal.draws("/lock: does not exist").await;
    let file = stage.file("go");
    let script = format!("until [ -e {file} ]; do sleep 0.01; done; date +%s%N > {file}");
    let holder = stage.start(["lock", "/lock", "--", "sh", "-c", &script]);
    terminal.draws("1 holds, nobody waits").await;
    let _waiter = stage.start("lock /lock -- sleep 60");
    terminal.draws("1 holds, 1 waits").await;
    // The address that the server reports.
    terminal.draws("127.0.0.1:").await;
    std::fs::write(file, "").expect("it is written");
    line_in(&file).await;
    terminal.draws("1 holds, nobody waits").await;
    terminal.types("q");
    ended(watch).await.coded(0);
    terminal.is_restored().await;
    ended(holder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn table_of_all_queues_follows_them_and_says_when_no_server_answers() {
    let stage = Stage::new();
    let client = client(&stage, &["/locks/a", "/locks/b"]).await;
    let zkr = env!("CARGO_BIN_EXE_zkr");
    let command = [zkr, "watch", "/locks", "--interval", "50ms"];
    let (mut terminal, watch) = Terminal::start(&command, &stage.connect);
    terminal.draws("/locks: 2 queues, 0 with waiters").await;
    queue(&client, "/locks/b", "report@host-2:8").await;
    terminal.draws("/locks: 2 queues, 1 with waiters").await;
    // The queue with a waiter has become the first.
    terminal.types("\r");
    terminal
        .draws("/locks/b: exclusive lock, 1 holds, 1 waits")
        .await;
    terminal.draws("127.0.0.1:").await;
    terminal.types("\x1b");
    terminal.draws("s sort: trouble").await;
    terminal.types("/host-2\r");
    terminal.draws("1 match the filter").await;
    terminal.resize(30, 5);
    terminal.draws("/locks: 2 queues, 1 with wait…").await;
    terminal.resize(90, 20);
    drop(stage);
    terminal.draws("ago: no server answers").await;
    terminal.types("\x03");
    ended(watch).await.coded(0);
    terminal.is_restored().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_again() {
    let stage = Stage::new();
    let _client = client(&stage, &["/locks/a"]).await;
    let shell = ["bash", "--norc", "--noediting", "-i"];
    let (mut terminal, shell) = Terminal::start(&shell, &stage.connect);
    terminal.shows("$ ").await;
    terminal.types("\"$ZKR\" watch /locks; stty -a | grep -o ' icanon'\n");
    terminal.draws("/locks: 1 queue").await;
    terminal.types("\x1a");
    terminal.draws("Stopped").await;
    terminal.draws(" icanon").await;
    terminal.types("fg\n");
    terminal.draws("/locks: 1 queue").await;
    terminal.types("q");
    terminal.draws("Stopped").await;
    terminal.types("exit\n");
    ended(shell).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signal_that_ends_it_restores_the_terminal() {
    let stage = Stage::new();
    let _client = client(&stage, &["/locks/a"]).await;
    let file = stage.file("id");
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let script = format!("echo $$ > {file}; exec \"$ZKR\" watch /locks");
        let (mut terminal, watch) = Terminal::start(&["sh", "-c", &script], &stage.connect);
        terminal.draws("/locks: 1 queue").await;
        let id = line_in(&file).await.trim().parse().expect("a number");
        kill_process(Pid::from_raw(id).expect("an id"), signal).expect("it can be sent");
        ended(watch).await.coded(code);
        terminal.is_restored().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_is_an_object_in_a_line_for_programs() {
    let stage = Stage::new();
    let mut watch = stage.start("watch /lock --json");
    let mut printed = Printed::by(&mut watch);
    let mut next = async || printed.next_json().await;
    assert_eq!(next().await["exists"], false);
    let holder = stage.start("lock --session-timeout 2s /lock -- sleep 60");
    let held = loop {
        let queue = next().await;
        if queue["contenders"][0]["holds"] == true {
            break queue;
        }
    };
    assert_eq!(held["recipe"], "exclusive lock");
    drop(holder);
    while next().await["contenders"] != serde_json::json!([]) {}
    let _client = client(&stage, &["/locks/a"]).await;
    let mut watch = stage.start("watch /locks --json");
    let overview = Printed::by(&mut watch).next_json().await;
    assert_eq!(overview["queues"][0]["path"], "/locks/a");
    assert_eq!(overview["queues"][0]["waiting"], 0);
}
