//! A seed gives the same trace again, and the real clock needs none.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::support::{connect, create, seconds, servers};
use tokio::sync::{Notify, watch};
use zookeeper_recipes_core::ensemble::{CreateMode, WatchEvent};
use zookeeper_recipes_simulation::Simulation;

fn on_a_paused_clock<T>(run: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(run)
}

/// Three tasks of a process wait for one value, and send a request when it comes. The first has
/// been woken before, and puts the process to sleep.
async fn run_tasks_that_are_woken_together() -> String {
    let simulation = Simulation::with(|it| it.trace_limit = usize::MAX);
    let session = connect(&simulation, "a").await;
    let ensemble = simulation.ensemble("a");
    let (value, awaited) = watch::channel(0);
    let early = Arc::new(Notify::new());
    for path in ["/1", "/2", "/3"] {
        let (session, process) = (session.clone(), simulation.process("a"));
        let (mut awaited, early) = (awaited.clone(), early.clone());
        tokio::spawn(ensemble.task(Box::pin(async move {
            if path == "/1" {
                tokio::select! {
                    biased;
                    () = early.notified() => {}
                    _ = awaited.changed() => {}
                }
                process.sleep(seconds(1));
            } else {
                awaited.changed().await.unwrap();
            }
            session.sync(path).await.unwrap();
        })));
    }
    tokio::time::sleep(seconds(1)).await;
    early.notify_one();
    tokio::spawn(async move { value.send_replace(1) });
    tokio::time::sleep(seconds(5)).await;
    simulation.trace().to_string()
}

#[test]
fn gives_the_same_trace_however_the_runtime_wakes_the_tasks() {
    let traces: BTreeSet<_> = (0..50)
        .map(|_| on_a_paused_clock(run_tasks_that_are_woken_together()))
        .collect();
    assert_eq!(traces.len(), 1, "{traces:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn is_not_needed_on_several_threads() {
    let simulation = servers(1, 3);
    let mut tasks = Vec::new();
    for process in ["a", "b", "c"] {
        let process = simulation.process(process);
        tasks.push(tokio::spawn(async move {
            let session = process.connect().await.unwrap();
            for _ in 0..20 {
                let path = create(&session, "/n-", CreateMode::EphemeralSequential).await;
                session.delete(&path).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!(simulation.administrator().tree().is_empty());
}

#[tokio::test(start_paused = true)]
async fn ends_with_the_last_handle() {
    let simulation = servers(1, 1);
    let session = connect(&simulation, "a").await;
    drop(simulation);
    create(&session, "/n", CreateMode::Persistent).await;
    let (_, _, watch) = session.get_and_watch("/n").await.unwrap();
    drop(session);
    assert_eq!(watch.await, WatchEvent::Unwatched);
}
