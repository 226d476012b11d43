//! Servers that refuse a session in the handshake.

use std::time::Duration;

use zookeeper_recipes_connection::{Config, SessionEnd, WatchedRead};
use zookeeper_recipes_protocol::{ErrorCode, OpCode};

use crate::world::{T, Way, World, config, config_with_credentials};

const HOUR: Duration = Duration::from_secs(3600);
/// A round over the hosts and the longest pauses.
const ROUND: Duration = Duration::from_secs(6);

/// A session that has seen a transaction.
fn connected(seed: u64) -> World {
    let mut world = World::new(Config { seed, ..config(3) });
    world.until(World::is_connected);
    world.create("/a");
    world.settle();
    world
}

fn closes(world: &World) -> usize {
    let received = world.received().into_iter();
    received.filter(|it| *it == OpCode::CloseSession).count()
}

#[test]
fn session_that_has_seen_more_than_the_servers_have_is_over_after_twice_its_timeout() {
    for seed in 0..20 {
        let mut world = connected(seed);
        let session = world.machine.session_id().expect("open");
        world.ensemble.zxid = 0;
        world.ensemble.sessions.clear();
        let waits = world.watch(WatchedRead::Exists, "/b");
        world.settle();
        world.close_connection();
        world.pass(2 * T);
        assert_eq!(world.end(), None, "a quorum with its data may return");
        world.pass(ROUND);
        assert_eq!(world.end(), Some(SessionEnd::Refused), "seed {seed}");
        assert!(world.seen.contains_key(&waits));
        // The session that was opened to see if the servers serve is closed again.
        assert!(world.ensemble.last_session > session && closes(&world) == 1);
        assert!(world.ensemble.sessions.is_empty());
        world.check();
    }
}

/// A network that breaks the handshakes of a session, and not those of a new one, looks the same.
#[test]
fn session_whose_handshakes_are_reset_is_over_only_after_ten_times_its_timeout() {
    for seed in 0..20 {
        let mut world = connected(seed);
        let seen = std::mem::replace(&mut world.ensemble.zxid, 0);
        world.resets = true;
        world.close_connection();
        world.pass(10 * T);
        assert_eq!(world.end(), None, "the network may recover");
        match seed % 2 {
            0 => {
                world.ensemble.zxid = seen;
                world.until(World::is_connected);
            }
            _ => {
                world.pass(ROUND);
                assert_eq!(world.end(), Some(SessionEnd::Refused), "seed {seed}");
            }
        }
        world.check();
    }
}

#[test]
fn session_lives_on_for_any_length_of_an_outage() {
    type Outage = fn(&mut World);
    let outages: [Outage; 5] = [
        |world| world.ensemble.conduct.no_quorum = true,
        |world| world.ensemble.conduct.read_only = true,
        |world| world.ways.fill(Way::Refused),
        |world| world.ways.fill(Way::Lost),
        |world| world.ways.fill(Way::Mute),
    ];
    for begin in outages {
        let mut world = connected(7);
        let session = world.machine.session_id();
        begin(&mut world);
        world.close_connection();
        world.pass(HOUR);
        assert_eq!(world.end(), None);
        world.ways.fill(Way::Member);
        world.ensemble.conduct.no_quorum = false;
        world.ensemble.conduct.read_only = false;
        world.until(World::is_connected);
        assert_eq!(world.machine.session_id(), session);
    }
}

/// Between a refusal of the session and the request for a new one, too.
#[test]
fn session_lives_on_whenever_the_quorum_returns() {
    for moment in 0..600_u32 {
        let mut world = connected(moment.into());
        let session = world.machine.session_id();
        world.ensemble.conduct.no_quorum = true;
        world.close_connection();
        world.pass(2 * T);
        for _ in 0..moment {
            world.step();
        }
        world.ensemble.conduct.no_quorum = false;
        world.until(|world| world.is_connected() || world.end().is_some());
        assert_eq!(world.end(), None, "after {moment} steps");
        assert_eq!(world.machine.session_id(), session);
        // What was opened meanwhile is closed.
        world.settle();
        assert_eq!(world.ensemble.sessions.len(), 1);
    }
}

/// A host opens a new session, and then holds the handshake of the old one for a while and closes
/// the connection, as a server does that loses its leader meanwhile.
fn loses_its_leader(world: &mut World) {
    let before = closes(world);
    world.until(|world| closes(world) > before);
    world.ways.fill(Way::Mute);
    world.until(World::has_connection);
    world.pass(T / 10);
    world.ways.fill(Way::Member);
    world.break_connection();
    world.settle();
}

