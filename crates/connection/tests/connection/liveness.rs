//! Pings, and connections over which nothing comes.

use std::collections::BTreeSet;

use zookeeper_recipes_connection::{DisconnectReason, RequestError};
use zookeeper_recipes_protocol::{OpCode, Reply, ReplyBody};

use crate::peer::frame;
use crate::world::{T, World, config};

fn pings(world: &World) -> usize {
    let received = world.received().into_iter();
    received.filter(|opcode| *opcode == OpCode::Ping).count()
}

#[test]
fn idle_session_pings_at_least_each_third_of_its_timeout() {
    let mut world = World::connected();
    world.pass(10 * T);
    assert!((30..=100).contains(&pings(&world)), "{}", pings(&world));
    assert_eq!(world.connects.len(), 1);
}

#[test]
fn busy_session_does_not_ping() {
    let mut world = World::connected();
    for number in 0..100 {
        world.sync(&format!("/{number}"));
        world.pass(T / 10);
    }
    assert_eq!(pings(&world), 0);
}

#[test]
fn idle_connection_that_is_dead_is_replaced_before_the_session_can_expire() {
    let mut world = World::connected();
    world.silence();
    let since = world.now;
    world.until(|world| world.connects.len() == 2);
    assert!(world.now - since <= T * 2 / 3, "{:?}", world.now - since);
    world.until(World::is_connected);
    world.pass(5 * T);
    assert_eq!(world.connects.len(), 2, "the new one has its own pings");
}

#[test]
fn session_that_leaves_its_server_is_kept_at_the_next_one() {
    let mut world = World::connected();
    let session = world.machine.session_id();
    world.ensemble.conduct.mute = vec![OpCode::Sync];
    let caller = world.sync("/unanswered");
    world.settle();
    world.machine.leave_server(world.now);
    // Without a connection there is no server to leave.
    world.machine.leave_server(world.now);
    world.until(World::is_connected);
    let answers = &world.answers[&caller][..];
    assert_matches!(answers, [Err(RequestError::Broken(DisconnectReason::Left))]);
    assert_eq!(world.connects.len(), 2);
    assert_ne!(world.connects[0].1, world.connects[1].1);
    assert_eq!(world.machine.session_id(), session);
}

#[test]
fn session_that_leaves_one_server_after_another_is_at_each_before_it_comes_back() {
    let mut world = World::new(config(5));
    world.until(World::is_connected);
    for servers in 2..=5 {
        world.pass(T);
        world.machine.leave_server(world.now);
        world.settle();
        world.until(World::is_connected);
        let tried: BTreeSet<_> = world.connects.iter().map(|it| it.1).collect();
        assert_eq!(tried.len(), servers, "{:?}", world.connects);
    }
}

#[test]
fn session_leaves_no_server_that_is_its_only_one() {
    let mut world = World::new(config(1));
    world.until(World::is_connected);
    world.machine.leave_server(world.now);
    world.pass(T);
    assert_eq!(world.connects.len(), 1);
}

#[test]
fn busy_connection_that_is_dead_is_replaced_and_its_requests_have_an_unknown_outcome() {
    let mut world = World::connected();
    world.silence();
    let caller = world.create("/a");
    let since = world.now;
    world.until(|world| world.connects.len() == 2);
    assert!(world.now - since <= T / 2);
    let outcome = world.outcome(caller);
    assert_matches!(
        outcome,
        Err(RequestError::Broken(DisconnectReason::Silent(_)))
    );
}

#[test]
fn request_that_is_never_answered_while_pings_are_breaks_the_connection() {
    let mut world = World::connected();
    world.ensemble.conduct.mute = vec![OpCode::Create];
    let caller = world.create("/a");
    let since = world.now;
    world.until(|world| world.is_answered(caller));
    assert!((T..=2 * T).contains(&(world.now - since)));
    let outcome = world.outcome(caller);
    let cause = RequestError::Broken(DisconnectReason::Unanswered {
        opcode: OpCode::Create,
        after: T,
    });
    assert_eq!(format!("{outcome:?}"), format!("{:?}", Err::<(), _>(cause)));
}

#[test]
fn process_that_was_paused_gives_the_server_time_to_answer() {
    let mut world = World::connected();
    world.now += 3 * T;
    world.machine.elapsed(world.now);
    world.settle();
    assert!(world.is_connected());
    assert_eq!((world.connects.len(), pings(&world)), (1, 1));
}

#[test]
fn requests_that_a_slow_server_answers_one_by_one_are_all_answered() {
    let mut world = World::connected();
    world.ensemble.conduct.mute = vec![OpCode::Create, OpCode::Ping];
    for number in 0..40 {
        world.create(&format!("/{number}"));
    }
    for number in 0..40 {
        world.pass(T / 10);
        let path = format!("/{number}");
        world.inject(&frame(&Reply::new(
            number + 1,
            1,
            ReplyBody::Create { path },
        )));
    }
    world.settle();
    assert_eq!(world.connects.len(), 1, "it answered all the time");
    assert!(world.all_answered());
    world.check();
}

#[test]
fn ping_of_a_broken_connection_is_not_sent_over_the_next_one() {
    let mut world = World::connected();
    let ping_at = world.machine.deadline().expect("the time of a ping");
    world.now = ping_at;
    world.machine.elapsed(world.now);
    assert!(world.machine.deadline() > Some(ping_at), "it is asked");
    world.break_connection();
    world.until(World::is_connected);
    assert_eq!((world.ensemble.handshakes.len(), pings(&world)), (2, 0));
}
