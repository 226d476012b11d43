//! Watches over several connections.

use std::collections::BTreeSet;

use zookeeper_recipes_connection::{WatchEvent, WatchedRead};
use zookeeper_recipes_protocol::{ErrorCode, EventType, OpCode, Reply, ReplyBody};

use crate::peer::{Conduct, frame};
use crate::world::{World, config};

#[test]
fn watches_are_set_again_in_requests_under_128_kib() {
    let mut world = World::connected();
    let mut watches = Vec::new();
    for number in 0..4000 {
        let path = format!("/{number:0100}");
        world.change(&path, EventType::NodeCreated);
        watches.push(world.watch(WatchedRead::Data, &path));
        watches.push(world.watch(WatchedRead::Children, &path));
        watches.push(world.watch(WatchedRead::Exists, &format!("{path}/absent")));
    }
    world.until(World::all_answered);
    let before = world.watched_by_server();
    assert_eq!(before, watches.len());
    world.reconnect();
    assert_eq!(world.watched_by_server(), before);
    let received = world.received().into_iter();
    let again = received.filter(|it| *it == OpCode::SetWatches).count();
    assert!(again > 8, "{again} requests");
    assert_eq!(world.seen.len(), 0);
    for number in 0..4000 {
        let path = format!("/{number:0100}");
        world.change(&format!("{path}/absent"), EventType::NodeCreated);
        world.change(&path, EventType::NodeDeleted);
    }
    world.settle();
    let fired: BTreeSet<usize> = world.seen.keys().copied().collect();
    assert!(fired.into_iter().eq(watches), "each watch has its event");
    world.check();
}

#[test]
fn event_of_a_disconnection_comes_with_the_next_connection() {
    let mut world = World::connected();
    world.create("/a");
    let watch = world.watch(WatchedRead::Data, "/a");
    world.settle();
    world.lose_connection();
    world.change("/a", EventType::NodeDeleted);
    world.until(World::is_connected);
    assert_eq!(
        world.seen[&watch],
        [WatchEvent::Fired(EventType::NodeDeleted)]
    );
}

#[test]
fn callers_that_watch_one_path_share_the_event() {
    let mut world = World::connected();
    let watches: Vec<usize> = (0..5)
        .map(|_| world.watch(WatchedRead::Exists, "/a"))
        .collect();
    world.settle();
    assert_eq!(world.watched_by_server(), 1);
    world.unwatch(watches[2]);
    world.settle();
    assert_eq!(world.watched_by_server(), 1);
    world.change("/a", EventType::NodeCreated);
    world.settle();
    let seen: Vec<usize> = world.seen.keys().copied().collect();
    assert_eq!(seen, [watches[0], watches[1], watches[3], watches[4]]);
}

#[test]
fn watch_that_nobody_waits_for_is_removed_before_and_after_its_reply() {
    let mut world = World::connected();
    let set = world.watch(WatchedRead::Data, "/");
    world.settle();
    world.unwatch(set);
    world.settle();
    assert_eq!(world.watched_by_server(), 0);
    let asked = world.watch(WatchedRead::Children, "/");
    world.unwatch(asked);
    world.settle();
    assert_eq!(world.watched_by_server(), 0);
    assert_eq!(world.seen.len(), 0);
}

#[test]
fn watch_that_is_dropped_at_any_moment_of_a_reconnect_is_removed() {
    for steps in 0.. {
        let mut world = World::connected();
        world.fragment = 9;
        let watch = world.watch(WatchedRead::Data, "/");
        world.settle();
        world.close_connection();
        (0..steps).for_each(|_| world.step());
        let is_back = world.connects.len() == 2 && world.is_connected();
        world.unwatch(watch);
        world.until(World::is_connected);
        world.settle();
        assert_eq!(world.watched_by_server(), 0, "after {steps} steps");
        if is_back {
            assert!(steps > 10, "the steps are small");
            return;
        }
    }
}

#[test]
fn removal_that_the_server_does_not_know_is_not_sent_for_ever() {
    let mut world = World::connected();
    world.ensemble.conduct.closes_at = Some(OpCode::RemoveWatches);
    for _ in 0..10 {
        let watch = world.watch(WatchedRead::Data, "/");
        world.until(|world| world.is_answered(watch));
        world.unwatch(watch);
        world.settle();
        world.until(World::is_connected);
    }
    assert_eq!(world.connects.len(), 1 + 3);
}

/// Connections break for other reasons, too.
#[test]
fn removals_are_sent_on_unless_three_in_a_row_break_a_connection() {
    let mut world = World::connected();
    for _ in 0..5 {
        for closes_at in [Some(OpCode::RemoveWatches), None] {
            world.ensemble.conduct.closes_at = closes_at;
            let watch = world.watch(WatchedRead::Data, "/");
            world.until(|world| world.is_answered(watch));
            world.unwatch(watch);
            world.settle();
            world.until(World::is_connected);
        }
        assert_eq!(world.watched_by_server(), 0);
    }
    assert_eq!(world.connects.len(), 1 + 5);
}

/// Servers that close the connection at them, refuse them, or do not answer.
#[test]
fn watches_are_given_up_if_servers_do_not_set_them_again() {
    let ways: [fn(&mut Conduct); 3] = [
        |conduct| conduct.closes_at = Some(OpCode::SetWatches),
        |conduct| conduct.refuses_watches = Some(ErrorCode::Unimplemented),
        |conduct| conduct.mute = vec![OpCode::SetWatches],
    ];
    for is_so in ways {
        let mut world = World::connected();
        let watch = world.watch(WatchedRead::Data, "/");
        world.settle();
        is_so(&mut world.ensemble.conduct);
        world.reconnect();
        assert_eq!(world.seen[&watch], [WatchEvent::Unwatched]);
        let again = world.watch(WatchedRead::Data, "/");
        world.until(|world| world.is_answered(again));
        assert!(world.was_set(again));
    }
}

#[test]
fn watches_are_not_given_up_for_less_than_three_breaks_in_a_row() {
    let mut world = World::connected();
    let watch = world.watch(WatchedRead::Data, "/");
    world.settle();
    for _ in 0..5 {
        world.ensemble.conduct.closes_at = Some(OpCode::SetWatches);
        world.close_connection();
        let connects = world.connects.len();
        world.until(|world| world.connects.len() == connects + 2);
        world.ensemble.conduct.closes_at = None;
        world.until(World::is_connected);
    }
    assert!(!world.seen.contains_key(&watch));
    let received = world.received().into_iter();
    assert!(received.filter(|it| *it == OpCode::SetWatches).count() > 5);
}

/// The servers keep one watch for both callers.
#[test]
fn watch_fires_though_another_read_of_its_path_gets_a_reply_that_is_too_long() {
    let mut world = World::connected();
    let watch = world.watch(WatchedRead::Children, "/");
    world.until(|world| world.is_answered(watch));
    world.ensemble.conduct.mute = vec![OpCode::GetChildren];
    let long = world.watch(WatchedRead::Children, "/");
    world.settle();
    let length = u32::try_from(config(1).reply_limit).unwrap() + 1;
    let header = frame(&Reply::new(2, 0, ReplyBody::Empty));
    world.inject(&[&length.to_be_bytes(), &header[4..]].concat());
    world.settle();
    assert!(world.outcome(long).is_err());
    assert_eq!(world.watched_by_server(), 1);
}
