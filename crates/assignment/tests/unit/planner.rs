//! Single plans of the leader.

use super::*;
use crate::next_plans::{GIVE, WorkerPlan};

/// The words of a worker's plan, by partition.
type Words<'a> = (&'a str, &'a [(&'a str, &'a str)]);

/// Workers that are there, with their present plans, and who owns which partition.
fn view(plans: &[Words<'_>], owned: &[(&str, &str, i64)]) -> View {
    let mut view = View {
        max_moves: 1,
        move_within: Duration::from_secs(60),
        ..View::default()
    };
    for (worker, words) in plans {
        let lines = words.iter().map(|(partition, word)| {
            let partition = partition.to_string();
            Arc::make_mut(&mut view.input.partitions).insert(partition.clone(), Default::default());
            (partition, word.to_string())
        });
        let plan = WorkerPlan {
            lines: lines.collect(),
            ..WorkerPlan::default()
        };
        view.plans.insert(worker.to_string(), plan);
        view.input
            .workers
            .insert(worker.to_string(), Default::default());
    }
    for (partition, worker, token) in owned {
        let owner = (worker.to_string(), *token);
        view.owned.insert(partition.to_string(), owner);
    }
    view
}

/// The worker `b` vanishes, and is awaited.
fn vanishes(view: &mut View) {
    view.input.workers.remove("b");
    view.input.awaited.insert("b".to_owned());
}

/// The next plans, by a leader that begins.
fn planned(view: &View) -> Next {
    Planner::default().next(view, Instant::now())
}

fn word<'a>(next: &'a Next, worker: &str, partition: &str) -> Option<&'a str> {
    let word = next.plans.get(worker)?.lines.get(partition);
    word.map(String::as_str)
}

#[test]
fn move_is_taken_back_if_the_next_owner_vanishes_and_is_awaited() {
    let mut view = view(
        &[("a", &[("p", GIVE)]), ("b", &[("p", OWN)])],
        &[("p", "a", 7)],
    );
    vanishes(&mut view);
    let next = planned(&view);
    assert_eq!(word(&next, "a", "p"), Some(OWN));
    assert_eq!(word(&next, "b", "p"), None);
}

#[test]
fn awaited_worker_keeps_a_partition_that_nobody_owns() {
    let mut view = view(&[("a", &[]), ("b", &[("p", OWN)])], &[]);
    vanishes(&mut view);
    assert_eq!(word(&planned(&view), "b", "p"), Some(OWN));
}

#[test]
fn worker_that_comes_back_at_once_gets_the_partition_that_nobody_owns_yet() {
    let of_b = [("p", OWN), ("q", OWN)];
    let view = view(&[("a", &[]), ("b", &of_b)], &[("q", "b", 7)]);
    let next = planned(&view);
    assert_eq!(word(&next, "a", "p"), Some(OWN));
    assert_eq!(word(&next, "b", "q"), Some(OWN));
    assert_eq!(word(&next, "a", "q"), None);
}

/// As at a start, when the first worker is planned with all partitions before the others come.
#[test]
fn partitions_that_nobody_owns_yet_go_to_a_worker_that_comes_all_at_once() {
    let of_a = [("p", OWN), ("q", OWN), ("r", OWN), ("s", OWN)];
    let view = view(&[("a", &of_a), ("b", &[])], &[]);
    assert_eq!(view.max_moves, 1);
    let next = planned(&view);
    let of_b = next.plans["b"].lines.values().filter(|word| *word == OWN);
    assert_eq!((of_b.count(), next.deferred), (2, 0));
    // The first worker may hold the lock by now.
    let given = next.plans["a"].lines.values().filter(|word| *word == GIVE);
    assert_eq!(given.count(), 2);
}

