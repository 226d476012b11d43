//! `zkr watch` on a terminal.

use std::time::{Duration, Instant};

use zookeeper_recipes_suite::eventually;

use crate::pty::Terminal;
use crate::support::{Printed, Stage, ended, line_in};

#[tokio::test(flavor = "multi_thread")]
async fn handoff_is_drawn_at_once_and_q_ends_it() {
    let stage = Stage::new();
    let zkr = env!("CARGO_BIN_EXE_zkr");
    let (mut terminal, watch) = Terminal::start(&[zkr, "watch", "/lock"], &stage.connect);
    terminal.shows("/lock: does not exist").await;
    let file = stage.file("go");
    let script = format!("until [ -e {file} ]; do sleep 0.01; done; date +%s%N > {file}");
    let holder = stage.start(["lock", "/lock", "--", "sh", "-c", &script]);
    terminal.shows("1 holds, nobody waits").await;
    let _waiter = stage.start("lock /lock -- sleep 60");
    terminal.shows("1 holds, 1 waits").await;
    let before = terminal.shown().matches("1 holds, nobody waits").count();
    std::fs::write(file, "").expect("it is written");
    line_in(&file).await;
    let handed = Instant::now();
    let drawn_anew = async || terminal.shown().matches("1 holds, nobody waits").count() > before;
    eventually("the handoff is drawn", drawn_anew).await;
    // Ten times what it takes on a machine that is not busy.
    let took = handed.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    terminal.types("q");
    ended(watch).await.coded(0);
    let is_as_before = terminal.shown().ends_with("\x1b[?1049l");
    assert!(is_as_before, "{:?}", terminal.shown());
    ended(holder).await;
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
}
