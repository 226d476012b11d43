//! A machine whose server claims more than it sends.
//!
//! `tests/memory.rs` of `crates/protocol` has the claims within each message.

use std::time::Duration;

use zookeeper_recipes_connection::{Machine, WatchedRead};
use zookeeper_recipes_protocol::{ConnectResponse, EventType, Reply, ReplyBody, Stat, xid};

use crate::peer::event;
use crate::{ALLOCATOR, config, live};

/// How many bytes the machine may take for each byte that it gets: what decoding takes.
const TIMES: usize = 32;
/// What a break takes: its cause, the end of the requests, the changes of the state.
const BESIDES: usize = 4 << 10;

const NOW: Duration = Duration::ZERO;

fn outputs(machine: &mut Machine<(), ()>) -> usize {
    std::iter::from_fn(|| machine.poll()).count()
}

fn connecting() -> Machine<(), ()> {
    let mut machine = Machine::new(NOW, config());
    outputs(&mut machine);
    machine.connected(NOW);
    machine.transmit(NOW, &mut Vec::new());
    machine
}

fn connected() -> Machine<(), ()> {
    let mut machine = connecting();
    let mut granted = Vec::new();
    let response = ConnectResponse {
        protocol_version: 0,
        timeout: 10_000,
        session_id: 77,
        password: vec![1; 16],
        read_only: Some(false),
    };
    response.encode_frame(&mut granted);
    Reply::new(xid::PING, 1, ReplyBody::Empty).encode_frame(&mut granted);
    machine.received(NOW, &granted);
    outputs(&mut machine);
    machine
}

/// The length of a frame.
pub(crate) fn check_claims() {
    for length in [64_i32 << 20, 1 << 20, i32::MAX, -1] {
        let mut bytes = Vec::from(length.to_be_bytes());
        bytes.extend([0; 10]);
        for mut machine in [connecting(), connected()] {
            let before = ALLOCATOR.stats().bytes_allocated;
            machine.received(NOW, &bytes);
            outputs(&mut machine);
            let taken = ALLOCATOR.stats().bytes_allocated - before;
            let most = TIMES * bytes.len() + BESIDES;
            assert!(taken <= most, "{taken} bytes for {}", bytes.len());
        }
    }
}

/// Events without end, of watched paths and of others.
pub(crate) fn check_events() {
    let mut machine = connected();
    machine.watch(NOW, WatchedRead::Data, "/watched", (), ());
    machine.transmit(NOW, &mut Vec::new());
    let mut bytes = Vec::new();
    let (data, stat) = (None, Stat::default());
    Reply::new(1, 1, ReplyBody::Data { data, stat }).encode_frame(&mut bytes);
    machine.received(NOW, &bytes);
    outputs(&mut machine);
    bytes.clear();
    for path in ["/watched", "/other"] {
        let event = event(path, EventType::NodeDataChanged);
        Reply::notification(event).encode_frame(&mut bytes);
    }
    let kept = live();
    for _ in 0..10_000 {
        machine.received(NOW, &bytes);
    }
    let taken = live() - kept;
    assert!(
        taken <= BESIDES as isize,
        "{taken} bytes of events are kept"
    );
    assert_eq!(outputs(&mut machine), 1, "the watch fires once");
}
