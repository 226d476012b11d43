//! The way back to the host whose connection broke.

use std::time::Duration;

use zookeeper_recipes_connection::{Config, WatchedRead};
use zookeeper_recipes_protocol::{
    EventType, OpCode, PathRequest, ReadRequest, Reply, ReplyBody, RequestBody,
};

use crate::world::{AWAY, Seen, T, Way, World, config};

/// A session that has lost its first host, and is at another one.
fn away() -> (World, usize) {
    away_from(World::returning(7))
}

/// A session of this world that has lost its first host, and is at another one.
fn away_from(mut world: World) -> (World, usize) {
    let first = world.connects[0].1;
    loses(&mut world, first);
    (world, first)
}

/// A session of this configuration that returns, has lost its first host, and is at another one.
fn away_in(config: Config) -> (World, usize) {
    let mut world = World::new(Config {
        return_after: Some(AWAY),
        ..config
    });
    world.until(World::is_connected);
    away_from(world)
}

/// The session loses this host, which refuses from then on, and comes to another one.
fn loses(world: &mut World, lost: usize) {
    assert_eq!(host(world), lost);
    world.ways[lost] = Way::Refused;
    world.close_connection();
    world.settle();
    world.until(World::is_connected);
    assert_ne!(host(world), lost);
}

/// The host of the latest connection.
fn host(world: &World) -> usize {
    world.connects.last().expect("it has connected").1
}

/// Asks what the server does not answer until [`answer`].
fn ask_slowly(world: &mut World) -> usize {
    world.ensemble.conduct.mute = vec![OpCode::Sync];
    let path = "/slow".to_owned();
    let caller = world.request(RequestBody::Sync(PathRequest { path }));
    world.settle();
    caller
}

fn exists(path: &str) -> RequestBody {
    let path = path.to_owned();
    RequestBody::Exists(ReadRequest { path, watch: false })
}

/// The bytes of the answer.
fn answer(world: &World) -> Vec<u8> {
    let mut requests = world.ensemble.requests.iter().rev();
    let asked = requests.find(|it| it.body.opcode() == OpCode::Sync);
    let xid = asked.expect("it was asked").xid;
    let path = "/slow".to_owned();
    let mut bytes = Vec::new();
    Reply::new(xid, world.ensemble.zxid, ReplyBody::Sync { path }).encode_frame(&mut bytes);
    bytes
}

#[test]
fn session_returns_to_the_host_that_it_has_lost() {
    let (mut world, first) = away();
    let session = world.machine.session_id();
    let connects = world.connects.len();
    world.pass(4 * AWAY);
    assert_ne!(host(&world), first, "the host refuses");
    assert_eq!(world.connects.len(), connects, "it stays");
    let looks = world.looks.len();
    assert!((2..=4).contains(&looks), "{looks} looks");
    world.ways[first] = Way::Member;
    world.pass(2 * AWAY + Duration::from_millis(1));
    assert!(world.is_connected());
    assert_eq!((host(&world), world.machine.session_id()), (first, session));
    let (connects, looks) = (world.connects.len(), world.looks.len());
    world.pass(10 * AWAY);
    assert_eq!((world.connects.len(), world.looks.len()), (connects, looks));
}

#[test]
fn session_that_returns_after_an_endless_pause_stays() {
    for pause in [Duration::MAX, Duration::from_secs(i64::MAX as u64)] {
        let mut world = World::returning_after(pause, 7);
        let first = host(&world);
        world.close_connection();
        world.settle();
        world.until(World::is_connected);
        assert_ne!(host(&world), first);
        world.pass(10 * AWAY);
        assert_eq!(world.looks.len(), 0);
    }
}

#[test]
fn session_that_has_lost_no_host_looks_for_none() {
    let mut world = World::returning(7);
    world.pass(10 * AWAY);
    assert_eq!((world.connects.len(), world.looks.len()), (1, 0));
    // It has left this one on its own account.
    world.machine.leave_server(world.now);
    world.pass(10 * AWAY);
    assert_eq!((world.connects.len(), world.looks.len()), (2, 0));
}

#[test]
fn session_stays_away_without_the_option() {
    let mut world = World::connected();
    world.close_connection();
    world.pass(100 * AWAY);
    assert_eq!((world.connects.len(), world.looks.len()), (2, 0));
}

#[test]
fn no_request_is_in_doubt_when_the_session_returns() {
    let (mut world, first) = away();
    let unanswered = ask_slowly(&mut world);
    world.ways[first] = Way::Member;
    let connects = world.connects.len();
    world.until(|world| !world.looks.is_empty());
    let waits = world.create("/later");
    world.settle();
    assert_eq!(world.connects.len(), connects, "a reply is outstanding");
    assert!(!world.is_answered(unanswered) && !world.is_answered(waits));
    world.inject(&answer(&world));
    world.until(|world| world.is_answered(waits));
    assert_eq!(host(&world), first);
    assert!(world.answers.values().all(|answers| answers[0].is_ok()));
    assert_eq!(world.ensemble.created["/later"], 1);
    world.check();
}

