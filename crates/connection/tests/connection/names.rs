//! Names, the addresses that they have, and hosts that are replaced.

use std::collections::BTreeSet;
use std::time::Duration;

use zookeeper_recipes_connection::{Config, DisconnectReason, Host};

use crate::world::{T, Way, World, address, config, named};

/// Longer than a session waits for the other names once one is known.
const MOMENT: Duration = Duration::from_millis(60);

/// A session at these names, in a world with so many hosts.
fn world(names: &[&str], hosts: usize, seed: u64) -> World {
    let mut world = World::new(Config {
        hosts: names.iter().copied().map(named).collect(),
        seed,
        ..config(0)
    });
    world.ways = vec![Way::Member; hosts];
    world
}

/// A session that is connected by the one name of so many hosts.
fn connected(hosts: usize, seed: u64) -> World {
    let mut world = world(&["zk"], hosts, seed);
    world.knows("zk", 0..hosts);
    world.until(World::is_connected);
    world
}

fn hosts_of(world: &World) -> Vec<usize> {
    world.connects.iter().map(|(_, host)| *host).collect()
}

fn last_host(world: &World) -> usize {
    world.connects.last().expect("a connection").1
}

/// A member without a quorum accepts connections, and closes them.
#[test]
fn next_address_of_a_name_is_tried_at_once_if_the_first_one_closes_the_connection() {
    for seed in 0..20 {
        let mut world = world(&["zk"], 2, seed);
        world.ways[0] = Way::Closes;
        world.knows("zk", 0..2);
        let since = world.now;
        world.until(World::is_connected);
        assert!(world.now - since < MOMENT, "{:?}", world.now - since);
        assert_eq!(last_host(&world), 1);
    }
}

#[test]
fn sessions_by_one_name_spread_over_its_addresses() {
    let mut of_each = [0; 3];
    for seed in 0..30 {
        of_each[last_host(&connected(3, seed))] += 1;
    }
    assert!(of_each.iter().all(|number| *number >= 5), "{of_each:?}");
}

/// The name that is looked up fastest does not get all sessions.
#[test]
fn sessions_spread_over_names_that_are_looked_up_one_after_the_other() {
    let mut of_each = [0; 2];
    for seed in 0..30 {
        let mut world = world(&["zk1", "zk2"], 2, seed);
        world.knows("zk1", 0..1);
        world.pass(MOMENT / 10);
        world.knows("zk2", 1..2);
        world.until(World::is_connected);
        of_each[last_host(&world)] += 1;
    }
    assert!(of_each.iter().all(|number| *number >= 5), "{of_each:?}");
}

#[test]
fn session_is_opened_once_one_of_the_names_is_known() {
    let mut world = world(&["slow", "zk"], 1, 7);
    world.pass(3 * T);
    assert_matches!(world.obstacle_at(None), Some(DisconnectReason::NotLookedUp(time)) if *time >= T);
    world.knows("zk", 0..1);
    let since = world.now;
    world.until(World::is_connected);
    assert!(world.now - since <= MOMENT);
}

/// Containers start in any order, and a headless service has no address before its pods are ready.
#[test]
fn name_that_does_not_resolve_is_looked_up_until_it_does() {
    let mut world = world(&["zk"], 1, 7);
    world.names.insert("zk".to_owned(), None);
    world.pass(Duration::from_secs(60));
    assert_matches!(
        world.obstacle_at(None),
        Some(DisconnectReason::NoAddress(_))
    );
    let number = world.look_ups.len();
    assert!(
        (30..=600).contains(&number),
        "{number} look-ups in a minute"
    );
    world.names.insert("zk".to_owned(), Some(Vec::new()));
    world.pass(Duration::from_secs(10));
    assert_matches!(
        world.obstacle_at(None),
        Some(DisconnectReason::NoAddress(_))
    );
    world.knows("zk", 0..1);
    let since = world.now;
    world.until(World::is_connected);
    assert!(world.now - since <= Duration::from_secs(2));
    assert!(world.obstacle_at(None).is_none());
}

