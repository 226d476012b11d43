//! Servers that take long to confirm a session.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use zookeeper_recipes_connection::{Config, SessionEnd};

use crate::world::{T, Way, World, config};

const SECOND: Duration = Duration::from_secs(1);
/// The longest pause between two tries.
const PAUSE: Duration = Duration::from_secs(2);
/// Once the holds are lost, a host has at least this time, and the time doubles up to the longest.
const MIN_HANDSHAKE: Duration = Duration::from_secs(1);
const MAX_HANDSHAKE: Duration = Duration::from_secs(60);

/// A session with this timeout, whose servers are fast and expire it if they do not hear from it.
fn connected(timeout: Duration, hosts: usize, seed: u64) -> World {
    let mut world = World::new(Config {
        session_timeout: timeout,
        seed,
        ..config(hosts)
    });
    world.until(World::is_connected);
    world.expires_after = Some(timeout);
    world
}

/// From now on each host is like this, and no connection is left.
fn break_and_become(world: &mut World, ways: Vec<Way>) {
    world.ways = ways;
    world.lose_connection();
}

fn is_over(world: &World) -> bool {
    world.is_connected() || world.end().is_some()
}

#[test]
fn session_is_resumed_though_each_handshake_takes_longer_than_its_timeout_allows() {
    for (timeout, hosts, delay) in [(4 * SECOND, 5, 700), (SECOND, 3, 400), (T, 3, 3_500)] {
        let mut world = connected(timeout, hosts, 7);
        let delay = Duration::from_millis(delay);
        let since = world.now;
        break_and_become(&mut world, vec![Way::Slow(delay); hosts]);
        world.until(is_over);
        let took = world.now - since;
        assert!(world.is_connected(), "{timeout:?}: {:?}", world.end());
        let round = hosts as u32 * 2 * delay.max(MIN_HANDSHAKE);
        assert!(took <= timeout + round + PAUSE, "{timeout:?}: {took:?}");
    }
}

/// The session can still be saved, and the last of the hosts may be the only one that answers.
#[test]
fn no_host_has_more_time_before_the_session_timeout_has_passed() {
    let mut world = connected(4 * SECOND, 5, 7);
    break_and_become(&mut world, vec![Way::Mute; 5]);
    let (since, first) = (world.now, world.connects.len());
    world.pass(4 * SECOND);
    let tried = world.connects[first..].iter().zip(&world.limits[first..]);
    let hurried = tried.filter(|((at, _), _)| *at < since + 4 * SECOND);
    let limits: Vec<Duration> = hurried.map(|(_, limit)| *limit).collect();
    assert!(limits.len() >= 5, "{limits:?}");
    assert!(
        limits.iter().all(|limit| *limit == 4 * SECOND / 6),
        "{limits:?}"
    );
}

/// The first tries are too short for each of the servers, whichever comes first in its round.
#[test]
fn session_that_leaves_its_server_comes_to_another_one_though_each_handshake_takes_long() {
    for seed in 0..20 {
        let mut world = connected(4 * SECOND, 3, seed);
        world.ways = vec![Way::Slow(1_715 * SECOND / 1_000); 3];
        let place = |world: &World| world.connects.last().expect("it is connected").1;
        let left = place(&world);
        world.machine.leave_server(world.now);
        world.until(is_over);
        assert!(world.is_connected(), "seed {seed}: {:?}", world.end());
        assert_ne!(place(&world), left, "seed {seed}");
    }
}

#[test]
fn first_session_is_opened_though_the_handshake_takes_long() {
    for (hosts, delay) in [(1, 3), (3, 3), (5, 30)] {
        let mut world = World::new(config(hosts));
        world.ways = vec![Way::Slow(delay * SECOND); hosts];
        world.until(World::is_connected);
        let opened = world.ensemble.last_session;
        assert!(opened <= 8 * hosts as i64, "{opened} sessions were opened");
    }
}

/// It costs the others its own time in each round, and its time is limited.
#[test]
fn host_that_hangs_for_an_hour_delays_the_others_by_a_minute_at_most() {
    let mut world = connected(T, 3, 7);
    break_and_become(&mut world, vec![Way::Refused, Way::Mute, Way::Refused]);
    world.pass(3600 * SECOND);
    let gaps = world.connects.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let longest = gaps.max().expect("it tries");
    assert!(
        longest > MAX_HANDSHAKE / 2 && longest <= MAX_HANDSHAKE + PAUSE,
        "{longest:?}"
    );
    world.ways[0] = Way::Member;
    let since = world.now;
    world.until(is_over);
    let took = world.now - since;
    assert!(took <= MAX_HANDSHAKE + 2 * PAUSE, "{took:?}");
}

