//! The answer to the request for a session.

use std::time::Duration;

use zookeeper_recipes_connection::{Config, ConnectionState, DisconnectReason, SessionEnd};
use zookeeper_recipes_protocol::{ConnectResponse, OpCode, Reply, ReplyBody, xid};

use crate::peer::{frame, ping_reply};
use crate::world::{T, Way, World, config, config_with_credentials};

fn granted(world: &World) -> Duration {
    match world.state() {
        Some(ConnectionState::Connected { timeout, .. }) => timeout,
        other => panic!("{other:?}"),
    }
}

fn respond(world: &mut World, timeout: i32, session_id: i64) {
    world.inject(&response(timeout, session_id));
    world.settle();
}

fn response(timeout: i32, session_id: i64) -> Vec<u8> {
    let response = ConnectResponse {
        protocol_version: 0,
        timeout,
        session_id,
        password: vec![9; 16],
        read_only: Some(false),
    };
    let mut bytes = Vec::new();
    response.encode_frame(&mut bytes);
    bytes
}

/// A session at a reconnect that no server has answered yet.
fn greeting(config: Config) -> (World, i64) {
    let mut world = World::new(config);
    world.until(World::is_connected);
    let session = world.machine.session_id().expect("a session");
    world.ways.fill(Way::Mute);
    world.close_connection();
    world.until(World::has_connection);
    (world, session)
}

#[test]
fn timeout_is_the_one_that_the_server_grants_and_the_shortest_is_reported() {
    let mut world = World::new(config(3));
    world.ensemble.conduct.grants = Some(4000);
    world.until(World::is_connected);
    assert_eq!(granted(&world), Duration::from_secs(4));
    let mut shortest = 4000_u16;
    for grants in [6000_u16, 2000, 9000] {
        world.ensemble.conduct.grants = Some(grants.into());
        world.reconnect();
        shortest = shortest.min(grants);
        assert_eq!(granted(&world).as_millis(), shortest.into());
        let ping_at = world.now + Duration::from_millis(grants.into()) * 3 / 20;
        assert_eq!(world.machine.deadline(), Some(ping_at));
    }
    let handshakes = world.ensemble.handshakes.iter();
    let asked = handshakes.map(|handshake| handshake.timeout);
    assert!(asked.eq([10_000; 4]), "each server is asked for T");
}

#[test]
fn wrong_password_at_a_reconnect_is_the_end() {
    let mut world = World::connected();
    let passwords = world.ensemble.sessions.values_mut();
    passwords.for_each(|password| password.push(1));
    world.close_connection();
    world.until(|world| world.end().is_some());
    assert_eq!(world.end(), Some(SessionEnd::Expired));
}

#[test]
fn another_session_at_a_reconnect_is_closed_whatever_the_server_sends_behind_it() {
    for behind in [
        &[][..],
        &[0xff; 4],
        &[0, 0, 0, 1, 7],
        &response(10_000, 4712),
    ] {
        let (mut world, _) = greeting(config(3));
        let before = world.bytes_to_server;
        world.inject(&[&response(10_000, 4711)[..], behind].concat());
        world.settle();
        assert_eq!(world.end(), Some(SessionEnd::Expired));
        assert!(world.bytes_to_server > before, "{behind:?}");
        assert!(!world.has_connection());
    }
}

#[test]
fn no_session_at_a_reconnect_is_the_end() {
    for (timeout, is_own) in [(10_000, false), (0, true)] {
        let (mut world, session) = greeting(config(3));
        respond(&mut world, timeout, session * i64::from(is_own));
        assert_eq!(world.end(), Some(SessionEnd::Expired), "{timeout} {is_own}");
    }
}

#[test]
fn server_that_grants_no_session_is_left() {
    let mut world = World::new(config(2));
    world.ways.fill(Way::Mute);
    world.until(World::has_connection);
    let host = world.connects[0].1;
    world.ways[1 - host] = Way::Member;
    respond(&mut world, 0, 0);
    assert_matches!(world.obstacle(host), Some(DisconnectReason::NotGranted));
    world.until(World::is_connected);
}

/// The servers grant 4 s to a session that asks for 100 ms, and are three round trips of 300 ms away.
#[test]
fn session_that_asks_for_a_short_timeout_is_opened_at_a_distant_server() {
    let mut world = World::new(Config {
        session_timeout: Duration::from_millis(100),
        ..config(1)
    });
    world.ways.fill(Way::Mute);
    world.until(World::has_connection);
    world.pass(Duration::from_millis(900));
    assert_eq!(world.connects.len(), 1);
    respond(&mut world, 4_000, 1);
    world.inject(&ping_reply());
    world.settle();
    assert_eq!(granted(&world), Duration::from_secs(4));
}