#[test]
fn session_lives_on_though_the_server_loses_its_leader_when_it_is_asked_once_more() {
    for seed in 0..20 {
        let mut world = connected(seed);
        let session = world.machine.session_id();
        let seen = std::mem::replace(&mut world.ensemble.zxid, 0);
        world.close_connection();
        loses_its_leader(&mut world);
        assert_eq!(world.end(), None, "seed {seed}");
        world.ensemble.zxid = seen;
        world.until(World::is_connected);
        assert_eq!(world.machine.session_id(), session);
        world.check();
    }
}

#[test]
fn session_whose_refusals_come_late_is_over_only_after_ten_times_its_timeout() {
    for seed in 0..20 {
        let mut world = connected(seed);
        let since = world.now;
        world.ensemble.zxid = 0;
        world.close_connection();
        while world.end().is_none() {
            loses_its_leader(&mut world);
        }
        assert_eq!(world.end(), Some(SessionEnd::Refused), "seed {seed}");
        let lived = world.now - since;
        assert!((10 * T..10 * T + 2 * ROUND).contains(&lived), "{lived:?}");
        world.check();
    }
}

/// Such a server has confirmed the session before.
#[test]
fn session_lives_on_though_the_server_closes_the_connection_at_watches_set_again() {
    let mut world = connected(7);
    let session = world.machine.session_id();
    world.watch(WatchedRead::Exists, "/b");
    world.settle();
    world.ensemble.conduct.closes_at = Some(OpCode::SetWatches);
    world.ways.fill(Way::Refused);
    world.close_connection();
    world.pass(3 * T);
    world.ways.fill(Way::Member);
    world.until(|world| world.is_connected() || world.end().is_some());
    assert_eq!(world.end(), None);
    assert_eq!(world.machine.session_id(), session);
}

/// Silence is no refusal.
#[test]
fn session_lives_on_though_the_server_is_silent_when_it_is_asked_once_more() {
    let mut world = connected(7);
    let session = world.machine.session_id();
    let seen = std::mem::replace(&mut world.ensemble.zxid, 0);
    world.close_connection();
    // It refuses the session, and opens a new one.
    world.until(|world| closes(world) == 1);
    world.ways.fill(Way::Mute);
    world.pass(T);
    assert_eq!(world.end(), None);
    world.ensemble.zxid = seen;
    world.ways.fill(Way::Member);
    world.until(World::is_connected);
    assert_eq!(world.machine.session_id(), session);
}

/// A follower that is behind, while the others cannot be reached.
#[test]
fn session_is_resumed_by_a_server_that_has_caught_up_in_time() {
    let mut world = connected(7);
    let seen = std::mem::replace(&mut world.ensemble.zxid, 0);
    world.close_connection();
    world.pass(2 * T - ROUND);
    world.ensemble.zxid = seen;
    world.until(World::is_connected);
}

#[test]
fn session_whose_requests_need_sasl_is_over_at_the_first_of_any_kind() {
    let asks: [fn(&mut World); 3] = [
        |world| {
            world.create("/b");
        },
        |world| world.machine.close(world.now),
        |world| world.pass(T),
    ];
    for ask in asks {
        let mut world = connected(7);
        world.ensemble.conduct.refuses_all = Some(ErrorCode::SessionClosedRequireSaslAuth);
        ask(&mut world);
        world.until(|world| world.end().is_some());
        assert_eq!(world.end(), Some(SessionEnd::SaslRequired));
        assert_eq!(world.connects.len(), 1);
        world.check();
    }
}

#[test]
fn session_is_never_up_at_servers_that_need_sasl() {
    for config in [config(3), config_with_credentials(3)] {
        let mut world = World::new(config);
        world.ensemble.conduct.refuses_all = Some(ErrorCode::SessionClosedRequireSaslAuth);
        world.until(|world| world.end().is_some());
        assert_eq!(world.end(), Some(SessionEnd::SaslRequired));
        assert_eq!(world.states.len(), 1, "{:?}", world.states);
        assert_eq!(world.connects.len(), 1);
    }
}

/// Its answer confirms the session each time.
#[test]
fn server_that_confirms_each_session_and_breaks_it_is_tried_with_pauses() {
    for answers in [false, true] {
        let mut world = connected(7);
        let since = world.now;
        while world.now - since < Duration::from_secs(60) {
            if answers {
                let asked = world.create(&format!("/b{}", world.paths.len()));
                world.until(|world| world.is_answered(asked));
            }
            world.close_connection();
            world.pass(Duration::from_millis(1));
        }
        let tries = world.connects.len();
        assert!(tries <= 600, "{tries} tries in a minute");
    }
}
