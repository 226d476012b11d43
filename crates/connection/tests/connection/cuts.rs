//! A conversation that is cut after each byte, in both directions.

use std::time::Duration;

use zookeeper_recipes_connection::{SessionEnd, WatchEvent, WatchedRead};
use zookeeper_recipes_protocol::EventType;

use crate::world::{Cut, T, World, config_with_credentials};

/// What the script's watches are to see before its end, if their reads have set them.
struct Expected {
    fires: [usize; 3],
    stays: usize,
}

fn world() -> World {
    let mut world = World::new(config_with_credentials(2));
    world.ensemble.znodes.insert("/was".to_owned());
    world
}

/// Handshake, credentials, requests, watches, pings, events, a reconnect, the close.
fn converse(world: &mut World) -> Expected {
    world.create("/a");
    world.create("/was");
    world.until(World::all_answered);
    let dropped = world.watch(WatchedRead::Children, "/");
    world.until(World::all_answered);
    world.unwatch(dropped);
    let changed = world.watch(WatchedRead::Data, "/was");
    let created = world.watch(WatchedRead::Exists, "/will");
    let child = world.watch(WatchedRead::Children, "/was");
    let stays = world.watch(WatchedRead::Data, "/");
    world.until(World::all_answered);
    world.pass(T / 2);
    world.change("/was", EventType::NodeDataChanged);
    world.sync("/");
    world.until(World::all_answered);
    world.lose_connection();
    world.change("/will", EventType::NodeCreated);
    world.create("/b");
    world.until(World::all_answered);
    world.pass(T / 2);
    world.change("/was/child", EventType::NodeCreated);
    world.pass(Duration::from_millis(1));
    // A connection that was cut in silence is noticed, and the watches are set again.
    world.pass(2 * T);
    Expected {
        fires: [changed, created, child],
        stays,
    }
}

fn check(world: &mut World, expected: &Expected) {
    for watch in expected.fires {
        let seen = world.seen.get(&watch).map(Vec::as_slice);
        let fired = matches!(seen, Some([WatchEvent::Fired(_)]));
        assert_eq!(fired, world.was_set(watch), "{watch}: {:?}", world.seen);
    }
    assert_eq!(world.seen.get(&expected.stays), None);
    if world.is_connected() {
        let stays = usize::from(world.was_set(expected.stays));
        assert_eq!(world.watched_by_server(), stays, "the others are removed");
    }
    world.machine.close(world.now);
    world.until(|world| world.end().is_some());
    assert_eq!(world.end(), Some(SessionEnd::Closed));
    let seen = world.seen.get(&expected.stays).cloned().unwrap_or_default();
    assert_eq!(
        seen == [WatchEvent::Unwatched],
        world.was_set(expected.stays)
    );
    world.check();
    for path in ["/a", "/b"] {
        let caller = world.paths.iter().position(|asked| asked == path);
        let created = world.ensemble.created(path);
        match world.outcome(caller.expect("a request")) {
            Ok(_) => assert_eq!(created, 1, "{path}"),
            Err(_) => assert!(created <= 1, "{path} was sent twice"),
        }
    }
}

fn whole() -> World {
    let mut world = world();
    let expected = converse(&mut world);
    check(&mut world, &expected);
    assert!(world.answers.values().flatten().all(Result::is_ok));
    world
}

fn cut_everywhere(direction: impl Fn(usize) -> Cut, bytes: usize) {
    for silently in [false, true] {
        let mut broken = 0;
        for at in 0..bytes {
            let mut world = world();
            world.cut_at(direction(at), silently);
            let expected = converse(&mut world);
            check(&mut world, &expected);
            broken += usize::from(world.answers.values().flatten().any(Result::is_err));
        }
        let some = 1..bytes;
        assert!(
            some.contains(&broken),
            "{broken} of {bytes} cuts broke a request"
        );
    }
}

#[test]
fn conversation_survives_a_cut_after_each_byte_to_the_server() {
    cut_everywhere(Cut::ToServer, whole().bytes_to_server);
}

#[test]
fn conversation_survives_a_cut_after_each_byte_to_the_client() {
    cut_everywhere(Cut::ToClient, whole().bytes_to_client);
}

#[test]
fn conversation_in_single_bytes_is_the_same() {
    let whole = whole();
    let mut world = world();
    world.fragment = 1;
    let expected = converse(&mut world);
    check(&mut world, &expected);
    assert_eq!(world.ensemble.requests, whole.ensemble.requests);
    assert_eq!(world.seen, whole.seen);
}
