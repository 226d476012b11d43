//! Any bytes in place of a server's.

use std::time::Duration;

use zookeeper_recipes_connection::{WatchEvent, WatchedRead};

use crate::world::{Way, World, config};

/// A server sends these bytes, each part after a wait. If it is mute, it sends nothing else.
pub(crate) fn break_a_connection_at_most(
    is_mute: bool,
    fragment: usize,
    parts: impl IntoIterator<Item = (Duration, Vec<u8>)>,
) {
    let mut world = World::new(config(2));
    world.fragment = fragment;
    if is_mute {
        world.ways.fill(Way::Mute);
    }
    let watch = world.watch(WatchedRead::Exists, "/x");
    let caller = world.sync("/");
    for (wait, bytes) in parts {
        world.pass(wait);
        world.inject(&bytes);
        world.settle();
    }
    if world.end().is_none() {
        world.ways.fill(Way::Member);
        // What was seen may be anything.
        world.ensemble.zxid = i64::MAX - 10;
        world.close_connection();
        world.until(|world| world.end().is_some() || world.is_connected() && world.all_answered());
    }
    world.machine.close(world.now);
    world.until(|world| world.end().is_some());
    assert!(world.is_answered(caller) && world.is_answered(watch));
    world.check_ends();
    let seen = world.seen.get(&watch).cloned().unwrap_or_default();
    assert!(!seen.contains(&WatchEvent::Unwatched) || world.was_set(watch));
}
