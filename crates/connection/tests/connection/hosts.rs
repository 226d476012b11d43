//! Which host is tried, and when.

use std::collections::BTreeSet;
use std::time::Duration;

use zookeeper_recipes_connection::{Config, DisconnectReason, Host};

use crate::world::{T, Way, World, config};

#[test]
fn hosts_are_tried_in_turn_and_each_failure_is_kept() {
    let mut world = World::new(config(3));
    world.ways = vec![Way::Refused, Way::Lost, Way::Mute];
    world.pass(2 * T);
    let tried: Vec<usize> = world.connects.iter().map(|(_, host)| *host).collect();
    assert!(tried.len() >= 6);
    for round in tried.chunks_exact(3) {
        assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), 3, "{tried:?}");
    }
    assert_matches!(world.obstacle(0), Some(DisconnectReason::Io(_)));
    assert_matches!(world.obstacle(1), Some(DisconnectReason::NotConnected(_)));
    assert_matches!(world.obstacle(2), Some(DisconnectReason::NoSession(_)));
}

/// The first try of a host is not over, and says for how long it has lasted.
#[test]
fn host_that_is_being_tried_has_an_obstacle_already() {
    let moment = Duration::from_millis(10);
    for way in [Way::Lost, Way::Mute] {
        let mut world = World::new(config(1));
        world.ways.fill(way);
        world.pass(moment);
        match (way, world.obstacle(0)) {
            (Way::Lost, Some(DisconnectReason::NotConnected(after))) => assert_eq!(after, moment),
            (Way::Mute, Some(DisconnectReason::NoSession(after))) => assert_eq!(after, moment),
            (_, other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn last_of_the_hosts_opens_or_resumes_a_session_within_its_timeout_however_short_that_is() {
    for (is_open, timeout) in [(false, T), (true, T), (true, T / 10)] {
        for reachable in 0..5 {
            let mut world = World::new(Config {
                session_timeout: timeout,
                ..config(5)
            });
            if is_open {
                world.until(World::is_connected);
            }
            world.ways = vec![Way::Lost, Way::Mute, Way::Lost, Way::Mute, Way::Lost];
            world.ways[reachable] = Way::Member;
            let since = world.now;
            world.reconnect();
            assert!(world.now - since < timeout, "{:?}", world.now - since);
        }
    }
}

#[test]
fn hosts_that_all_refuse_or_close_connections_are_tried_with_pauses() {
    for way in [Way::Refused, Way::Closes] {
        let mut world = World::new(config(3));
        world.ways.fill(way);
        world.pass(Duration::from_secs(60));
        let tries = world.connects.len();
        assert!((60..=600).contains(&tries), "{tries} tries in a minute");
    }
}

#[test]
fn broken_connection_is_replaced_at_once() {
    let mut world = World::connected();
    let since = world.now;
    world.reconnect();
    assert!(world.now - since <= Duration::from_millis(50));
}

#[test]
fn session_without_hosts_waits() {
    let mut world = World::new(config(0));
    world.ways = vec![Way::Refused];
    world.pass(T);
    assert!(world.connects.len() < 1000);
}

#[test]
fn hosts_are_read_as_they_are_shown() {
    for shown in ["zk1:99", "10.0.0.7:2181", "[::1]:77"] {
        assert_eq!(Host::parse(shown).expect("a host").to_string(), shown);
    }
    assert_eq!(Host::parse("[::1]").expect("a host").port, 2181);
}
