//! Pings, and connections over which nothing comes.

use std::time::Duration;

use zookeeper_recipes_connection::{Break, RequestError, State};
use zookeeper_recipes_protocol::{OpCode, PathRequest, Reply, ReplyBody, RequestBody};

use crate::world::{T, World, config, create};

fn sync(path: &str) -> RequestBody {
    RequestBody::Sync(PathRequest {
        path: path.to_owned(),
    })
}

fn pings(world: &World) -> usize {
    let requests = world.ensemble.requests.iter();
    requests
        .filter(|request| request.body == RequestBody::Ping)
        .count()
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
        world.request(sync(&format!("/{number}")));
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
    assert_eq!(
        world.connects.len(),
        2,
        "the new connection has its own pings"
    );
}

#[test]
fn session_that_leaves_its_server_is_kept_at_the_next_one() {
    let mut world = World::connected();
    let session = world.machine.session_id();
    world.ensemble.conduct.mute = vec![OpCode::Sync];
    let caller = world.request(sync("/unanswered"));
    world.settle();
    world.machine.leave_server(world.now);
    // Without a connection there is no server to leave.
    world.machine.leave_server(world.now);
    world.until(World::is_connected);
    assert!(matches!(
        world.answers[&caller][..],
        [Err(RequestError::Broken(Break::Left))]
    ));
    assert_eq!(world.connects.len(), 2);
    assert_ne!(world.connects[0].1, world.connects[1].1);
    assert_eq!(world.machine.session_id(), session);
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
    assert!(matches!(
        world.outcome(caller),
        Err(RequestError::Broken(Break::Silent(_)))
    ));
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
    let cause = RequestError::Broken(Break::Unanswered {
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
fn deadline_is_never_later_than_what_it_announces() {
    let mut world = World::connected();
    for number in 0..200 {
        if number % 7 == 3 {
            world.silence();
        }
        if number % 3 == 0 {
            world.request(create(&format!("/{number}")));
        }
        // Nothing happens before the deadline.
        let deadline = world.machine.deadline().expect("a live session");
        if deadline > world.now + Duration::from_nanos(2) {
            let before = (world.states.len(), world.connects.len(), pings(&world));
            world.settle();
            let deadline = world.machine.deadline().expect("a live session");
            world.machine.elapsed(deadline - Duration::from_nanos(1));
            world.settle();
            let after = (world.states.len(), world.connects.len(), pings(&world));
            assert_eq!(before, after);
        }
        world.pass(T / 30);
    }
    assert!(
        world
            .states
            .iter()
            .any(|(_, state)| matches!(state, State::Disconnected { .. }))
    );
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
        let mut bytes = Vec::new();
        Reply::new(number + 1, 1, ReplyBody::Create { path }).encode_frame(&mut bytes);
        world.inject(&bytes);
    }
    world.settle();
    assert_eq!(
        world.connects.len(),
        1,
        "the server was answering all the time"
    );
    assert!(world.all_answered());
    world.check();
}

#[test]
fn ping_of_a_broken_connection_is_not_sent_over_the_next_one() {
    let mut world = World::connected();
    world.now = world.machine.deadline().expect("the time of a ping");
    world.machine.elapsed(world.now);
    assert!(world.machine.wants_transmit());
    world.break_connection();
    world.until(World::is_connected);
    assert_eq!((world.ensemble.handshakes.len(), pings(&world)), (2, 0));
}
