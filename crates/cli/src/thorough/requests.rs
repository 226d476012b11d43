//! Which requests the servers know, and what they do at the others.

use zookeeper_recipes_protocol::{
    AddWatchMode, AddWatchRequest, CheckRequest, CreateMode, CreateTtlRequest, ErrorCode, OpCode,
    Operation, PathRequest, RequestBody, SetWatchesRequest, WatcherType, WatchesRequest,
};

use super::client::{Trouble, create, read};
use super::site::Site;
use super::verdict::{Flaw, Kept, Promise};

/// What the recipes do if the servers do not know a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// They do not work.
    Required,
    /// They do without.
    Substituted,
    /// They do not send it.
    Unused,
}

/// A request that some servers do not know.
pub(super) struct AskedRequest {
    pub(super) promise: Promise,
    need: Need,
    body: fn(&str) -> RequestBody,
}

pub(super) const CREATE2: Promise = Promise {
    name: "request-create2",
    without: "no recipe works",
};

const fn asked(
    name: &'static str,
    without: &'static str,
    need: Need,
    body: fn(&str) -> RequestBody,
) -> AskedRequest {
    AskedRequest {
        promise: Promise { name, without },
        need,
        body,
    }
}

pub(super) static REQUESTS: &[AskedRequest] = &[
    AskedRequest {
        promise: CREATE2,
        need: Need::Required,
        body: |path| RequestBody::Create2(create(path, CreateMode::Ephemeral)),
    },
    asked(
        "request-multi",
        "no lease is renewed, and no guarded write is done",
        Need::Required,
        |path| RequestBody::Multi(vec![Operation::Check(check(path))]),
    ),
    asked(
        "request-multiRead",
        "no recipe shows who holds and who waits",
        Need::Required,
        |path| RequestBody::MultiRead(vec![Operation::GetData(read(path, false))]),
    ),
    asked(
        "request-sync",
        "no lease is renewed",
        Need::Required,
        |path| RequestBody::Sync(one(path)),
    ),
    asked(
        "request-createContainer",
        "empty directories stay; delete them by hand if there are many",
        Need::Substituted,
        |path| RequestBody::CreateContainer(create(path, CreateMode::Container)),
    ),
    asked(
        "request-setWatches",
        "waiters read their queue again after each reconnect",
        Need::Substituted,
        |path| {
            RequestBody::SetWatches(SetWatchesRequest {
                relative_zxid: i64::MAX,
                data_watches: Vec::new(),
                exist_watches: vec![path.to_owned()],
                child_watches: Vec::new(),
            })
        },
    ),
    asked(
        "request-removeWatches",
        "watches stay until their znodes change",
        Need::Substituted,
        |path| RequestBody::RemoveWatches(watches(path)),
    ),
    asked(
        "request-createTTL",
        "a session may hang at it",
        Need::Unused,
        |path| {
            let create = create(path, CreateMode::PersistentWithTtl);
            RequestBody::CreateTtl(CreateTtlRequest::new(
                create.path,
                create.data,
                create.acl,
                create.mode,
                60_000,
            ))
        },
    ),
    asked(
        "request-checkWatches",
        "a session may hang at it",
        Need::Unused,
        |path| RequestBody::CheckWatches(watches(path)),
    ),
    asked(
        "request-addWatch",
        "`zkr watch` and `zkr serve` read all queues at each look",
        Need::Substituted,
        |path| {
            RequestBody::AddWatch(AddWatchRequest::new(
                path,
                AddWatchMode::PersistentRecursive,
            ))
        },
    ),
    asked(
        "request-unknown",
        "a session may hang at a request that the servers do not know",
        Need::Unused,
        |_| RequestBody::Other {
            opcode: OpCode::Unknown(4242),
            bytes: Vec::new(),
        },
    ),
];

impl AskedRequest {
    /// Sends the request in a session of its own.
    ///
    /// A server may answer that it does not know the request, or close the connection. It must not
    /// be silent.
    pub(super) async fn is_known(&self, site: &Site<'_>) -> Kept {
        let mut client = site.open(0).await?;
        let path = format!("{}/{}", site.root, self.promise.name);
        let answered = match client.ask((self.body)(&path)).await {
            Ok(reply) if reply.header.error != ErrorCode::Unimplemented => {
                client.close().await;
                return Ok("the servers know it".to_owned());
            }
            Ok(_) => "the servers answer that they do not know it",
            Err(Trouble::Closed(_)) => "the servers close the connection at it",
            Err(trouble) => return Err(trouble.into()),
        };
        match self.need {
            Need::Required => Err(Flaw::Broken(answered.to_owned())),
            Need::Substituted => Err(Flaw::Substituted(answered.to_owned())),
            Need::Unused => Ok(format!("{answered}; the recipes do not send it")),
        }
    }
}

fn one(path: &str) -> PathRequest {
    PathRequest::new(path)
}

fn check(path: &str) -> CheckRequest {
    CheckRequest::new(path, -1)
}

fn watches(path: &str) -> WatchesRequest {
    WatchesRequest::new(path, WatcherType::Any)
}
