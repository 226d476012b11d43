//! The way back to the host whose connection broke.

use std::time::Duration;

use zookeeper_recipes_connection::WatchedRead;
use zookeeper_recipes_protocol::{EventType, OpCode, PathRequest, Reply, ReplyBody, RequestBody};

use crate::world::{AWAY, Seen, T, Way, World};

/// A session that has lost its first host, and is at another one.
fn away() -> (World, usize) {
    let mut world = World::returning(7);
    let first = world.connects[0].1;
    world.ways[first] = Way::Refused;
    world.close_connection();
    world.settle();
    world.until(World::is_connected);
    assert_ne!(host(&world), first);
    (world, first)
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
