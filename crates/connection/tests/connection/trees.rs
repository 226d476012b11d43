//! Watches of a znode and all znodes below it.

use zookeeper_recipes_connection::{RequestError, SessionEnd, TreeEvent, WatchEvent, WatchedRead};
use zookeeper_recipes_protocol::{ErrorCode, EventType, OpCode};

use crate::peer::Conduct;
use crate::world::{T, World};

fn created(path: &str) -> TreeEvent {
    TreeEvent::Created(path.to_owned())
}

fn deleted(path: &str) -> TreeEvent {
    TreeEvent::Deleted(path.to_owned())
}

#[test]
fn tree_reports_each_change_of_its_znodes_in_order_and_no_other() {
    let mut world = World::connected();
    let tree = world.watch_tree("/a");
    let root = world.watch_tree("/");
    world.settle();
    for path in ["/a", "/ab", "/a/b", "/a/b/c"] {
        world.change(path, EventType::NodeCreated);
    }
    world.change("/a/b", EventType::NodeDataChanged);
    world.change("/a/b/c", EventType::NodeDeleted);
    world.settle();
    let mut expected = vec![
        TreeEvent::Missed,
        created("/a"),
        created("/a/b"),
        created("/a/b/c"),
        TreeEvent::DataChanged("/a/b".to_owned()),
        deleted("/a/b/c"),
    ];
    assert_eq!(world.tree_events(&tree), expected);
    expected.insert(2, created("/ab"));
    assert_eq!(world.tree_events(&root), expected);
}

#[test]
fn tree_is_watched_again_after_a_reconnect_and_says_what_may_be_missing() {
    let mut world = World::connected();
    let tree = world.watch_tree("/");
    world.settle();
    world.change("/a", EventType::NodeCreated);
    world.settle();
    world.lose_connection();
    world.change("/b", EventType::NodeCreated);
    world.until(World::is_connected);
    world.settle();
    world.change("/c", EventType::NodeCreated);
    world.settle();
    // A reader that reads all again needs no earlier event.
    assert_eq!(world.tree_events(&tree), [TreeEvent::Missed, created("/c")]);
    assert_eq!(world.watched_by_server(), 1);
}

#[test]
fn tree_whose_request_is_lost_is_watched_over_the_next_connection() {
    let mut world = World::connected();
    world.ensemble.conduct.mute = vec![OpCode::AddWatch];
    let tree = world.watch_tree("/");
    world.settle();
    assert_eq!(world.tree_events(&tree), []);
    // A server that does not know the request closes the connection earlier.
    world.pass(T / 5);
    world.ensemble.conduct.mute.clear();
    world.reconnect();
    world.settle();
    assert_eq!(world.tree_events(&tree), [TreeEvent::Missed]);
}

#[test]
fn reader_that_lags_behind_loses_events_knows_it_and_keeps_a_bounded_memory() {
    let mut world = World::connected();
    let (slow, fast) = (world.watch_tree("/"), world.watch_tree("/"));
    world.settle();
    let long = "x".repeat(10_000);
    let paths: Vec<String> = (0..250).map(|number| format!("/{long}{number}")).collect();
    for path in &paths {
        world.change(path, EventType::NodeCreated);
        world.settle();
        assert_ne!(world.tree_events(&fast), []);
    }
    let events = world.tree_events(&slow);
    assert_eq!(events[0], TreeEvent::Missed);
    let rest: Vec<TreeEvent> = events[1..].to_vec();
    assert!(rest.len() < 105, "{} events were kept", rest.len());
    let last = paths[paths.len() - rest.len()..].iter();
    assert!(rest.into_iter().eq(last.map(|path| created(path))));
}

#[test]
fn tree_that_nobody_reads_is_removed_unless_another_reads_it() {
    let mut world = World::connected();
    let (first, second) = (world.watch_tree("/a"), world.watch_tree("/a"));
    world.settle();
    world.machine.unwatch_tree(world.now, &first);
    world.settle();
    assert_eq!(world.watched_by_server(), 1);
    world.change("/a", EventType::NodeCreated);
    world.settle();
    assert_eq!(
        world.tree_events(&second),
        [TreeEvent::Missed, created("/a")]
    );
    world.machine.unwatch_tree(world.now, &second);
    let asked = world.watch_tree("/a");
    world.machine.unwatch_tree(world.now, &asked);
    world.settle();
    assert_eq!(world.watched_by_server(), 0);
}

