//! `zkr assignment`: the state, and the orders.

use std::convert::Infallible;

use serde_json::Value;
use tokio::sync::oneshot;
use zookeeper_recipes_assignment::{Assignment, Partition, Partitions};
use zookeeper_recipes_core::Session;
use zookeeper_recipes_suite::eventually;

use crate::pty::Terminal;
use crate::support::{Printed, Stage, ended};

const PATH: &str = "/queues";

/// Runs a worker until the sender is dropped.
async fn start(stage: &Stage, worker: &str) -> oneshot::Sender<()> {
    start_with(stage, worker, 4).await
}

async fn start_with(stage: &Stage, worker: &str, partitions: usize) -> oneshot::Sender<()> {
    let session = Session::connect(&stage.connect).await.expect("it opens");
    let partitions = Partitions::numbered(partitions);
    let assignment = Assignment::new(&session, PATH, partitions, worker).expect("good input");
    let (end, ended) = oneshot::channel();
    let work = async |owned: Partition| -> Result<(), Infallible> {
        owned.draining().await;
        Ok(())
    };
    tokio::spawn(async move {
        let ended = async { drop(ended.await) };
        assignment.run(ended, work).await.expect("it runs");
        session.close().await;
    });
    end
}

/// How many partitions each worker owns, as `zkr` shows it.
async fn owned(stage: &Stage) -> Vec<(String, u64)> {
    let shown = stage.run(&["assignment", PATH, "--json"]).await;
    if shown.code != Some(0) {
        return Vec::new();
    }
    let shown = shown.json();
    let workers = shown["workers"].as_array().expect("workers").iter();
    let own = |it: &Value| {
        let id = it["id"].as_str().expect("an id").to_owned();
        (id, it["owned"].as_u64().expect("a number"))
    };
    workers.map(own).collect()
}

async fn until(stage: &Stage, expected: [(&str, u64); 2]) {
    let expected = expected.map(|(worker, owned)| (worker.to_owned(), owned));
    eventually("owned so", async || owned(stage).await == expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partition_2_is_before_10_and_a_third_of_all_is_a_third_of_the_bar() {
    let stage = Stage::new();
    let _workers = [
        start_with(&stage, "w-2", 12).await,
        start_with(&stage, "w-10", 12).await,
        start_with(&stage, "w-1", 12).await,
    ];
    let mut shown = String::new();
    eventually("balanced", async || {
        shown = stage.run(&["assignment", PATH]).await.stdout;
        shown.matches("# 4 of 12\n").count() == 3
    })
    .await;
    let lines: Vec<&str> = shown.lines().skip(1).collect();
    for (line, worker) in lines.iter().zip(["w-1", "w-2", "w-10"]) {
        let first = line.split_whitespace().next();
        assert_eq!(first, Some(worker), "{shown}");
        assert_eq!(line.matches('#').count(), 14, "a third of 40: {shown}");
    }
    let partitions = lines[3..].iter().filter_map(|line| line.split(':').next());
    assert!(partitions.eq((0..12).map(|it| it.to_string())), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn assignment_is_shown_and_workers_are_drained_pinned_and_frozen() {
    let stage = Stage::new();
    let (_a, _b) = (start(&stage, "a").await, start(&stage, "b").await);
    until(&stage, [("a", 2), ("b", 2)]).await;
    let shown = stage.run(&["assignment", PATH]).await;
    let head = "/queues: 4 partitions, 2 workers; 0 without an owner, 0 to move\n";
    shown.begins(head);
    shown.shows(["\n0: "]);

    let drained = stage.run(&["assignment", PATH, "--drain", "a"]).await;
    drained.shows(["drained"]);
    until(&stage, [("a", 0), ("b", 4)]).await;
    stage.run(&["assignment", PATH, "--undrain", "a"]).await;
    until(&stage, [("a", 2), ("b", 2)]).await;

    for worker in ["a", "b"] {
        let moves = ["assignment", PATH, "--move", "3", "--to", worker];
        stage.run(moves).await;
        eventually("moved", async || {
            let shown = stage.run(&["assignment", PATH]).await.stdout;
            shown.contains(&format!("\n3: {worker}, "))
                && shown.contains(&format!("pinned to {worker}"))
        })
        .await;
    }
    let unpinned = stage.run(&["assignment", PATH, "--unpin", "3"]).await;
    assert!(!unpinned.stdout.contains("pinned"), "{unpinned:?}");
    let frozen = stage.run(&["assignment", PATH, "--freeze"]).await;
    frozen.shows(["; frozen\n"]);
    let thawed = stage.run(&["assignment", PATH, "--thaw"]).await;
    assert!(!thawed.stdout.contains("frozen"), "{thawed:?}");

    let absent = stage.run(&["assignment", PATH, "--drain", "c"]).await;
    absent.shows(["c   0 of 4, drained, gone\n"]);
    let absent = stage.run(&["assignment", PATH, "--undrain", "c"]).await;
    assert!(!absent.stdout.contains("drained"), "{absent:?}");

    for mistake in [
        &["--move", "9", "--to", "a"][..],
        &["--move", "3", "--to", "c"],
        &["--move", "3"],
        &["--freeze", "--thaw"],
    ] {
        let mistake = [&["assignment", PATH], mistake].concat();
        stage.run(mistake).await.failed_with(64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_draws_a_bar_for_each_worker_and_prints_each_change_for_programs() {
    let stage = Stage::new();
    let _a = start(&stage, "a").await;
    let alone = || async { owned(&stage).await == [("a".to_owned(), 4)] };
    eventually("owned", alone).await;
    let zkr = env!("CARGO_BIN_EXE_zkr");
    let (mut terminal, watch) = Terminal::start(&[zkr, "watch", PATH], &stage.connect);
    let bar = |length: usize| "#".repeat(length);
    let head = "/queues: 4 partitions, 1 workers; 0 without";
    terminal.draws(head).await;
    terminal.draws(&format!("a  {} 4 of 4", bar(40))).await;
    let mut lines = stage.start(["watch", PATH, "--json"]);
    let mut lines = Printed::by(&mut lines);
    let mut until = async |is_so: fn(&Value) -> bool| while !is_so(&lines.next_json().await) {};
    until(|it| it["workers"][0]["owned"] == 4).await;

    let _b = start(&stage, "b").await;
    terminal.draws(&format!("b  {} 2 of 4", bar(20))).await;
    until(|it| it["workers"][1]["owned"] == 2).await;
    stage.run(&["assignment", PATH, "--freeze"]).await;
    terminal.draws("; frozen").await;
    stage.run(&["assignment", PATH, "--thaw"]).await;
    stage.run(&["assignment", PATH, "--drain", "a"]).await;
    terminal.draws("a   0 of 4, drained").await;
    until(|it| it["workers"][0]["drained"] == true).await;
    terminal.types("q");
    assert_eq!(ended(watch).await.code, Some(0));
}
