//! Requests that wait for a connection.

use std::io;

use zookeeper_recipes_connection::{DisconnectReason, RequestError, WatchEvent, WatchedRead};
use zookeeper_recipes_protocol::{
    AddWatchMode, AddWatchRequest, EventType, OpCode, ReadRequest, RequestBody, WatcherType,
    WatchesRequest,
};

use crate::world::{T, Way, World, config};

#[test]
fn ten_thousand_requests_of_a_disconnection_are_answered_in_order_over_the_next_connection() {
    let mut world = World::connected();
    world.ways.fill(Way::Refused);
    world.lose_connection();
    for number in 0..10_000 {
        world.create(&format!("/{number}"));
    }
    world.pass(T);
    assert!(world.answers.is_empty(), "none was sent");
    world.ways.fill(Way::Member);
    world.until(World::all_answered);
    world.check();
    assert!(world.answers.values().flatten().all(Result::is_ok));
    assert!(world.order.iter().copied().eq(0..10_000));
}

#[test]
fn reads_whose_callers_have_gone_are_not_sent_and_writes_are() {
    let mut world = World::connected();
    world.ways.fill(Way::Refused);
    world.lose_connection();
    let read = || ReadRequest::new("/", false);
    let mut gone = Vec::new();
    for number in 0..1000 {
        gone.push(world.request(RequestBody::GetData(read())));
        gone.push(world.request(RequestBody::GetChildren(read())));
        gone.push(world.request(RequestBody::MultiRead(Vec::new())));
        gone.push(world.sync("/"));
        gone.push(world.watch(WatchedRead::Children, "/"));
        gone.push(world.create(&format!("/{number}")));
        world.settle();
        for caller in gone.drain(..) {
            world.leave(caller);
        }
    }
    let kept = [
        world.request(RequestBody::GetData(read())),
        world.sync("/kept"),
    ];
    world.ways.fill(Way::Member);
    world.until(World::all_answered);
    let opcodes = [
        &[OpCode::Create; 1000][..],
        &[OpCode::GetData, OpCode::Sync],
    ];
    assert_eq!(world.received(), opcodes.concat());
    assert!(kept.into_iter().all(|caller| world.outcome(caller).is_ok()));
    assert_eq!(world.watched_by_server(), 0);
    world.check();
}

/// The second server may not have applied the transaction of the event yet.
#[test]
fn requests_after_an_event_and_a_reconnect_wait_until_the_server_has_caught_up() {
    let mut world = World::connected();
    world.create("/a");
    world.watch(WatchedRead::Data, "/a");
    world.settle();
    world.change("/a", EventType::NodeDeleted);
    world.settle();
    for caught_up in [&[OpCode::Sync][..], &[]] {
        let before = world.received().len();
        world.lose_connection();
        world.create("/b");
        world.until(World::all_answered);
        let sent = [caught_up, &[OpCode::Create]].concat();
        assert_eq!(world.received()[before..], sent);
    }
    world.check();
}

/// The first read of a path has gone, and the second sets the watch.
#[test]
fn watch_that_is_wanted_is_set_though_another_one_of_its_path_is_dropped() {
    let mut world = World::connected();
    world.lose_connection();
    let gone = world.watch(WatchedRead::Children, "/");
    let kept = world.watch(WatchedRead::Children, "/");
    world.leave(gone);
    world.until(World::all_answered);
    assert_eq!(world.received(), [OpCode::GetChildren]);
    world.change("/child", EventType::NodeCreated);
    world.settle();
    let seen = [WatchEvent::Fired(EventType::NodeChildrenChanged)];
    assert_eq!(world.seen[&kept], seen);
}

#[test]
fn break_answers_what_was_sent_and_keeps_what_was_not() {
    let mut world = World::connected();
    world.ensemble.conduct.mute = vec![OpCode::Create];
    let sent = world.create("/sent");
    world.settle();
    world.lose_connection();
    let kept = world.create("/kept");
    assert_matches!(
        world.outcome(sent),
        Err(RequestError::Broken(DisconnectReason::Closed))
    );
    world.ensemble.conduct.mute.clear();
    world.until(World::all_answered);
    assert!(world.outcome(kept).is_ok());
    assert_eq!(world.ensemble.created("/sent"), 0);
}

#[test]
fn answer_says_over_which_connection_and_when() {
    let mut world = World::connected();
    world.lose_connection();
    let asked_at = world.now;
    let caller = world.create("/a");
    world.until(World::all_answered);
    let answer = world.answers[&caller][0].as_ref().unwrap();
    let exchange = answer.exchange;
    assert_eq!(exchange.connection, Some(2));
    assert!(asked_at < exchange.sent && exchange.sent <= exchange.answered);
    assert_eq!(exchange.answered, world.now);
}

#[test]
fn request_at_which_the_server_closes_or_resets_the_connection_is_named() {
    let broken = |kind: Option<io::ErrorKind>| {
        let mut world = World::connected();
        world.silence();
        let caller = world.request(RequestBody::WhoAmI);
        world.settle();
        let cause = kind.map_or(DisconnectReason::Closed, |kind| {
            io::Error::from(kind).into()
        });
        world.machine.broken(world.now, cause);
        world.settle();
        match world.outcome(caller) {
            Err(RequestError::Broken(cause)) => cause.clone(),
            other => panic!("{other:?}"),
        }
    };
    for kind in [None, Some(io::ErrorKind::ConnectionReset)] {
        let cause = broken(kind);
        assert_matches!(cause, DisconnectReason::ClosedAt(OpCode::WhoAmI));
    }
    let lost = broken(Some(io::ErrorKind::TimedOut));
    assert_matches!(lost, DisconnectReason::Io(_));
}

#[test]
fn request_for_watches_at_which_a_server_closes_the_connection_is_named() {
    let mut world = World::new(config(1));
    world.until(World::is_connected);
    world.watch(WatchedRead::Data, "/");
    world.settle();
    world.ensemble.conduct.closes_at = Some(OpCode::SetWatches);
    world.close_connection();
    world.until(|world| world.obstacle(0).is_some());
    let obstacle = world.obstacle(0);
    assert_matches!(
        obstacle,
        Some(DisconnectReason::ClosedAt(OpCode::SetWatches))
    );
}

#[test]
fn request_that_would_upset_the_session_is_refused_and_not_sent() {
    let other = |opcode| RequestBody::Other {
        opcode,
        bytes: Vec::new(),
    };
    let own = [
        RequestBody::Ping,
        RequestBody::CloseSession,
        other(OpCode::CloseSession),
        other(OpCode::Auth),
        RequestBody::RemoveWatches(WatchesRequest::new("/", WatcherType::Data)),
        RequestBody::AddWatch(AddWatchRequest::new("/", AddWatchMode::Persistent)),
    ];
    let mut world = World::connected();
    for body in own {
        let opcode = body.opcode();
        let caller = world.request(body);
        world.settle();
        let outcome = world.outcome(caller);
        assert_matches!(outcome, Err(RequestError::Reserved(named)) if *named == opcode);
    }
    assert_eq!(world.ensemble.requests, []);
    assert_eq!(world.connects.len(), 1);
}
