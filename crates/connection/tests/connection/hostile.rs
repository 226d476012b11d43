//! Bytes from a server that follows no protocol.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use zookeeper_recipes_connection::{Break, RequestError, State};
use zookeeper_recipes_protocol::{
    ErrorCode, EventType, KeeperState, PathRequest, ReadRequest, Reply, ReplyBody, RequestBody,
    WatcherEvent, xid,
};

use crate::bytes::break_a_connection_at_most;
use crate::model::ping_reply;
use crate::world::{T, World, config};

fn frame(reply: &Reply) -> Vec<u8> {
    let mut bytes = Vec::new();
    reply.encode_frame(&mut bytes);
    bytes
}

fn sync() -> RequestBody {
    RequestBody::Sync(PathRequest {
        path: "/".to_owned(),
    })
}

/// Why the connection broke at these bytes.
fn break_at(bytes: &[u8]) -> Break {
    let mut world = World::connected();
    world.ensemble.conduct.mute = vec![zookeeper_recipes_protocol::OpCode::Sync];
    let caller = world.request(sync());
    world.settle();
    world.inject(bytes);
    world.settle();
    assert!(matches!(world.state(), Some(State::Disconnected { .. })));
    world.check();
    let cause = match world.outcome(caller) {
        Err(RequestError::Broken(cause)) => cause.clone(),
        other => panic!("{other:?}"),
    };
    world.until(World::is_connected);
    cause
}

#[test]
fn negative_length_breaks_the_connection() {
    assert!(matches!(break_at(&[0xff; 4]), Break::Frame(_)));
}

#[test]
fn length_of_2_gib_breaks_the_connection_before_its_bytes_come() {
    assert!(matches!(
        break_at(&[0x7f, 0xff, 0xff, 0xff]),
        Break::Frame(_)
    ));
}

#[test]
fn length_above_the_limit_breaks_the_connection_and_one_at_the_limit_does_not() {
    let limit = u32::try_from(config(1).reply_limit).unwrap();
    assert!(matches!(
        break_at(&(limit + 1).to_be_bytes()),
        Break::Frame(_)
    ));
    let mut world = World::connected();
    world.inject(&limit.to_be_bytes());
    world.settle();
    assert!(world.is_connected());
}

/// The same request would get the same reply over each connection.
#[test]
fn reply_to_a_read_that_is_too_long_is_one_error_and_the_connection_continues() {
    let limit = config(1).reply_limit;
    let length = limit + 1;
    let mut world = World::connected();
    world.ensemble.conduct.mute = vec![zookeeper_recipes_protocol::OpCode::GetChildren];
    let caller = world.request(RequestBody::GetChildren(ReadRequest {
        path: "/".to_owned(),
        watch: false,
    }));
    world.settle();
    let mut bytes = u32::try_from(length).unwrap().to_be_bytes().to_vec();
    let header = frame(&Reply::new(1, 0, ReplyBody::Empty));
    bytes.extend(&header[4..]);
    // The header may come in pieces, and the body, too.
    world.inject(&bytes[..10]);
    world.settle();
    assert!(!world.is_answered(caller));
    world.inject(&bytes[10..]);
    world.settle();
    assert!(matches!(
        world.outcome(caller),
        Err(RequestError::TooLong { .. })
    ));
    world.inject(&vec![0; length - 16 - 1_000]);
    world.inject(&[0; 1_000]);
    let next = world.request(sync());
    world.settle();
    assert!(world.outcome(next).is_ok());
    assert_eq!(world.connects.len(), 1);
    world.check();
}

#[test]
fn reply_to_a_read_that_cannot_be_decoded_is_one_error() {
    let mut world = World::connected();
    world.ensemble.conduct.mute = vec![zookeeper_recipes_protocol::OpCode::GetChildren];
    let caller = world.request(RequestBody::GetChildren(ReadRequest {
        path: "/".to_owned(),
        watch: false,
    }));
    world.settle();
    world.inject(&frame(&Reply::new(1, 0, ReplyBody::Empty)));
    world.settle();
    assert!(matches!(
        world.outcome(caller),
        Err(RequestError::Unreadable(_))
    ));
    world.until(World::is_connected);
}

#[test]
fn frame_without_a_header_breaks_the_connection() {
    assert!(matches!(break_at(&[0, 0, 0, 0]), Break::Reply(_)));
}

#[test]
fn reply_to_another_request_breaks_the_connection() {
    let other = frame(&Reply::new(77, 1, ReplyBody::Empty));
    assert!(matches!(
        break_at(&other),
        Break::OutOfOrder {
            expected: 1,
            found: 77
        }
    ));
}

#[test]
fn reply_that_is_none_to_the_request_breaks_the_connection() {
    let empty = frame(&Reply::new(1, 1, ReplyBody::Empty));
    assert!(matches!(break_at(&empty), Break::Reply(_)));
}