/// The first name server is dead, so that each look-up lasts for five seconds.
#[test]
fn look_up_that_takes_longer_than_a_handshake_delays_no_reconnect() {
    let slow = Duration::from_secs(5);
    let mut world = world(&["zk"], 3, 7);
    world.pass(slow);
    assert_eq!(world.look_ups.len(), 1);
    world.knows("zk", 0..3);
    world.until(World::is_connected);
    for _ in 0..5 {
        world.names.clear();
        let since = world.now;
        world.reconnect();
        assert!(world.now - since <= Duration::from_millis(50));
        world.pass(slow);
        world.knows("zk", 0..3);
        world.settle();
    }
}

#[test]
fn all_name_servers_may_be_dead_while_the_last_known_addresses_serve() {
    let mut world = connected(3, 7);
    world.names.insert("zk".to_owned(), None);
    for _ in 0..5 {
        // A ping is answered meanwhile.
        world.pass(T);
        world.reconnect();
    }
    assert_eq!(world.look_ups.len(), 1 + 5);
}

#[test]
fn session_follows_a_name_whose_addresses_all_change() {
    for old in [Way::Lost, Way::Refused, Way::Mute] {
        let mut world = connected(3, 7);
        world.ways = vec![old, old, old, Way::Member, Way::Member];
        world.knows("zk", 3..5);
        let since = world.now;
        world.reconnect();
        assert!(world.now - since <= Duration::from_millis(50), "{old:?}");
        assert!(last_host(&world) >= 3);
        // The old addresses are forgotten.
        let before = world.connects.len();
        world.ways = vec![Way::Refused; 5];
        world.close_connection();
        world.pass(T);
        let tried = &hosts_of(&world)[before..];
        assert!(tried.iter().all(|host| *host >= 3), "{tried:?}");
    }
}

/// Nobody answers at the old addresses, and the name servers take a moment.
#[test]
fn try_of_an_address_that_the_name_has_lost_is_given_up_at_once() {
    let mut world = connected(2, 7);
    world.ways = vec![Way::Lost, Way::Lost, Way::Member];
    world.names.clear();
    world.close_connection();
    world.pass(Duration::from_millis(500));
    assert!(!world.is_connected());
    world.knows("zk", 2..3);
    let since = world.now;
    world.until(World::is_connected);
    assert_eq!(world.now, since);
}

#[test]
fn last_address_of_a_name_is_reached_within_the_timeout_if_all_others_are_silent() {
    for reachable in 0..5 {
        let mut world = connected(5, 7);
        world.ways = vec![Way::Lost, Way::Mute, Way::Lost, Way::Mute, Way::Lost];
        world.ways[reachable] = Way::Member;
        let since = world.now;
        world.reconnect();
        assert!(world.now - since < T, "{:?}", world.now - since);
    }
}

/// The round trip takes most of a second.
#[test]
fn each_of_fifty_addresses_has_a_tenth_of_the_timeout() {
    let mut world = connected(50, 7);
    world.ways = vec![Way::Mute; 50];
    world.lose_connection();
    world.until(World::has_connection);
    let before = world.connects.len();
    world.pass(T / 10 - Duration::from_millis(1));
    assert_eq!(world.connects.len(), before);
    world.pass(Duration::from_millis(2));
    assert_eq!(world.connects.len(), before + 1);
}

#[test]
fn session_that_leaves_its_server_connects_to_another_address_of_the_name() {
    let mut world = connected(2, 7);
    let before = last_host(&world);
    world.machine.leave_server(world.now);
    world.settle();
    world.until(World::is_connected);
    assert_ne!(last_host(&world), before);
}

#[test]
fn addresses_that_a_name_had_before_are_tried_while_it_is_looked_up() {
    let mut world = world(&["zk"], 2, 7);
    world
        .machine
        .remember(world.now, &named("zk"), &[address(0)]);
    world.until(World::is_connected);
    assert_eq!(last_host(&world), 0);
    world.knows("zk", 1..2);
    world.settle();
    assert!(world.is_connected(), "a connection that works is kept");
    world.close_connection();
    world.pass(MOMENT);
    assert_eq!(last_host(&world), 1);
}

// Hosts that are replaced.

fn replace(world: &mut World, hosts: &[&str]) {
    let hosts: Vec<Host> = hosts.iter().copied().map(named).collect();
    world.machine.set_hosts(world.now, &hosts);
    world.settle();
}