#[test]
fn move_that_has_not_ended_is_taken_back_before_another_one_begins() {
    let plans: [Words<'_>; 2] = [("a", &[("p", GIVE)]), ("b", &[("p", OWN), ("q", OWN)])];
    let mut view = view(&plans, &[("p", "a", 3), ("q", "b", 7)]);
    view.max_moves = 2;
    let next = planned(&view);
    assert_eq!(word(&next, "a", "p"), Some(OWN));
    assert_eq!(word(&next, "b", "q"), Some(OWN));
}

/// As after somebody has deleted a plan.
#[test]
fn owner_that_no_plan_names_is_told_to_give() {
    let view = view(&[("a", &[]), ("b", &[("p", OWN)])], &[("p", "a", 7)]);
    let next = planned(&view);
    assert_eq!(word(&next, "b", "p"), Some(OWN));
    assert_eq!(word(&next, "a", "p"), Some(GIVE));
}

#[test]
fn worker_that_takes_none_is_set_aside_though_it_vanishes_again_and_again() {
    let plans: [Words<'_>; 2] = [("a", &[]), ("b", &[("p", OWN)])];
    let (mut planner, begun) = (Planner::default(), Instant::now());
    let late = (0..40).find_map(|step| {
        let mut view = view(&plans, &[]);
        view.tokens.insert("b".to_owned(), step);
        if step % 2 == 1 {
            vanishes(&mut view);
        }
        let now = begun + Duration::from_secs(10) * u32::try_from(step).ok()?;
        let late = planner.next(&view, now).late;
        late.into_iter().next().map(|late| (late, view, now))
    });
    let (late, view, now) = late.expect("the move is late in the end");
    assert!(now - begun <= Duration::from_secs(310), "{:?}", now - begun);
    let blamed = planner.patience.blame(&late, &[]).map(|(worker, _)| worker);
    assert_eq!(blamed.as_deref(), Some("b"));
    assert_eq!(word(&planner.next(&view, now), "a", "p"), Some(OWN));
}

#[test]
fn next_worker_that_takes_the_partition_not_either_is_set_aside_too() {
    let plans: [Words<'_>; 3] = [("a", &[]), ("b", &[("p", OWN)]), ("c", &[])];
    let (mut planner, mut view, mut now) = (Planner::default(), view(&plans, &[]), Instant::now());
    let mut aside = Vec::new();
    for _ in 0..130 {
        let next = planner.next(&view, now);
        let blamed = next
            .late
            .iter()
            .filter_map(|late| planner.patience.blame(late, &[]));
        aside.extend(blamed.map(|(worker, _)| worker));
        (view.plans, now) = (next.plans, now + Duration::from_secs(1));
    }
    assert_eq!(aside, ["b", "a"]);
}

/// It may vanish between the look at the queue and the next plan.
#[test]
fn move_is_late_again_if_the_worker_that_was_set_aside_has_come_back() {
    let plans: [Words<'_>; 2] = [("a", &[]), ("b", &[("p", OWN)])];
    let (mut planner, begun) = (Planner::default(), Instant::now());
    let mut late_after = |seconds, is_there: bool| {
        let mut view = view(&plans, &[]);
        view.tokens.insert("b".to_owned(), i64::from(seconds > 60));
        if !is_there {
            vanishes(&mut view);
        }
        let late = planner
            .next(&view, begun + Duration::from_secs(seconds))
            .late;
        let late = late.into_iter().next();
        late.and_then(|late| planner.patience.blame(&late, &[]))
    };
    assert_eq!(late_after(0, true), None);
    assert!(late_after(60, true).is_some());
    assert_eq!(late_after(61, false), None);
    assert_eq!(late_after(62, true), None);
    assert!(late_after(122, true).is_some());
}

#[test]
fn worker_that_comes_back_after_a_long_grace_has_the_time_of_a_move_for_what_it_owned() {
    let plans: [Words<'_>; 2] = [("a", &[]), ("b", &[("p", OWN)])];
    let (mut planner, begun) = (Planner::default(), Instant::now());
    let mut late_after = |seconds, is_there: bool, owned: &[(&str, &str, i64)]| {
        let mut view = view(&plans, owned);
        if !is_there {
            vanishes(&mut view);
        }
        let next = planner.next(&view, begun + Duration::from_secs(seconds));
        !next.late.is_empty()
    };
    assert!(!late_after(0, true, &[("p", "b", 7)]));
    assert!(!late_after(1, false, &[]));
    assert!(!late_after(900, true, &[]));
    assert!(!late_after(959, true, &[]));
    assert!(late_after(960, true, &[]));
}

/// What it owns may not be shown yet.
#[test]
fn worker_that_has_the_lock_of_a_late_move_is_not_set_aside() {
    let plans: [Words<'_>; 2] = [("a", &[("p", GIVE)]), ("b", &[("p", OWN)])];
    let (mut planner, begun) = (Planner::default(), Instant::now());
    let view = view(&plans, &[("p", "a", 7)]);
    planner.next(&view, begun);
    let now = begun + Duration::from_secs(60);
    let late = planner.next(&view, now).late;
    for queue in [["b", "a"], ["b", "b"]] {
        let blamed = planner.patience.blame(&late[0], &queue.map(str::to_owned));
        assert_eq!(blamed, None);
    }
    let next = planner.next(&view, now);
    assert_eq!(word(&next, "b", "p"), Some(OWN));
    assert!(next.late.is_empty());
}

/// It has taken it after the leader that set it aside was gone, and there is nothing else to take.
#[test]
fn worker_that_owns_what_it_has_not_taken_is_set_aside_no_longer() {
    let plans: [Words<'_>; 2] = [("a", &[("p", OWN), ("q", OWN)]), ("b", &[])];
    let view = view(&plans, &[("p", "a", 7), ("q", "a", 8)]);
    let mut planner = Planner::default();
    planner.patience.take_over("a", "takes_none p");
    let next = planner.next(&view, Instant::now());
    assert_eq!(next.back, ["a"]);
    assert_eq!(next.moves.len(), 1);
}
