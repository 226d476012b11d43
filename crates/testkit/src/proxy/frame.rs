//! What frames say, as far as it matters to a proxy.

use zookeeper_recipes_protocol::{
    self as protocol, ConnectRequest, ErrorCode, FRAME_HEADER, OpCode, Reply, ReplyBody,
    ReplyHeader, RequestBody, RequestHeader,
};

use super::operation::Operation;

/// The whole frame with this body.
pub(super) fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME_HEADER + body.len());
    frame.extend((body.len() as u32).to_be_bytes());
    frame.extend(body);
    frame
}

/// What a frame from a client says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) xid: i32,
    pub(super) operation: Operation,
    /// The operation code, and those of the operations in a transaction.
    pub(super) codes: Vec<i32>,
    pub(super) paths: Vec<String>,
}

impl Request {
    /// What has no header that would say more.
    pub(super) fn of(operation: Operation) -> Request {
        Request {
            xid: 0,
            operation,
            codes: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Reads the body of a frame that is not the first of its connection.
    ///
    /// `None` if the body has no header. A request that is broken behind its header has no paths.
    pub(super) fn parse(body: &[u8]) -> Option<Request> {
        let header = RequestHeader::peek(body).ok()?;
        let mut codes = vec![header.opcode.into()];
        let mut paths = Vec::new();
        if let Ok(request) = protocol::Request::decode(body) {
            paths.extend(request.body.path().map(str::to_owned));
            if let RequestBody::Multi(parts) | RequestBody::MultiRead(parts) = &request.body {
                codes.extend(parts.iter().map(|part| i32::from(part.opcode())));
                paths.extend(parts.iter().map(|part| part.path().to_owned()));
            }
        }
        Some(Request {
            xid: header.xid,
            operation: header.opcode.into(),
            codes,
            paths,
        })
    }
}

/// A whole reply that says no more than this error code.
pub(super) fn refusal(xid: i32, zxid: i64, code: i32) -> Vec<u8> {
    let mut frame = Vec::new();
    Reply::failed(xid, zxid, ErrorCode::from(code)).encode_frame(&mut frame);
    frame
}

/// The whole reply, with this error code in place of what it says.
pub(super) fn with_code(reply: &[u8], code: i32) -> Vec<u8> {
    let header = reply.get(FRAME_HEADER..).map(ReplyHeader::peek);
    match header {
        Some(Ok(header)) => refusal(header.xid, header.zxid, code),
        _ => reply.to_vec(),
    }
}

/// The path in a notification.
pub(super) fn notified_path(body: &[u8]) -> Option<String> {
    match Reply::decode(body, OpCode::Notification).ok()?.body {
        ReplyBody::Notification(event) => Some(event.path),
        _ => None,
    }
}

/// A handshake with no session id and no password in it: its whole frame.
///
/// The password keeps its length, since the server answers with one as long.
pub(super) fn without_session(handshake: &[u8]) -> Vec<u8> {
    let body = handshake.get(FRAME_HEADER..).unwrap_or_default();
    let Ok(mut request) = ConnectRequest::decode(body) else {
        return handshake.to_vec();
    };
    request.session_id = 0;
    request.password.fill(0);
    let mut frame = Vec::new();
    request.encode_frame(&mut frame);
    frame
}

#[cfg(test)]
#[path = "../../tests/unit/frame.rs"]
mod tests;