#[test]
fn event_at_the_moment_of_the_move_is_seen_once() {
    for is_read_before_the_move in [false, true] {
        let (mut world, first) = away();
        let watch = world.watch(WatchedRead::Exists, "/x");
        ask_slowly(&mut world);
        world.ways[first] = Way::Member;
        world.until(|world| !world.looks.is_empty());
        let answer = answer(&world);
        // The machine reads the answer by itself, and moves before it has read what follows.
        world.fragment = answer.len();
        if !is_read_before_the_move {
            world.inject(&answer);
        }
        world.other(|ensemble, served| {
            let created = ensemble.create(served, "/x");
            created.expect("it is new");
        });
        if is_read_before_the_move {
            world.fragment = usize::MAX;
            world.settle();
            world.inject(&answer);
        }
        world.until(|world| host(world) == first && world.is_connected());
        world.fragment = usize::MAX;
        world.pass(T);
        assert_eq!(world.seen[&watch], [Seen::Fired(EventType::NodeCreated)]);
    }
}

#[test]
fn session_goes_on_elsewhere_if_the_host_accepts_and_does_not_answer() {
    let (mut world, first) = away();
    world.ways[first] = Way::Mute;
    world.until(|world| host(world) == first);
    let left = world.now;
    world.until(World::is_connected);
    let took = world.now - left;
    assert!(took <= T / 20 + Duration::from_millis(100), "{took:?}");
    assert_ne!(host(&world), first);
    // It looks again later.
    world.ways[first] = Way::Member;
    world.pass(3 * AWAY);
    assert_eq!(host(&world), first);
    assert!(world.is_connected());
}

#[test]
fn move_of_a_session_with_a_long_timeout_takes_no_longer_than_another_try() {
    let hour = Duration::from_secs(3_600);
    let (mut world, first) = away_in(Config {
        session_timeout: hour,
        ..config(3)
    });
    world.ways[first] = Way::Mute;
    world.until(|world| host(world) == first);
    let since = world.now;
    world.until(World::is_connected);
    let took = world.now - since;
    assert!(took <= Duration::from_secs(10), "{took:?}");
}

/// There is a pause after other failures, once each host was tried.
#[test]
fn session_whose_move_fails_is_back_without_a_pause_if_there_is_no_third_host() {
    for seed in 0..20 {
        let (mut world, first) = away_in(Config { seed, ..config(2) });
        world.ways[first] = Way::Mute;
        world.until(|world| host(world) == first);
        let since = world.now;
        world.until(World::is_connected);
        assert!(world.now - since <= T / 20, "seed {seed}");
        assert_ne!(host(&world), first);
    }
}

#[test]
fn session_whose_move_fails_is_back_at_once_at_the_server_that_it_has_left() {
    for seed in 0..20 {
        let (mut world, first) = away_from(World::returning(seed));
        world.ways[first] = Way::Mute;
        let left = host(&world);
        world.until(|world| host(world) == first);
        let (since, connects) = (world.now, world.connects.len());
        world.until(World::is_connected);
        let took = world.now - since;
        assert_eq!((host(&world), world.connects.len()), (left, connects + 1));
        assert!(took <= T / 20, "seed {seed}: {took:?}");
    }
}

/// As [`away`], after five moves to the lost host, which accepts and does not answer.
fn away_after_moves_in_vain() -> (World, usize) {
    let (mut world, first) = away();
    world.ways[first] = Way::Mute;
    for _ in 0..5 {
        until_it_looks(&mut world);
        world.until(|world| !world.is_connected());
        world.until(World::is_connected);
    }
    (world, first)
}

/// Runs until the next look for the lost host, and says how long that took.
fn until_it_looks(world: &mut World) -> Duration {
    world.until(World::is_connected);
    let (since, looks) = (world.now, world.looks.len());
    for _ in 0..100_000 {
        if world.looks.len() > looks {
            return world.now - since;
        }
        world.step();
    }
    panic!("it does not look: {:?}", world.machine);
}

/// The session returns to this host, and loses it again after so long. Says how long it took until
/// the look.
fn returns_for(world: &mut World, lost: usize, stays: Duration) -> Duration {
    world.ways[lost] = Way::Member;
    let looked = until_it_looks(world);
    world.until(|world| host(world) == lost && world.is_connected());
    world.pass(stays);
    loses(world, lost);
    looked
}

#[test]
fn session_returns_ever_more_rarely_to_a_host_that_accepts_and_does_not_answer() {
    let (mut world, first) = away();
    world.ways[first] = Way::Mute;
    let mut pause = AWAY;
    for _ in 0..13 {
        let looked = until_it_looks(&mut world);
        assert!(looked >= pause && looked <= 2 * pause, "{looked:?}");
        world.until(|world| !world.is_connected());
        pause = (2 * pause).min(1024 * AWAY);
    }
    returns_for(&mut world, first, AWAY);
    assert!(until_it_looks(&mut world) <= 2 * AWAY);
}

