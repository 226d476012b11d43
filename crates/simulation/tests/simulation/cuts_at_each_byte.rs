//! A connection breaks at each byte of a small conversation, in either direction.

use crate::support::{connect, everyone, is_unknown, seconds, servers};
use zookeeper_recipes_core::ensemble::{CreateMode, ServerSession};
use zookeeper_recipes_protocol::{
    Acl, AuthId, CreateRequest, DeleteRequest, Permission, ReadRequest, Reply, ReplyBody, Request,
    RequestBody, Stat,
};
use zookeeper_recipes_simulation::{Change, Fault, FaultKind, RequestKind};

const PATH: &str = "/n";

/// The requests of the conversation, in order, with their lengths and those of their replies.
fn conversation() -> [(RequestKind, usize, usize); 3] {
    let path = || PATH.to_owned();
    let id = AuthId::anyone();
    let acl = vec![Acl {
        permissions: Permission::ALL,
        id,
    }];
    let data = Some(b"data".to_vec());
    let stat = Stat::default();
    let create = RequestBody::Create2(CreateRequest {
        path: path(),
        data: data.clone(),
        acl,
        mode: zookeeper_recipes_protocol::CreateMode::Persistent,
    });
    let get = RequestBody::GetData(ReadRequest {
        path: path(),
        watch: false,
    });
    let delete = RequestBody::Delete(DeleteRequest {
        path: path(),
        version: -1,
    });
    let created = ReplyBody::Create2 { path: path(), stat };
    let found = ReplyBody::Data { data, stat };
    [
        (RequestKind::Create, create, created),
        (RequestKind::Get, get, found),
        (RequestKind::Delete, delete, ReplyBody::Empty),
    ]
    .map(|(kind, body, reply)| {
        let (mut request, mut answer) = (Vec::new(), Vec::new());
        Request { xid: 1, body }.encode_frame(&mut request);
        Reply::new(1, 1, reply).encode_frame(&mut answer);
        (kind, request.len(), answer.len())
    })
}

/// Has the conversation, and returns which of its requests got no reply.
async fn converse(session: &ServerSession) -> Vec<RequestKind> {
    let mode = CreateMode::Persistent;
    let created = session.create(PATH, b"data", mode, everyone()).await;
    let found = session.get(PATH).await;
    let deleted = session.delete(PATH).await;
    let unknown = [
        (RequestKind::Create, is_unknown(&created)),
        (RequestKind::Get, is_unknown(&found)),
        (RequestKind::Delete, is_unknown(&deleted)),
    ];
    let unknown = unknown.into_iter().filter(|(_, is_unknown)| *is_unknown);
    unknown.map(|(kind, _)| kind).collect()
}

/// Has the conversation with this fault in it. Returns the requests without a reply, and those that
/// the server has applied.
async fn converse_with(kind: RequestKind, fault: FaultKind) -> (Vec<RequestKind>, [bool; 2]) {
    let simulation = servers(7, 1);
    let session = connect(&simulation, "a").await;
    simulation.faults().inject(Fault::new(fault).on(kind));
    let unknown = converse(&session).await;
    assert_eq!(simulation.faults().waiting(), 0);
    tokio::time::sleep(seconds(1)).await; // what has arrived is committed
    let history = simulation.history();
    let has = |change: fn(&Change) -> bool| history.iter().any(|it| change(&it.change));
    let created = has(|it| matches!(it, Change::Created { .. }));
    let deleted = has(|it| matches!(it, Change::Deleted { .. }));
    (unknown, [created, deleted])
}

#[tokio::test(start_paused = true)]
async fn of_a_request_that_arrives_only_with_its_last_byte() {
    for (kind, length, _) in conversation() {
        for bytes in 0..=length {
            let (unknown, applied) = converse_with(kind, FaultKind::RequestCut(bytes)).await;
            let arrived = bytes == length;
            let expected = match kind {
                RequestKind::Create => [arrived; 2],
                RequestKind::Delete => [true, arrived],
                _ => [true; 2],
            };
            assert_eq!(applied, expected, "{bytes} of {length} bytes of {kind:?}");
            assert!(arrived || unknown == [kind], "{bytes}: {unknown:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_reply_that_comes_only_with_its_last_byte() {
    for (kind, _, length) in conversation() {
        for bytes in 0..=length {
            let (unknown, applied) = converse_with(kind, FaultKind::ReplyCut(bytes)).await;
            if bytes < length {
                assert_eq!(unknown, [kind], "{bytes} of {length} bytes");
                assert_eq!(applied, [true; 2], "the request of each reply was applied");
            } else {
                assert!(!unknown.contains(&kind), "all bytes of the reply came");
            }
        }
    }
}
