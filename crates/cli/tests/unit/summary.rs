//! Tests of `src/queue/summary.rs`.

use super::*;

/// A lock with a waiter that queued at this time.
fn queue(path: &str, waits_since: i64) -> Summary {
    Summary {
        place: 0,
        path: path.to_owned(),
        kind: QueueKind::Lock,
        permits: None,
        contenders: 2,
        holders: Some(1),
        holder: "billing".to_owned(),
        waiting: 1,
        held_since: Some(waits_since - 1_000),
        waits_since: Some(waits_since),
        marks: Vec::new(),
        is_in_circle: false,
    }
}

#[test]
fn trouble_is_a_circle_then_a_bad_mark_then_any_mark_then_the_oldest_wait() {
    let marked = |path, marks| Summary {
        marks,
        ..queue(path, 3_000)
    };
    let circle = Summary {
        is_in_circle: true,
        ..queue("/circle", 9_000)
    };
    let election = Summary {
        kind: QueueKind::Election,
        ..queue("/election", 1_000)
    };
    let idle = Summary {
        waits_since: None,
        ..queue("/idle", 1_000)
    };
    let mut queues = [
        election,
        idle,
        queue("/later", 5_000),
        queue("/older", 4_000),
        marked("/foreign", vec![Mark::Foreign(1)]),
        marked("/mixed", vec![Mark::Foreign(1), Mark::Mixed]),
        circle,
    ];
    Sort::Trouble.order(&mut queues);
    let paths = queues.each_ref().map(|it| &*it.path);
    let worst = ["/circle", "/mixed", "/foreign", "/older", "/later"];
    assert_eq!(paths[..5], worst);
    assert_eq!(paths[5..], ["/election", "/idle"], "nobody is stuck there");
    assert_eq!(queues[0].marks_text(), "possible deadlock");
}

#[test]
fn ages_grow_while_nothing_changes() {
    let queue = queue("/lock", 3_000);
    let ages = |now| [3, 5].map(|column| queue.cells(now)[column].clone());
    assert_eq!(ages(5_000), ["3s", "2s"]);
    assert_eq!(ages(65_000), ["1m03s", "1m02s"]);
    assert_eq!(queue.json(5_000)["oldest_wait_ms"], 2_000);
}