#[test]
fn session_returns_ever_more_rarely_to_a_host_that_breaks_soon_again() {
    let (mut world, first) = away();
    let mut pause = AWAY;
    for _ in 0..6 {
        let looked = returns_for(&mut world, first, AWAY - Duration::from_millis(1));
        assert!(looked >= pause && looked <= 2 * pause, "{looked:?}");
        pause *= 2;
    }
    returns_for(&mut world, first, AWAY);
    assert!(until_it_looks(&mut world) <= 2 * AWAY);
}

/// A network may cut each connection after a while.
#[test]
fn connection_that_breaks_soon_after_no_move_makes_no_look_rarer() {
    let (mut world, first) = away();
    for _ in 0..30 {
        let lost = host(&world);
        world.ways.fill(Way::Member);
        world.close_connection();
        world.settle();
        world.until(World::is_connected);
        assert_ne!(host(&world), lost);
    }
    world.ways.fill(Way::Refused);
    let present = host(&world);
    assert_ne!(present, first);
    for _ in 0..5 {
        assert!(until_it_looks(&mut world) <= 2 * AWAY);
    }
}

#[test]
fn host_pays_for_no_move_to_another_one() {
    let (mut world, first) = away_after_moves_in_vain();
    world.ways[first] = Way::Member;
    world.until(|world| host(world) == first && world.is_connected());
    world.request(exists("/"));
    world.settle();
    world.machine.leave_server(world.now);
    world.until(|world| host(world) != first && world.is_connected());
    let second = host(&world);
    loses(&mut world, second);
    assert!(until_it_looks(&mut world) <= 2 * AWAY);
}

/// A server can hang after it has confirmed the session.
#[test]
fn session_is_back_in_time_if_the_host_confirms_it_and_then_hangs() {
    for seed in 0..20 {
        let (mut world, first) = away_from(World::returning(seed));
        let left = host(&world);
        ask_slowly(&mut world);
        world.ways[first] = Way::Member;
        world.until(|world| !world.looks.is_empty());
        world.ensemble.conduct.mute = vec![OpCode::Ping];
        world.inject(&answer(&world));
        let waits = world.create("/later");
        world.until(|world| host(world) == first);
        let (since, connects) = (world.now, world.connects.len());
        world.until(World::is_connected);
        let took = world.now - since;
        assert_eq!((host(&world), world.connects.len()), (left, connects + 1));
        assert!(took <= T / 20, "seed {seed}: {took:?}");
        world.ensemble.conduct.mute.clear();
        world.until(|world| world.is_answered(waits));
        assert_eq!(world.ensemble.created["/later"], 1);
        assert!(world.answers[&waits][0].is_ok(), "no request is in doubt");
        assert!(until_it_looks(&mut world) > 2 * AWAY);
    }
}

/// The session comes to the host in order, because the others refuse it.
#[test]
fn host_that_serves_again_is_forgiven_without_a_move() {
    let (mut world, first) = away_after_moves_in_vain();
    world.ways.fill(Way::Refused);
    world.ways[first] = Way::Member;
    world.close_connection();
    world.settle();
    world.until(World::is_connected);
    assert_eq!(host(&world), first);
    world.pass(AWAY);
    world.ways.fill(Way::Member);
    loses(&mut world, first);
    assert!(until_it_looks(&mut world) <= 2 * AWAY);
}

/// Its znodes would last for the session timeout if the process ends meanwhile.
#[test]
fn session_that_is_closed_moves_no_more() {
    let (mut world, first) = away();
    ask_slowly(&mut world);
    world.ways[first] = Way::Member;
    world.until(|world| !world.looks.is_empty());
    let connects = world.connects.len();
    world.machine.close(world.now);
    world.inject(&answer(&world));
    world.until(|world| world.end().is_some());
    assert_eq!(world.connects.len(), connects);
}

#[test]
fn looks_for_a_host_that_refuses_or_is_behind_do_not_grow_rarer() {
    let (mut world, first) = away();
    for _ in 0..10 {
        assert!(until_it_looks(&mut world) <= 2 * AWAY);
    }
    // A server closes the connection of a session that has seen more than itself.
    world.ways[first] = Way::Mute;
    for _ in 0..10 {
        assert!(until_it_looks(&mut world) <= 2 * AWAY);
        world.until(|world| host(world) == first);
        world.close_connection();
        world.until(|world| host(world) != first);
    }
}

#[test]
fn sessions_do_not_return_in_step() {
    let mut returns: Vec<Duration> = (0..50)
        .map(|seed| {
            let mut world = World::returning(seed);
            let first = world.connects[0].1;
            world.close_connection();
            world.settle();
            world.until(|world| world.connects.len() == 2 && world.is_connected());
            let since = world.now;
            world.until(|world| host(world) == first);
            world.now - since
        })
        .collect();
    returns.sort_unstable();
    assert!(returns[0] >= AWAY && returns[49] <= 2 * AWAY, "{returns:?}");
    returns.dedup();
    assert!(returns.len() > 45, "{returns:?}");
}