#[test]
fn hosts_that_accept_no_connection_have_four_seconds_at_most() {
    let mut world = connected(T, 3, 7);
    break_and_become(&mut world, vec![Way::Lost; 3]);
    world.pass(3600 * SECOND);
    assert_eq!(world.limits.iter().max(), Some(&(4 * SECOND)));
    // A host that accepts has not cost the others anything.
    world.ways = vec![Way::Lost, Way::Mute, Way::Member];
    let since = world.now;
    world.until(is_over);
    let took = world.now - since;
    assert!(took <= 4 * 4 * SECOND + PAUSE, "{took:?}");
}

#[test]
fn host_has_its_usual_time_again_once_the_session_has_lasted() {
    let mut world = connected(4 * SECOND, 3, 7);
    break_and_become(&mut world, vec![Way::Slow(3 * SECOND); 3]);
    world.until(is_over);
    assert!(world.is_connected());
    world.pass(60 * SECOND);
    let before = world.limits.len();
    break_and_become(&mut world, vec![Way::Mute; 3]);
    world.pass(7 * SECOND);
    assert_eq!(world.limits[before..][..6], [MIN_HANDSHAKE; 6]);
}

/// How long after the break of its connection a session is back or over, at the latest, if each host
/// needs a limit of less than `enough`.
///
/// Until T has passed, the limits are short. Then each round takes twice as long as the one before.
fn latest(timeout: Duration, hosts: u32, enough: Duration) -> Duration {
    let hurried = (timeout / (hosts + 1)).min(timeout * 2 / 5);
    let least = MIN_HANDSHAKE.max(hurried.min(10 * SECOND));
    let limits = (0..).map(|round| 2_u32.pow(round) * least);
    let rounds = 1 + limits.take_while(|limit| *limit <= enough).count() as u32;
    let tried = (2_u32.pow(rounds) - 1) * least;
    // The first try of these may have begun before T had passed.
    timeout + hurried + hosts * tried + rounds * PAUSE
}

/// A host may be the first of one round and the last of the next.
#[test]
fn each_host_has_each_limit_wherever_it_is_in_the_rounds() {
    let (timeout, delay) = (Duration::from_millis(200), 16 * SECOND);
    for seed in 0..200 {
        let ways = vec![Way::Slow(delay), Way::Refused, Way::Mute, Way::Mute];
        let mut world = connected(timeout, 4, seed);
        break_and_become(&mut world, ways);
        world.pass(latest(timeout, 4, delay));
        assert!(is_over(&world), "seed {seed}: {:?}", world.state());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400,
        failure_persistence: None, ..ProptestConfig::default() })]

    /// A session that is back deletes the holds that it has lost. One that the servers have expired
    /// bars nobody either. They expire it once a try takes longer than T.
    #[test]
    fn lost_session_is_back_or_expired_for_any_length_of_the_handshakes(
        timeout in 200_u64..40_000,
        delay in 0_u64..50_000,
        others in vec(0_usize..4, 0..5),
        place in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let (timeout, delay) = (Duration::from_millis(timeout), Duration::from_millis(delay));
        let ways = [Way::Slow(delay), Way::Mute, Way::Lost, Way::Refused];
        let mut ways: Vec<Way> = others.iter().map(|other| ways[*other]).collect();
        ways.insert(place.index(ways.len() + 1), Way::Slow(delay));
        let mut world = connected(timeout, ways.len(), seed);
        let hosts = ways.len() as u32;
        break_and_become(&mut world, ways);
        let barred = latest(timeout, hosts, delay.min(timeout)) + timeout;
        world.pass(barred);
        prop_assert!(
            is_over(&world) || world.has_expired(),
            "after {barred:?}: {:?}", world.state(),
        );
        let unknown = latest(timeout, hosts, delay);
        world.pass(unknown.saturating_sub(barred));
        prop_assert!(is_over(&world), "after {unknown:?}: {:?}", world.state());
        prop_assert!(matches!(world.end(), None | Some(SessionEnd::Expired)));
    }
}