#[test]
fn server_that_is_behind_is_left_until_it_has_caught_up() {
    let mut world = World::connected();
    world.create("/a");
    world.settle();
    let seen = std::mem::replace(&mut world.ensemble.zxid, 0);
    world.close_connection();
    world.pass(T);
    assert!(!world.is_connected() && world.end().is_none());
    assert!(
        (0..3).any(|host| matches!(world.obstacle(host), Some(DisconnectReason::ClosedUnheard)))
    );
    world.ensemble.zxid = seen;
    world.until(World::is_connected);
}

#[test]
fn server_that_only_reads_is_left_and_its_word_ends_no_session() {
    let mut world = World::connected();
    let session = world.machine.session_id();
    world.ensemble.conduct.read_only = true;
    world.close_connection();
    world.pass(T);
    assert!(!world.is_connected(), "it has no quorum");
    let sessions = std::mem::take(&mut world.ensemble.sessions);
    world.pass(T);
    assert_eq!(world.end(), None, "it cannot know that it has expired");
    world.ensemble.sessions = sessions;
    world.ensemble.conduct.read_only = false;
    world.until(World::is_connected);
    assert_eq!(world.machine.session_id(), session);
}

#[test]
fn timeout_of_any_length_neither_panics_nor_burns() {
    for timeout in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let mut world = World::new(Config {
            session_timeout: timeout,
            ..config(1)
        });
        world.ways.fill(Way::Lost);
        world.pass(Duration::from_secs(60));
        let tries = world.connects.len();
        assert!((2..=6000).contains(&tries), "{timeout:?}: {tries} tries");
        world.machine.close(world.now);
    }
}

#[test]
fn granted_timeout_of_a_millisecond_does_not_burn() {
    let mut world = World::new(config(1));
    world.ensemble.conduct.grants = Some(1);
    world.until(World::is_connected);
    world.ways.fill(Way::Lost);
    world.close_connection();
    let before = world.connects.len();
    world.pass(Duration::from_secs(60));
    let tries = world.connects.len() - before;
    assert!(tries <= 6000, "{tries} tries in a minute");
    world.ensemble.sessions.clear();
    world.ways.fill(Way::Member);
    world.until(|world| world.end().is_some());
}

#[test]
fn timeout_is_reported_before_the_credentials_are_answered_if_it_is_shorter() {
    for (grants, is_reported) in [(4_000, true), (10_000, false), (12_000, false)] {
        let (mut world, session) = greeting(config_with_credentials(1));
        let before = world.states.len();
        respond(&mut world, grants, session);
        let reported = &world.states[before..];
        assert_eq!(!reported.is_empty(), is_reported, "{reported:?}");
    }
}

#[test]
fn answer_to_watches_that_were_not_set_again_breaks_the_connection() {
    let (mut world, session) = greeting(config_with_credentials(1));
    respond(&mut world, 10_000, session);
    world.inject(&frame(&Reply::new(xid::SET_WATCHES, 0, ReplyBody::Empty)));
    world.settle();
    assert_matches!(
        world.obstacle(0),
        Some(DisconnectReason::NotAsked(xid::SET_WATCHES))
    );
}

#[test]
fn timeout_that_is_shortened_is_reported_although_the_connection_breaks_at_once() {
    let mut world = World::new(config_with_credentials(2));
    world.until(World::is_connected);
    world.ensemble.conduct.grants = Some(4000);
    world.ensemble.conduct.closes_at = Some(OpCode::Auth);
    world.close_connection();
    world.until(|world| world.ensemble.handshakes.len() == 2);
    world.ways.fill(Way::Lost);
    world.pass(T);
    // The server expires the session by the T that it has granted, although no request passed.
    let timeout = Duration::from_secs(4);
    assert_eq!(
        world.state(),
        Some(ConnectionState::Disconnected { timeout })
    );
    // A caller that looks late sees the shortest T, too.
    world.ways.fill(Way::Member);
    world.ensemble.conduct.closes_at = None;
    world.ensemble.conduct.grants = Some(10_000);
    world.until(World::is_connected);
    assert_eq!(granted(&world), timeout);
}