#[test]
fn tree_that_is_dropped_at_any_moment_of_a_reconnect_is_removed() {
    for steps in 0..1000 {
        let mut world = World::connected();
        world.fragment = 9;
        let tree = world.watch_tree("/");
        world.settle();
        world.close_connection();
        (0..steps).for_each(|_| world.step());
        let is_back = world.connects.len() == 2 && world.watched_by_server() == 1;
        world.machine.unwatch_tree(world.now, &tree);
        world.until(World::is_connected);
        world.settle();
        assert_eq!(world.watched_by_server(), 0, "after {steps} steps");
        if is_back {
            return;
        }
    }
    panic!("no connection watches the tree");
}

#[test]
fn reader_gets_the_events_before_the_end_of_the_session_and_then_the_end() {
    let mut world = World::connected();
    let tree = world.watch_tree("/");
    world.settle();
    world.change("/a", EventType::NodeCreated);
    world.settle();
    world.machine.close(world.now);
    world.settle();
    assert_eq!(world.tree_events(&tree), [TreeEvent::Missed, created("/a")]);
    let end = world.tree_end(&tree);
    assert_matches!(end, Some(RequestError::Ended(SessionEnd::Closed)));
    let late = world.watch_tree("/");
    assert_matches!(
        world.tree_end(&late),
        Some(RequestError::Ended(SessionEnd::Closed))
    );
}

/// Servers that close the connection, and Apache's before 3.6, which say why.
#[test]
fn server_that_knows_no_watches_of_trees_costs_one_connection() {
    let ways: [fn(&mut Conduct); 2] = [
        |conduct| conduct.closes_at = Some(OpCode::AddWatch),
        |conduct| conduct.refuses_trees = Some(ErrorCode::Unimplemented),
    ];
    for is_so in ways {
        let mut world = World::connected();
        is_so(&mut world.ensemble.conduct);
        for _ in 0..5 {
            let tree = world.watch_tree("/");
            world.settle();
            world.until(World::is_connected);
            world.settle();
            let end = world.tree_end(&tree);
            assert_matches!(
                end,
                Some(
                    RequestError::Unsupported(OpCode::AddWatch)
                        | RequestError::Refused(ErrorCode::Unimplemented)
                )
            );
            world.machine.unwatch_tree(world.now, &tree);
        }
        assert_eq!(world.connects.len(), 2);
    }
}

#[test]
fn tree_ends_if_the_next_server_does_not_know_it() {
    let mut world = World::connected();
    let tree = world.watch_tree("/");
    world.settle();
    world.ensemble.conduct.refuses_trees = Some(ErrorCode::Unimplemented);
    world.reconnect();
    world.settle();
    assert_eq!(world.tree_events(&tree), [TreeEvent::Missed]);
    let end = world.tree_end(&tree);
    assert_matches!(end, Some(RequestError::Refused(ErrorCode::Unimplemented)));
}

/// On servers before 3.9 the last watch of a path replaces the others (ZOOKEEPER-4466).
#[test]
fn watches_of_one_path_and_of_its_tree_do_not_replace_each_other() {
    let mut world = World::connected();
    let children = world.watch(WatchedRead::Children, "/");
    let tree = world.watch_tree("/");
    let early = world.watch(WatchedRead::Data, "/");
    let later = world.watch(WatchedRead::Children, "/");
    world.settle();
    assert_eq!(world.seen[&children], [WatchEvent::Unwatched]);
    let (data, gone) = (
        world.watch(WatchedRead::Data, "/"),
        world.watch(WatchedRead::Data, "/"),
    );
    world.settle();
    world.unwatch(gone);
    world.settle();
    // Else a caller that reads both again once one watch ends would do so for ever.
    assert!(!world.seen.contains_key(&later));
    world.change("/a", EventType::NodeCreated);
    world.settle();
    assert_eq!(world.tree_events(&tree), [TreeEvent::Missed, created("/a")]);
    let event = WatchEvent::Fired(EventType::NodeChildrenChanged);
    assert_eq!(world.seen[&later], [event]);
    // The watch of data is fired by the event of the tree, though nobody reads that one now.
    world.machine.unwatch_tree(world.now, &tree);
    world.settle();
    world.change("/", EventType::NodeDataChanged);
    world.settle();
    let event = WatchEvent::Fired(EventType::NodeDataChanged);
    assert_eq!(
        (&*world.seen[&early], &*world.seen[&data]),
        (&[event][..], &[event][..])
    );
    assert_eq!(world.watched_by_server(), 0);
}

