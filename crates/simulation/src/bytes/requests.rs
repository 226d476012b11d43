//! Requests of the protocol as requests to the simulation.

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::Operation;
use zookeeper_recipes_protocol::{
    AddWatchMode, CheckRequest, CreateMode, CreateRequest, CreateTtlRequest, DeleteRequest,
    MultiOperation, ReadRequest, RequestBody, SetDataRequest, SetWatches2Request, WatcherType,
    WatchesRequest,
};

use super::values::{acl_in, identity, mode};
use crate::wire::read::{Read, WatchKind, WatchMode};
use crate::wire::request::Request;
use crate::wire::write::Write;

/// A request of the protocol as a request to the simulation.
pub(crate) fn request(body: RequestBody) -> Request {
    match body {
        RequestBody::Ping => Request::Ping,
        RequestBody::CloseSession => Request::CloseSession,
        RequestBody::Sync(request) => Request::Sync { path: request.path },
        RequestBody::Reconfig(_) => Request::Reconfigure,
        RequestBody::Auth(request) => {
            let credentials = request.auth.unwrap_or_default();
            Request::Authenticate(identity(&request.scheme, &credentials))
        }
        // A server without SASL does not know the scheme.
        RequestBody::Sasl(_) => Request::Authenticate(None),
        RequestBody::Multi(operations) => multi(operations),
        RequestBody::MultiRead(operations) => {
            let reads: Option<Vec<Read>> = operations.into_iter().map(each_read).collect();
            Request::Read(reads.map_or(Read::Malformed, Read::Each))
        }
        RequestBody::Other { .. } => Request::Unknown,
        body => match single_write(body) {
            Ok(write) => Request::Write(write),
            Err(body) => Request::Read(read(*body)),
        },
    }
}

/// A request of this type whose content cannot be read.
#[cfg(feature = "embedded")]
pub(crate) fn malformed(opcode: zookeeper_recipes_protocol::OpCode) -> Request {
    use zookeeper_recipes_protocol::OpCode;

    match opcode {
        OpCode::Create
        | OpCode::Create2
        | OpCode::CreateContainer
        | OpCode::CreateTtl
        | OpCode::Delete
        | OpCode::SetData
        | OpCode::SetAcl
        | OpCode::Check
        | OpCode::Multi
        | OpCode::Reconfig => Request::Write(Write::Malformed),
        _ => Request::Read(Read::Malformed),
    }
}

/// A single write. A request that is none comes back.
fn single_write(body: RequestBody) -> Result<Write, Box<RequestBody>> {
    Ok(match body {
        RequestBody::Create(request) | RequestBody::Create2(request) => {
            // Only a request of its own creates a container.
            let mode = match request.mode {
                CreateMode::Container => CreateMode::Persistent,
                mode => mode,
            };
            create(CreateRequest { mode, ..request })
        }
        RequestBody::CreateContainer(request) => create(CreateRequest {
            mode: CreateMode::Container,
            ..request
        }),
        RequestBody::CreateTtl(request) => create_ttl(request),
        RequestBody::Delete(request) => delete(request),
        RequestBody::SetData(request) => set_data(request),
        RequestBody::Check(request) => check(request),
        RequestBody::SetAcl(request) => Write::SetAcl {
            path: request.path,
            acl: acl_in(request.acl),
            version: Some(request.version),
        },
        other => return Err(Box::new(other)),
    })
}

fn create(request: CreateRequest) -> Write {
    let CreateRequest {
        path,
        data,
        acl,
        mode: wanted,
    } = request;
    match mode(wanted) {
        Some(mode) => with_data(data, |data| Operation::Create {
            path,
            data,
            mode,
            acl: acl_in(acl),
        }),
        None => Write::Refused {
            path,
            refusal: refusal_of(wanted),
        },
    }
}

fn set_data(request: SetDataRequest) -> Write {
    with_data(request.data, |data| Operation::SetData {
        path: request.path,
        data,
        version: Some(request.version),
    })
}

fn delete(request: DeleteRequest) -> Write {
    Write::Operation(Operation::Delete {
        path: request.path,
        version: Some(request.version),
    })
}

fn check(request: CheckRequest) -> Write {
    Write::Operation(Operation::Check {
        path: request.path,
        version: Some(request.version),
    })
}

