//! A machine whose server claims more than it sends.

use std::time::Duration;

use fastrand::Rng;
use zookeeper_recipes_connection::{Machine, WatchedRead};
use zookeeper_recipes_protocol::{
    ConnectResponse, EventType, KeeperState, PathRequest, ReadRequest, Reply, ReplyBody,
    RequestBody, Stat, WatcherEvent, xid,
};

use crate::{ALLOCATOR, config, live};

/// How many bytes the machine may take for each byte that it gets: what decoding takes.
const TIMES: usize = 32;
/// What a break takes: its cause, the end of the requests, the changes of the state.
const BESIDES: usize = 4 << 10;

const NOW: Duration = Duration::ZERO;

/// All that `work` allocates, freed in between or not.
fn allocated_by(work: impl FnOnce()) -> usize {
    let before = ALLOCATOR.stats().bytes_allocated;
    work();
    ALLOCATOR.stats().bytes_allocated - before
}

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
    machine
}

/// A machine that waits for the reply to this request, of number 1.
fn waiting_for(body: RequestBody) -> Machine<(), ()> {
    let mut machine = connected();
    machine.request(NOW, body, ());
    machine.transmit(NOW, &mut Vec::new());
    outputs(&mut machine);
    machine
}

fn requests() -> Vec<RequestBody> {
    let path = || "/a".to_owned();
    let read = || ReadRequest {
        path: path(),
        watch: false,
    };
    vec![
        RequestBody::Sync(PathRequest { path: path() }),
        RequestBody::GetData(read()),
        RequestBody::GetChildren(read()),
        RequestBody::GetChildren2(read()),
        RequestBody::GetAcl(PathRequest { path: path() }),
        RequestBody::Multi(Vec::new()),
        RequestBody::MultiRead(Vec::new()),
        RequestBody::WhoAmI,
    ]
}

fn check(machine: &mut Machine<(), ()>, bytes: &[u8]) {
    let taken = allocated_by(|| {
        machine.received(NOW, bytes);
        outputs(machine);
    });
    let most = TIMES * bytes.len() + BESIDES;
    assert!(taken <= most, "{taken} bytes for {}", bytes.len());
}

/// The length of a frame, and the lengths within it.
pub(crate) fn check_claims() {
    for length in [64_i32 << 20, 1 << 20, i32::MAX, -1] {
        let mut bytes = Vec::from(length.to_be_bytes());
        bytes.extend([0; 10]);
        check(&mut connecting(), &bytes);
        check(&mut connected(), &bytes);
    }
    for body in requests() {
        for claim in [i32::MAX, 1 << 24, 1 << 16] {
            for zeros in 0..100 {
                let mut frame = Vec::from(1_i32.to_be_bytes());
                frame.extend(vec![0; 12 + zeros]);
                frame.extend(claim.to_be_bytes());
                check(&mut waiting_for(body.clone()), &framed(&frame));
            }
        }
    }
}

fn framed(frame: &[u8]) -> Vec<u8> {
    let length = i32::try_from(frame.len()).expect("a short frame");
    [&length.to_be_bytes()[..], frame].concat()
}

pub(crate) fn check_replies_of_any_bytes() {
    let mut dice = Rng::with_seed(1);
    let bodies = requests();
    for round in 0..20_000 {
        let mut frame = Vec::from([1_i32, -1, -2, -4, -8][dice.usize(..5)].to_be_bytes());
        frame.extend(vec![0; 12]);
        let sparse = dice.bool();
        frame.extend(
            (0..dice.usize(..200)).map(|_| match sparse && dice.u8(..) < 200 {
                true => 0,
                false => dice.u8(..),
            }),
        );
        let mut machine = match round % 9 {
            8 => connecting(),
            _ => waiting_for(bodies[dice.usize(..bodies.len())].clone()),
        };
        check(&mut machine, &framed(&frame));
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
        let event = WatcherEvent {
            kind: EventType::NodeDataChanged,
            state: KeeperState::SyncConnected,
            path: path.to_owned(),
        };
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