#[test]
fn tree_is_asked_for_once_and_only_if_it_has_a_reader_when_the_connection_is_back() {
    let mut world = World::connected();
    let tree = world.watch_tree("/a");
    world.settle();
    world.lose_connection();
    world.ensemble.requests.clear();
    for path in ["/a", "/b"] {
        for _ in 0..10 {
            let gone = world.watch_tree(path);
            world.machine.unwatch_tree(world.now, &gone);
            let read = world.watch(WatchedRead::Data, path);
            world.leave(read);
        }
    }
    world.until(World::is_connected);
    world.settle();
    assert_eq!(world.ensemble.requests.len(), 1);
    assert_eq!(world.watched_by_server(), 1);
    assert_eq!(world.tree_events(&tree), [TreeEvent::Missed]);
}

/// A request that was handed in over a connection, and that the connection did not take.
#[test]
fn tree_is_not_asked_for_whose_reader_has_gone_before_the_request_was_sent() {
    let mut world = World::connected();
    let tree = world.watch_tree("/a");
    world.break_connection();
    world.machine.unwatch_tree(world.now, &tree);
    world.until(World::is_connected);
    world.settle();
    assert_eq!(world.watched_by_server(), 0);
}

/// As in an ensemble whose members are of different releases.
#[test]
fn session_whose_next_servers_close_the_connection_at_trees_does_without() {
    let mut world = World::connected();
    let tree = world.watch_tree("/");
    world.settle();
    assert_eq!(world.tree_events(&tree), [TreeEvent::Missed]);
    world.ensemble.conduct.closes_at = Some(OpCode::AddWatch);
    world.close_connection();
    world.pass(4 * T);
    assert!(world.is_connected());
    assert!(world.connects.len() <= 5, "{:?}", world.connects);
    let end = world.tree_end(&tree);
    assert_matches!(end, Some(RequestError::Unsupported(OpCode::AddWatch)));
    // The next servers know trees again.
    world.ensemble.conduct.closes_at = None;
    let tree = world.watch_tree("/");
    world.settle();
    assert_eq!(world.tree_events(&tree), [TreeEvent::Missed]);
}

#[test]
fn tree_that_nobody_reads_is_removed_when_the_last_watch_of_its_path_is_given_up_or_refused() {
    let reads = [(WatchedRead::Children, "/"), (WatchedRead::Data, "/absent")];
    for (read, path) in reads {
        let mut world = World::connected();
        world.watch(read, path);
        let tree = world.watch_tree(path);
        world.machine.unwatch_tree(world.now, &tree);
        world.settle();
        assert_eq!(world.watched_by_server(), 0, "{path}");
    }
}

#[test]
fn watch_of_data_that_a_tree_covers_survives_a_reconnect_or_its_caller_knows_it() {
    let mut world = World::connected();
    let _tree = world.watch_tree("/");
    world.settle();
    let set = world.watch(WatchedRead::Data, "/");
    world.settle();
    let unsent = world.watch(WatchedRead::Data, "/");
    world.break_connection();
    world.until(World::is_connected);
    world.settle();
    assert_eq!(world.seen[&unsent], [WatchEvent::Unwatched]);
    world.change("/", EventType::NodeDataChanged);
    world.settle();
    let event = WatchEvent::Fired(EventType::NodeDataChanged);
    assert_eq!(world.seen[&set], [event]);
}

#[test]
fn watch_of_data_that_a_tree_covers_ends_with_the_tree_that_is_refused() {
    let mut world = World::connected();
    let _tree = world.watch_tree("/");
    world.settle();
    let set = world.watch(WatchedRead::Data, "/");
    world.settle();
    world.ensemble.conduct.refuses_trees = Some(ErrorCode::ThrottledOp);
    world.watch_tree("/");
    let next = world.watch(WatchedRead::Data, "/");
    world.settle();
    assert_eq!(world.seen[&set], [WatchEvent::Unwatched]);
    assert!(world.answers[&next][0].is_err());
}