#[test]
fn event_of_an_unknown_path_is_ignored() {
    let mut world = World::connected();
    let event = WatcherEvent {
        kind: EventType::NodeDeleted,
        state: KeeperState::SyncConnected,
        path: "/unknown".to_owned(),
    };
    world.inject(&frame(&Reply::notification(event)));
    let caller = world.request(sync());
    world.settle();
    assert!(world.outcome(caller).is_ok());
    assert_eq!(world.connects.len(), 1);
}

#[test]
fn zxid_that_goes_back_does_not_take_back_what_was_seen() {
    let mut world = World::connected();
    world.ensemble.zxid = 100;
    let first = world.request(sync());
    world.settle();
    world.ensemble.zxid = 40;
    let second = world.request(sync());
    world.settle();
    assert!(world.outcome(first).is_ok() && world.outcome(second).is_ok());
    world.ensemble.zxid = 100;
    world.close_connection();
    world.until(|world| world.ensemble.handshakes.len() == 2);
    assert_eq!(world.ensemble.handshakes[1].last_zxid_seen, 100);
}

#[test]
fn server_that_only_sends_events_is_left() {
    let mut world = World::connected();
    let event = WatcherEvent {
        kind: EventType::NodeCreated,
        state: KeeperState::SyncConnected,
        path: "/".to_owned(),
    };
    world.ensemble.conduct.mute = vec![zookeeper_recipes_protocol::OpCode::Ping];
    for _ in 0..40 {
        world.inject(&frame(&Reply::notification(event.clone())));
        world.pass(T / 20);
    }
    assert!(world.connects.len() > 1, "it never answers a ping");
}

#[test]
fn server_that_sends_events_and_never_accepts_the_credentials_is_left() {
    let mut config = config(2);
    config.auth = vec![("digest".to_owned(), b"me:secret".to_vec())];
    let mut world = World::new(config);
    world.ensemble.conduct.mute = vec![zookeeper_recipes_protocol::OpCode::Auth];
    let event = WatcherEvent {
        kind: EventType::NodeCreated,
        state: KeeperState::SyncConnected,
        path: "/".to_owned(),
    };
    for _ in 0..40 {
        world.pass(T / 20);
        world.inject(&frame(&Reply::notification(event.clone())));
    }
    assert!(world.connects.len() > 1, "the session is never confirmed");
}

#[test]
fn reply_that_nobody_asked_for_breaks_the_connection() {
    for xid in [1, xid::PING, xid::AUTH, xid::SET_WATCHES, -7, i32::MIN] {
        let mut world = World::connected();
        world.inject(&frame(&Reply::new(xid, 1, ReplyBody::Empty)));
        world.settle();
        assert!(
            matches!(world.state(), Some(State::Disconnected { .. })),
            "{xid}"
        );
    }
}

/// A frame that may be a reply: a header of small numbers, then bytes.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let error = prop_oneof![3 => Just(ErrorCode::Ok), 1 => Just(ErrorCode::AuthFailed)];
    let xid = prop_oneof![
        Just(xid::PING),
        Just(xid::AUTH),
        Just(xid::SET_WATCHES),
        -10..20_i32
    ];
    let body = vec(prop_oneof![3 => Just(0_u8), 1 => any::<u8>()], 0..100);
    (xid, any::<i64>(), error, body).prop_map(|(xid, zxid, error, body)| {
        let mut reply = Reply::new(xid, zxid, ReplyBody::Other(body));
        reply.header.error = error;
        frame(&reply)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400,
        failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_at_any_moment_break_a_connection_at_most(
        bytes in vec(prop_oneof![2 => vec(any::<u8>(), 0..60), 3 => plausible(), 1 => Just(frame(&ping_reply()))], 1..8),
        way in any::<bool>(),
        waits in vec(0..4000_u64, 8),
        fragment in 1..50_usize,
    ) {
        let parts = waits.into_iter().zip(bytes).map(|(wait, bytes)| (Duration::from_millis(wait), bytes));
        break_a_connection_at_most(way, fragment, parts);
    }

    #[test]
    fn replies_with_changed_bytes_break_a_connection_at_most(
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = frame(&Reply::new(1, 5, ReplyBody::Sync { path: "/".to_owned() }));
        let at = place.index(bytes.len());
        bytes[at] = byte;
        let mut world = World::connected();
        world.ensemble.conduct.mute = vec![zookeeper_recipes_protocol::OpCode::Sync];
        let caller = world.request(sync());
        world.settle();
        world.inject(&bytes);
        world.ensemble.conduct.mute.clear();
        world.ensemble.zxid = i64::MAX - 10;
        world.pass(2 * T);
        world.until(|world| world.is_answered(caller));
        prop_assert_eq!(world.answers[&caller].len(), 1);
        world.until(World::is_connected);
    }
}