fn with_data(data: Option<Vec<u8>>, operation: impl FnOnce(Vec<u8>) -> Operation) -> Write {
    match data {
        Some(data) => Write::Operation(operation(data)),
        None => Write::WithoutData(operation(Vec::new())),
    }
}

/// Znodes with a time to live are not enabled, and a znode of another kind takes none.
fn create_ttl(request: CreateTtlRequest) -> Write {
    Write::Refused {
        path: request.path,
        refusal: refusal_of(request.mode),
    }
}

fn refusal_of(mode: CreateMode) -> Refusal {
    if mode.is_ttl() {
        Refusal::Unimplemented
    } else {
        Refusal::BadArguments(format!("{mode:?} is no kind of znode here"))
    }
}

fn multi(operations: Vec<MultiOperation>) -> Request {
    let writes: Option<Vec<Write>> = operations.into_iter().map(one_of_several).collect();
    match writes {
        Some(writes) => Request::WriteAll(writes),
        None => Request::Write(Write::Malformed),
    }
}

/// One write of a transaction; `None` for a read.
fn one_of_several(operation: MultiOperation) -> Option<Write> {
    Some(match operation {
        MultiOperation::Create(request)
        | MultiOperation::Create2(request)
        | MultiOperation::CreateContainer(request)
            if request.mode.is_ttl() =>
        {
            // Apache's server fails at the whole transaction once it comes to this.
            Write::Malformed
        }
        // In a transaction the mode alone decides whether it is a container.
        MultiOperation::Create(request)
        | MultiOperation::Create2(request)
        | MultiOperation::CreateContainer(request) => create(request),
        MultiOperation::CreateTtl(request) => create_ttl(request),
        MultiOperation::Delete(request) => delete(request),
        MultiOperation::SetData(request) => set_data(request),
        MultiOperation::Check(request) => check(request),
        MultiOperation::GetData(_) | MultiOperation::GetChildren(_) => return None,
    })
}

fn each_read(operation: MultiOperation) -> Option<Read> {
    match operation {
        MultiOperation::GetData(ReadRequest { path, watch }) => Some(Read::Data { path, watch }),
        MultiOperation::GetChildren(ReadRequest { path, watch }) => {
            Some(Read::Children { path, watch })
        }
        _ => None,
    }
}

fn read(body: RequestBody) -> Read {
    match body {
        RequestBody::Exists(ReadRequest { path, watch }) => Read::Stat { path, watch },
        RequestBody::GetData(ReadRequest { path, watch }) => Read::Data { path, watch },
        RequestBody::GetChildren(ReadRequest { path, watch })
        | RequestBody::GetChildren2(ReadRequest { path, watch }) => Read::Children { path, watch },
        RequestBody::GetAcl(request) => Read::Acl { path: request.path },
        RequestBody::GetAllChildrenNumber(request) => Read::CountBelow { path: request.path },
        RequestBody::GetEphemerals(request) => Read::Ephemerals {
            prefix: request.prefix.unwrap_or_default(),
        },
        RequestBody::WhoAmI => Read::Identities,
        RequestBody::AddWatch(request) => match request.mode {
            AddWatchMode::Persistent => Read::AddWatch(request.path, WatchMode::Persistent),
            AddWatchMode::PersistentRecursive => Read::AddWatch(request.path, WatchMode::Recursive),
            _ => Read::Malformed,
        },
        RequestBody::RemoveWatches(request) => of_kind(request, Read::RemoveWatches),
        RequestBody::CheckWatches(request) => of_kind(request, Read::CheckWatches),
        RequestBody::SetWatches(request) => Read::SetWatches(Box::new(SetWatches2Request {
            relative_zxid: request.relative_zxid,
            data_watches: request.data_watches,
            exist_watches: request.exist_watches,
            child_watches: request.child_watches,
            persistent_watches: Vec::new(),
            persistent_recursive_watches: Vec::new(),
        })),
        RequestBody::SetWatches2(request) => Read::SetWatches(Box::new(request)),
        _ => Read::Malformed,
    }
}

/// A request about the watches of one kind, or without a kind of both.
fn of_kind(request: WatchesRequest, read: fn(String, Option<WatchKind>) -> Read) -> Read {
    match request.kind {
        WatcherType::Children => read(request.path, Some(WatchKind::Children)),
        WatcherType::Data => read(request.path, Some(WatchKind::Data)),
        WatcherType::Any => read(request.path, None),
        _ => Read::Malformed,
    }
}
