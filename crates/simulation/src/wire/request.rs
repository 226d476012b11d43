//! What the simulation reads in a request: its paths for faults, and its words for the trace.

use zookeeper_recipes_protocol::{
    CreateRequest, DecodeError, OpCode, Operation, Request, RequestBody, RequestHeader,
};

/// Decodes the frame of a request.
///
/// If only the header can be read, the body is [`RequestBody::Other`] with the header's operation.
pub(crate) fn decode(frame: &[u8]) -> Result<Request, DecodeError> {
    let RequestHeader { xid, opcode } = RequestHeader::peek(frame)?;
    let body = RequestBody::Other {
        opcode,
        bytes: Vec::new(),
    };
    Ok(Request::decode(frame).unwrap_or(Request { xid, body }))
}

/// True if servers do not know this operation, or get it from no client.
pub(crate) fn is_unknown(opcode: OpCode) -> bool {
    matches!(
        opcode,
        OpCode::Notification
            | OpCode::DeleteContainer
            | OpCode::CreateSession
            | OpCode::Error
            | OpCode::Unknown(_)
    )
}

/// The paths that a request names.
pub(crate) fn paths(body: &RequestBody) -> Vec<&str> {
    let lists = match body {
        RequestBody::Multi(operations) | RequestBody::MultiRead(operations) => {
            return operations.iter().map(Operation::path).collect();
        }
        RequestBody::SetWatches(it) => [&it.data_watches, &it.exist_watches, &it.child_watches],
        RequestBody::SetWatches2(it) => [&it.data_watches, &it.exist_watches, &it.child_watches],
        other => return other.path().into_iter().collect(),
    };
    lists.into_iter().flatten().map(String::as_str).collect()
}

/// A request in words.
pub(crate) fn text(body: &RequestBody) -> String {
    let paths = paths(body).join(" ");
    let verb = verb(body.opcode());
    match body {
        RequestBody::Multi(operations) | RequestBody::MultiRead(operations) => {
            let operations: Vec<String> = operations.iter().map(operation_text).collect();
            format!("{verb} {{ {} }}", operations.join("; "))
        }
        RequestBody::Create(request)
        | RequestBody::Create2(request)
        | RequestBody::CreateContainer(request) => create_text(request),
        RequestBody::Exists(request)
        | RequestBody::GetData(request)
        | RequestBody::GetChildren(request)
        | RequestBody::GetChildren2(request)
            if request.watch =>
        {
            format!("{verb} {paths} and watch")
        }
        RequestBody::RemoveWatches(request) => format!("{verb} {paths} {:?}", request.kind),
        _ => format!("{verb} {paths}"),
    }
}

fn operation_text(operation: &Operation) -> String {
    match operation {
        Operation::Create(request)
        | Operation::Create2(request)
        | Operation::CreateContainer(request) => create_text(request),
        other => format!("{} {}", verb(other.opcode()), other.path()),
    }
}

fn create_text(request: &CreateRequest) -> String {
    format!("create {} {:?}", request.path, request.mode)
}

fn verb(opcode: OpCode) -> String {
    let verb = match opcode {
        OpCode::GetData => "get",
        OpCode::SetData => "set",
        OpCode::GetChildren | OpCode::GetChildren2 => "list",
        OpCode::Multi => "transact",
        OpCode::RemoveWatches => "unwatch",
        other => return format!("{other:?}").to_lowercase(),
    };
    verb.to_owned()
}
