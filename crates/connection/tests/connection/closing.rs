//! The end that a caller asks for.

use std::time::Duration;

use zookeeper_recipes_connection::{RequestError, SessionEnd, WatchEvent, WatchedRead};
use zookeeper_recipes_protocol::OpCode;

use crate::world::{T, Way, World, config};

fn ends(world: &mut World) -> Duration {
    let since = world.now;
    world.machine.close(world.now);
    world.until(|world| world.end().is_some());
    assert_eq!(world.end(), Some(SessionEnd::Closed));
    assert!(!world.has_connection() && world.machine.deadline().is_none());
    world.check();
    world.now - since
}

fn assert_closed(world: &World, caller: usize) {
    let outcome = world.outcome(caller);
    assert_matches!(outcome, Err(RequestError::Ended(SessionEnd::Closed)));
}

#[test]
fn close_comes_after_the_requests_that_were_asked_before() {
    let mut world = World::connected();
    let before = world.create("/a");
    let watch = world.watch(WatchedRead::Data, "/");
    assert_eq!(ends(&mut world), Duration::ZERO);
    let after = world.create("/b");
    world.settle();
    assert!(world.outcome(before).is_ok());
    assert_closed(&world, after);
    assert_eq!(world.seen[&watch], [WatchEvent::Unwatched]);
    assert!(world.ensemble.sessions.is_empty(), "the server closed it");
}

/// The server has not answered the close.
#[test]
fn request_that_is_asked_after_a_close_is_not_sent() {
    let mut world = World::connected();
    world.ensemble.conduct.mute = vec![OpCode::CloseSession];
    world.machine.close(world.now);
    let after = world.create("/b");
    world.settle();
    assert!(world.end().is_none());
    assert_closed(&world, after);
    assert!(!world.received().contains(&OpCode::Create));
}

#[test]
fn close_ends_after_the_timeout_if_no_server_is_reached() {
    for way in [Way::Refused, Way::Lost, Way::Mute] {
        let mut world = World::connected();
        world.ways.fill(way);
        world.lose_connection();
        let caller = world.create("/a");
        assert_eq!(ends(&mut world), T, "{way:?}");
        assert_closed(&world, caller);
    }
}

#[test]
fn close_that_the_server_does_not_answer_ends_after_the_timeout() {
    let mut world = World::connected();
    world.ensemble.conduct.mute = vec![OpCode::CloseSession];
    assert!(ends(&mut world) <= T);
}

/// Whether the close was sent, lost or answered before the connection broke, or the session has expired.
#[test]
fn close_whose_connection_breaks_is_sent_over_the_next_one() {
    for (is_sent, is_applied) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut world = World::connected();
        if is_sent {
            world.ensemble.conduct.mute = vec![OpCode::CloseSession];
            world.machine.close(world.now);
            world.settle();
            world.ensemble.conduct.mute.clear();
        }
        if is_applied {
            world.ensemble.sessions.clear();
        }
        world.lose_connection();
        assert!(!world.is_connected());
        assert!(ends(&mut world) < T, "{is_sent} {is_applied}");
        assert!(world.ensemble.sessions.is_empty());
    }
}

#[test]
fn close_before_the_session_is_opened_is_the_end_at_once() {
    for way in [Way::Refused, Way::Lost, Way::Mute] {
        let mut world = World::new(config(2));
        world.ways.fill(way);
        world.settle();
        assert_eq!(ends(&mut world), Duration::ZERO);
    }
}

#[test]
fn second_close_changes_nothing() {
    let mut world = World::connected();
    world.ways.fill(Way::Lost);
    world.lose_connection();
    world.machine.close(world.now);
    world.pass(T / 2);
    assert_eq!(ends(&mut world), T / 2);
    world.machine.close(world.now);
    world.machine.abandon();
    world.settle();
    let ended = |(_, state): &&(_, _)| Some(*state) == world.state();
    assert_eq!(world.states.iter().filter(ended).count(), 1);
}

#[test]
fn close_before_the_handshake_is_sent_opens_no_session() {
    let mut world = World::new(config(1));
    assert!(world.machine.poll().is_some(), "it connects");
    world.machine.connected(world.now);
    world.machine.close(world.now);
    let mut bytes = Vec::new();
    world.machine.transmit(world.now, &mut bytes);
    assert_eq!(bytes, [0_u8; 0], "nobody would close that session");
}