#[test]
fn session_stays_at_a_host_that_is_still_listed() {
    let mut world = connected(2, 7);
    world.knows("new", 2..3);
    world.ways.push(Way::Member);
    replace(&mut world, &["new", "zk"]);
    world.pass(T);
    assert_eq!(world.connects.len(), 1);
    // The same address by another name is the same host.
    let address = address(last_host(&world)).ip().to_string();
    replace(&mut world, &["new", &address]);
    world.pass(T);
    assert_eq!(world.connects.len(), 1);
}

#[test]
fn session_moves_to_the_new_hosts_once_one_of_them_is_known() {
    let mut world = connected(2, 7);
    world.ways.push(Way::Member);
    world.names.clear();
    replace(&mut world, &["new"]);
    world.pass(3 * T);
    assert_eq!(
        world.connects.len(),
        1,
        "it stays while no new address is known"
    );
    world.knows("new", 2..3);
    world.settle();
    world.until(World::is_connected);
    assert_eq!(last_host(&world), 2);
    let session = world.machine.session_id();
    world.ways = vec![Way::Member, Way::Member, Way::Refused];
    world.close_connection();
    world.pass(T);
    let tried: BTreeSet<usize> = hosts_of(&world)[2..].iter().copied().collect();
    assert_eq!(tried, BTreeSet::from([2]), "the old hosts are forgotten");
    world.ways[2] = Way::Member;
    world.until(World::is_connected);
    assert_eq!(world.machine.session_id(), session);
}

/// As names that come to exist only after the hosts were replaced.
#[test]
fn session_moves_to_the_new_hosts_though_nobody_knows_them_at_first() {
    let mut world = connected(2, 7);
    world.ways.push(Way::Member);
    world.names.insert("new".to_owned(), None);
    // The name servers never answer for this one.
    replace(&mut world, &["new", "slow"]);
    let before = world.look_ups.len();
    world.pass(T);
    assert_eq!(world.connects.len(), 1, "it stays meanwhile");
    let look_ups = world.look_ups.len() - before;
    assert!((3..10).contains(&look_ups), "{look_ups}");
    world.knows("new", 2..3);
    world.pass(T);
    assert!(world.is_connected());
    assert_eq!(last_host(&world), 2);
    // All is as before from now on.
    let (connects, look_ups) = (world.connects.len(), world.look_ups.len());
    world.pass(T);
    assert_eq!(
        (world.connects.len(), world.look_ups.len()),
        (connects, look_ups)
    );
}

#[test]
fn hosts_are_replaced_at_any_moment_of_a_connect() {
    for way in [Way::Lost, Way::Mute, Way::Refused] {
        for wait in [Duration::ZERO, MOMENT, T] {
            for name in ["10.0.0.2", "new"] {
                let mut world = World::new(config(1));
                world.ways = vec![way, Way::Member];
                world.knows("new", 1..2);
                world.pass(wait);
                let since = world.now;
                replace(&mut world, &[name]);
                world.until(World::is_connected);
                assert!(world.now - since <= MOMENT, "{way:?} {wait:?} {name}");
                assert_eq!(last_host(&world), 1);
            }
        }
    }
}

#[test]
fn session_that_is_over_takes_no_hosts() {
    let mut world = connected(1, 7);
    world.machine.close(world.now);
    world.until(|world| world.end().is_some());
    replace(&mut world, &["new"]);
    let new = named("new");
    world
        .machine
        .looked_up(world.now, &new, Ok(vec![address(0)]));
    world.machine.remember(world.now, &new, &[address(0)]);
    world.settle();
    assert_eq!((world.connects.len(), world.look_ups.len()), (1, 1));
}

/// A name that no look-up was asked for, or that is not listed any more.
#[test]
fn result_of_a_look_up_that_nobody_wants_changes_nothing() {
    let mut world = connected(1, 7);
    replace(&mut world, &["10.0.0.1"]);
    world
        .machine
        .looked_up(world.now, &named("zk"), Ok(vec![address(1)]));
    world.ways = vec![Way::Refused; 2];
    world.close_connection();
    world.pass(T);
    assert!(hosts_of(&world).iter().all(|host| *host == 0));
}
