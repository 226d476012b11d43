//! Bytes from a server that follows no protocol.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use zookeeper_recipes_connection::{ConnectionState, DisconnectReason, RequestError};
use zookeeper_recipes_protocol::{
    ErrorCode, EventType, OpCode, PathRequest, ReadRequest, Reply, ReplyBody, RequestBody, xid,
};

use crate::bytes::break_a_connection_at_most;
use crate::peer::{event, frame, ping_reply};
use crate::world::{T, World, config, config_with_credentials};

fn sync() -> RequestBody {
    RequestBody::Sync(PathRequest::new("/"))
}

/// A session that waits for the reply to this request, of number 1, and the caller.
fn waiting_for(body: RequestBody) -> (World, usize) {
    let mut world = World::connected();
    world.ensemble.conduct.mute = vec![body.opcode()];
    let caller = world.request(body);
    world.settle();
    (world, caller)
}

/// Why the connection broke at these bytes.
fn break_at(bytes: &[u8]) -> DisconnectReason {
    let (mut world, caller) = waiting_for(sync());
    world.inject(bytes);
    world.settle();
    assert_matches!(world.state(), Some(ConnectionState::Disconnected { .. }));
    world.check();
    let cause = match world.outcome(caller) {
        Err(RequestError::Broken(cause)) => cause.clone(),
        other => panic!("{other:?}"),
    };
    world.until(World::is_connected);
    cause
}

#[test]
fn bytes_that_are_no_frame_or_no_reply_break_the_connection() {
    let limit = u32::try_from(config(1).reply_limit).unwrap();
    // Lengths: a negative one, one of 2 GiB before its bytes come, one above the limit.
    for length in [u32::MAX, i32::MAX as u32, limit + 1] {
        let cause = break_at(&length.to_be_bytes());
        assert_matches!(cause, DisconnectReason::Frame(_));
    }
    // A frame without a header, and a reply of another kind.
    for bytes in [vec![0; 4], frame(&Reply::new(1, 1, ReplyBody::Empty))] {
        let cause = break_at(&bytes);
        assert_matches!(cause, DisconnectReason::Reply(_));
    }
    let other = break_at(&frame(&Reply::new(77, 1, ReplyBody::Empty)));
    assert_matches!(other, DisconnectReason::NotAsked(77));
}

#[test]
fn length_at_the_limit_does_not_break_the_connection() {
    let limit = u32::try_from(config(1).reply_limit).unwrap();
    let mut world = World::connected();
    world.inject(&limit.to_be_bytes());
    world.settle();
    assert!(world.is_connected());
}

fn list() -> RequestBody {
    RequestBody::GetChildren(ReadRequest::new("/", false))
}

/// The same request would get the same reply over each connection.
#[test]
fn reply_to_a_read_that_is_too_long_is_one_error_and_the_connection_continues() {
    let length = config(1).reply_limit + 1;
    let (mut world, caller) = waiting_for(list());
    let mut bytes = u32::try_from(length).unwrap().to_be_bytes().to_vec();
    bytes.extend(&frame(&Reply::new(1, 0, ReplyBody::Empty))[4..]);
    // The header may come in pieces, and the body, too.
    world.inject(&bytes[..10]);
    world.settle();
    assert!(!world.is_answered(caller));
    world.inject(&bytes[10..]);
    world.settle();
    let outcome = world.outcome(caller);
    assert_matches!(outcome, Err(RequestError::TooLong { .. }));
    world.inject(&vec![0; length - 16 - 1_000]);
    world.inject(&[0; 1_000]);
    let next = world.sync("/");
    world.settle();
    assert!(world.outcome(next).is_ok());
    assert_eq!(world.connects.len(), 1);
    world.check();
}

#[test]
fn reply_to_a_read_that_cannot_be_decoded_is_one_error() {
    let (mut world, caller) = waiting_for(list());
    world.inject(&frame(&Reply::new(1, 0, ReplyBody::Empty)));
    world.settle();
    let outcome = world.outcome(caller);
    assert_matches!(outcome, Err(RequestError::Unreadable(_)));
    world.until(World::is_connected);
}

#[test]
fn event_of_an_unknown_path_is_ignored() {
    let mut world = World::connected();
    let event = event("/unknown", EventType::NodeDeleted);
    world.inject(&frame(&Reply::notification(event)));
    let caller = world.sync("/");
    world.settle();
    assert!(world.outcome(caller).is_ok());
    assert_eq!(world.connects.len(), 1);
}

#[test]
fn zxid_that_goes_back_does_not_take_back_what_was_seen() {
    let mut world = World::connected();
    for zxid in [100, 40] {
        world.ensemble.zxid = zxid;
        let caller = world.sync("/");
        world.settle();
        assert!(world.outcome(caller).is_ok());
    }
    world.ensemble.zxid = 100;
    world.close_connection();
    world.until(|world| world.ensemble.handshakes.len() == 2);
    assert_eq!(world.ensemble.handshakes[1].last_zxid_seen, 100);
}

#[test]
fn server_that_sends_events_and_never_answers_is_left() {
    for mute in [OpCode::Ping, OpCode::Auth] {
        let mut world = World::new(config_with_credentials(2));
        let is_confirmed = mute == OpCode::Ping;
        if is_confirmed {
            world.until(World::is_connected);
        }
        world.ensemble.conduct.mute = vec![mute];
        let event = frame(&Reply::notification(event("/", EventType::NodeCreated)));
        for _ in 0..40 {
            world.pass(T / 20);
            world.inject(&event);
        }
        assert!(world.connects.len() > 1, "{mute:?} has no answer");
    }
}

#[test]
fn reply_that_nobody_asked_for_breaks_the_connection() {
    for xid in [1, xid::PING, xid::AUTH, xid::SET_WATCHES, -7, i32::MIN] {
        let mut world = World::connected();
        world.inject(&frame(&Reply::new(xid, 1, ReplyBody::Empty)));
        world.settle();
        let state = world.state();
        assert_matches!(state, Some(ConnectionState::Disconnected { .. }));
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
        bytes in vec(prop_oneof![2 => vec(any::<u8>(), 0..60), 3 => plausible(), 1 => Just(ping_reply())], 1..8),
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
        *place.get_mut(&mut bytes) = byte;
        let (mut world, caller) = waiting_for(sync());
        world.inject(&bytes);
        world.ensemble.conduct.mute.clear();
        world.ensemble.zxid = i64::MAX - 10;
        world.pass(2 * T);
        world.until(|world| world.is_answered(caller));
        prop_assert_eq!(world.answers[&caller].len(), 1);
        world.until(World::is_connected);
    }
}
