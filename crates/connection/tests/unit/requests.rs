//! Tests of `src/session/requests.rs`.

use zookeeper_recipes_protocol::{
    AuthId, CheckRequest, CreateMode, CreateRequest, DeleteRequest, FrameDecoder, Permission,
};

use super::*;

fn delete(path: &str) -> RequestBody {
    let path = path.to_owned();
    RequestBody::Delete(DeleteRequest::new(path, -1))
}

fn ask(requests: &mut Requests<&'static str>, path: &str, to: &'static str) {
    let asked = requests.ask(delete(path), to);
    asked.expect("it is short");
}

fn sent(requests: &mut Requests<&'static str>) -> Vec<String> {
    let mut bytes = Vec::new();
    requests.send(Duration::ZERO, &mut bytes);
    let mut decoder = FrameDecoder::new(1 << 20);
    decoder.feed(&bytes);
    let mut paths = Vec::new();
    while let Some(frame) = decoder.next_frame().expect("frames") {
        let request = Request::decode(frame).expect("a request");
        paths.push(request.body.path().unwrap_or_default().to_owned());
    }
    paths
}

#[test]
fn break_takes_the_requests_that_were_sent_and_leaves_the_others() {
    let mut requests = Requests::new();
    ask(&mut requests, "/sent", "sent");
    sent(&mut requests);
    ask(&mut requests, "/waits", "waits");
    let broken: Vec<_> = requests.broken().map(|asked| asked.to).collect();
    assert_eq!(broken, ["sent"]);
    assert!(requests.oldest_sent().is_none());
    assert_eq!(sent(&mut requests), ["/waits"]);
}

#[test]
fn memory_of_unsent_requests_is_that_of_the_wanted() {
    let mut requests = Requests::new();
    ask(&mut requests, "/first", "wanted");
    for _ in 0..100_000 {
        ask(&mut requests, "/dropped", "dropped");
        if requests.have_doubled() {
            let dropped = requests.take_unwanted(|asked| asked.to == "wanted");
            assert!(dropped.iter().all(|asked| asked.to == "dropped"));
        }
        assert!(requests.in_flight.capacity() <= 4 * KEPT);
        assert!(requests.frames.capacity() <= 4 * KEPT * 64);
    }
    ask(&mut requests, "/last", "wanted");
    requests.take_unwanted(|asked| asked.to == "wanted");
    assert_eq!(sent(&mut requests), ["/first", "/last"]);
}

#[test]
fn numbers_begin_anew_after_the_largest() {
    let mut requests = Requests::new();
    requests.last_xid = i32::MAX - 1;
    ask(&mut requests, "/a", "a");
    ask(&mut requests, "/b", "b");
    let numbers: Vec<_> = requests.ended().map(|asked| asked.xid).collect();
    assert_eq!(numbers, [i32::MAX, 1]);
}

#[test]
fn queue_that_was_long_keeps_no_memory() {
    for (capacity, is_kept) in [(KEPT - 1, true), (KEPT, true), (KEPT + 1, false)] {
        let mut queue = VecDeque::with_capacity(capacity);
        queue.extend([1, 2]);
        assert_eq!(take_first(&mut queue), Some(1));
        assert!(queue.capacity() >= capacity, "it is not empty");
        assert_eq!(take_first(&mut queue), Some(2));
        assert_eq!(queue.capacity() >= capacity, is_kept, "{capacity}");
    }
}

fn create(scheme: &str) -> CreateRequest {
    let id = AuthId::new(scheme, "");
    CreateRequest {
        path: "/lock".to_owned(),
        data: Some(vec![7; 100]),
        acl: vec![Acl {
            permissions: Permission::ALL,
            id,
        }],
        mode: CreateMode::EphemeralSequential,
    }
}

#[test]
fn request_above_the_limit_is_not_appended() {
    let check = CheckRequest {
        path: "/lock".to_owned(),
        version: 1,
    };
    let check = Operation::Check(check);
    for (body, parts, identities) in [
        (RequestBody::Create2(create("ip")), 1, 0),
        (RequestBody::Create2(create("auth")), 1, 1),
        (RequestBody::Multi(vec![check; 3]), 4, 0),
        (
            RequestBody::Multi(vec![Operation::Create2(create("auth"))]),
            2,
            1,
        ),
    ] {
        let request = Request { xid: 1, body };
        let mut frame = Vec::new();
        request.encode_frame(&mut frame);
        let length = frame.len() - 4 + parts * ADDED + identities * IDENTITIES;
        let mut requests = Requests::new();
        requests.frames = vec![1];
        requests.limit = length - 1;
        let refused = requests.ask(request.body.clone(), "too long");
        assert!(matches!(
            refused,
            Err(("too long", RequestError::RequestTooLong { length: found, .. })) if found == length
        ));
        assert_eq!(requests.frames, [1]);
        requests.limit = length;
        let asked = requests.ask(request.body.clone(), "it has the longest length");
        assert!(asked.is_ok());
        // Each has its number, which is four bytes behind the length.
        assert_eq!(requests.frames[1 + 8..], frame[8..]);
        let checked = |limit| check_length(&request.body, limit);
        assert!(checked(length).is_ok() && checked(length - 1).is_err());
    }
}
