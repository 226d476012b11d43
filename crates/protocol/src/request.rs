//! Requests: what a client sends after the handshake.

use crate::code::OpCode;
use crate::error::DecodeError;
use crate::frame;
use crate::jute::{Input, Output, Record, records};
use crate::multi::{self, MultiOperation};
use crate::operation::{
    AddWatchRequest, AuthRequest, CheckRequest, CreateRequest, CreateTtlRequest, DeleteRequest,
    GetEphemeralsRequest, PathRequest, ReadRequest, ReconfigRequest, SaslRequest, SetAclRequest,
    SetDataRequest, SetWatches2Request, SetWatchesRequest, WatchesRequest,
};
use crate::text::Form;

records! {
    /// What each request begins with.
    #[derive(Copy)]
    pub struct RequestHeader {
        /// The number that the client gives the request, and the server its reply.
        pub xid: i32,
        /// What the request asks for.
        pub opcode: OpCode,
    }
}

impl RequestHeader {
    /// Decodes the header of a request. The rest of the frame's body may be anything.
    ///
    /// # Errors
    /// If the body is shorter than a header.
    pub fn peek(body: &[u8]) -> Result<RequestHeader, DecodeError> {
        Record::decode(&mut Input::of_request(body))
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The number that the client gives the request, and the server its reply.
    pub xid: i32,
    /// What the request asks for.
    pub body: RequestBody,
}

impl Request {
    /// Appends the whole frame, its length in front.
    ///
    /// # Panics
    /// If the frame would be longer than 2 GiB - 1 byte.
    pub fn encode_frame(&self, to: &mut Vec<u8>) {
        frame::encode(to, Form::OfRequests, |to| self.encode(to));
    }

    /// Appends the whole frame, if it has at most `limit` bytes without the length in front.
    ///
    /// # Errors
    /// The length of a longer frame. Nothing is appended, and at most the limit is allocated.
    pub fn encode_frame_within(&self, limit: usize, to: &mut Vec<u8>) -> Result<(), usize> {
        frame::encode_within(limit, to, Form::OfRequests, |to| self.encode(to))
    }

    fn encode(&self, to: &mut Output<'_>) {
        let header = RequestHeader {
            xid: self.xid,
            opcode: self.body.opcode(),
        };
        header.encode(to);
        self.body.encode(to);
    }

    /// Decodes the body of a frame that is not a client's first. Bytes behind it are ignored, as
    /// Apache's server ignores them.
    ///
    /// # Errors
    /// If the body is none of the operation that its header names. [`RequestHeader::peek`] returns
    /// which request to refuse.
    pub fn decode(body: &[u8]) -> Result<Request, DecodeError> {
        let from = &mut Input::of_request(body);
        let header = RequestHeader::decode(from)?;
        Ok(Request {
            xid: header.xid,
            body: RequestBody::decode(header.opcode, from)?,
        })
    }
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestBody {
    /// `create`: answered by [`Create`](crate::ReplyBody::Create).
    Create(CreateRequest),
    /// `create2`: answered by [`Create2`](crate::ReplyBody::Create2).
    Create2(CreateRequest),
    /// `createContainer`: answered by [`Create2`](crate::ReplyBody::Create2).
    CreateContainer(CreateRequest),
    /// `createTTL`: answered by [`Create2`](crate::ReplyBody::Create2).
    CreateTtl(CreateTtlRequest),
    /// `delete`: answered by [`Empty`](crate::ReplyBody::Empty).
    Delete(DeleteRequest),
    /// `exists`: answered by [`Stat`](crate::ReplyBody::Stat).
    Exists(ReadRequest),
    /// `getData`: answered by [`Data`](crate::ReplyBody::Data).
    GetData(ReadRequest),
    /// `setData`: answered by [`Stat`](crate::ReplyBody::Stat).
    SetData(SetDataRequest),
    /// `getACL`: answered by [`Acl`](crate::ReplyBody::Acl).
    GetAcl(PathRequest),
    /// `setACL`: answered by [`Stat`](crate::ReplyBody::Stat).
    SetAcl(SetAclRequest),
    /// `getChildren`: answered by [`Children`](crate::ReplyBody::Children).
    GetChildren(ReadRequest),
    /// `getChildren2`: answered by [`Children2`](crate::ReplyBody::Children2).
    GetChildren2(ReadRequest),
    /// `sync`: answered by [`Sync`](crate::ReplyBody::Sync).
    Sync(PathRequest),
    /// `ping`: answered by [`Empty`](crate::ReplyBody::Empty).
    Ping,
    /// `check`: answered by [`Stat`](crate::ReplyBody::Stat).
    Check(CheckRequest),
    /// `multi`: answered by [`Multi`](crate::ReplyBody::Multi).
    Multi(Vec<MultiOperation>),
    /// `multiRead`: answered by [`Multi`](crate::ReplyBody::Multi).
    MultiRead(Vec<MultiOperation>),
    /// `reconfig`: answered by [`Data`](crate::ReplyBody::Data).
    Reconfig(ReconfigRequest),
    /// `checkWatches`: answered by [`Empty`](crate::ReplyBody::Empty).
    CheckWatches(WatchesRequest),
    /// `removeWatches`: answered by [`Empty`](crate::ReplyBody::Empty).
    RemoveWatches(WatchesRequest),
    /// `auth`: answered by [`Empty`](crate::ReplyBody::Empty).
    Auth(AuthRequest),
    /// `setWatches`: answered by [`Empty`](crate::ReplyBody::Empty).
    SetWatches(SetWatchesRequest),
    /// `setWatches2`: answered by [`Empty`](crate::ReplyBody::Empty).
    SetWatches2(SetWatches2Request),
    /// `sasl`: answered by [`Sasl`](crate::ReplyBody::Sasl).
    Sasl(SaslRequest),
    /// `getEphemerals`: answered by [`Ephemerals`](crate::ReplyBody::Ephemerals).
    GetEphemerals(GetEphemeralsRequest),
    /// `getAllChildrenNumber`: answered by
    /// [`AllChildrenNumber`](crate::ReplyBody::AllChildrenNumber).
    GetAllChildrenNumber(PathRequest),
    /// `addWatch`: answered by [`AddWatch`](crate::ReplyBody::AddWatch).
    AddWatch(AddWatchRequest),
    /// `whoAmI`: answered by [`WhoAmI`](crate::ReplyBody::WhoAmI).
    WhoAmI,
    /// `closeSession`: answered by [`Empty`](crate::ReplyBody::Empty).
    CloseSession,
    /// An operation that this crate does not know, or that no client sends.
    Other {
        /// The operation's number: none that another variant has.
        opcode: OpCode,
        /// The bytes behind the header.
        bytes: Vec<u8>,
    },
}

impl RequestBody {
    /// The operation's number.
    pub fn opcode(&self) -> OpCode {
        match self {
            RequestBody::Create(_) => OpCode::Create,
            RequestBody::Create2(_) => OpCode::Create2,
            RequestBody::CreateContainer(_) => OpCode::CreateContainer,
            RequestBody::CreateTtl(_) => OpCode::CreateTtl,
            RequestBody::Delete(_) => OpCode::Delete,
            RequestBody::Exists(_) => OpCode::Exists,
            RequestBody::GetData(_) => OpCode::GetData,
            RequestBody::SetData(_) => OpCode::SetData,
            RequestBody::GetAcl(_) => OpCode::GetAcl,
            RequestBody::SetAcl(_) => OpCode::SetAcl,
            RequestBody::GetChildren(_) => OpCode::GetChildren,
            RequestBody::GetChildren2(_) => OpCode::GetChildren2,
            RequestBody::Sync(_) => OpCode::Sync,
            RequestBody::Ping => OpCode::Ping,
            RequestBody::Check(_) => OpCode::Check,
            RequestBody::Multi(_) => OpCode::Multi,
            RequestBody::MultiRead(_) => OpCode::MultiRead,
            RequestBody::Reconfig(_) => OpCode::Reconfig,
            RequestBody::CheckWatches(_) => OpCode::CheckWatches,
            RequestBody::RemoveWatches(_) => OpCode::RemoveWatches,
            RequestBody::Auth(_) => OpCode::Auth,
            RequestBody::SetWatches(_) => OpCode::SetWatches,
            RequestBody::SetWatches2(_) => OpCode::SetWatches2,
            RequestBody::Sasl(_) => OpCode::Sasl,
            RequestBody::GetEphemerals(_) => OpCode::GetEphemerals,
            RequestBody::GetAllChildrenNumber(_) => OpCode::GetAllChildrenNumber,
            RequestBody::AddWatch(_) => OpCode::AddWatch,
            RequestBody::WhoAmI => OpCode::WhoAmI,
            RequestBody::CloseSession => OpCode::CloseSession,
            RequestBody::Other { opcode, .. } => *opcode,
        }
    }

    /// The path of a request that is about one znode.
    pub fn path(&self) -> Option<&str> {
        match self {
            RequestBody::Create(request)
            | RequestBody::Create2(request)
            | RequestBody::CreateContainer(request) => Some(&request.path),
            RequestBody::CreateTtl(request) => Some(&request.path),
            RequestBody::Delete(request) => Some(&request.path),
            RequestBody::Exists(request)
            | RequestBody::GetData(request)
            | RequestBody::GetChildren(request)
            | RequestBody::GetChildren2(request) => Some(&request.path),
            RequestBody::SetData(request) => Some(&request.path),
            RequestBody::GetAcl(request)
            | RequestBody::Sync(request)
            | RequestBody::GetAllChildrenNumber(request) => Some(&request.path),
            RequestBody::SetAcl(request) => Some(&request.path),
            RequestBody::Check(request) => Some(&request.path),
            RequestBody::CheckWatches(request) | RequestBody::RemoveWatches(request) => {
                Some(&request.path)
            }
            RequestBody::AddWatch(request) => Some(&request.path),
            _ => None,
        }
    }

    fn encode(&self, to: &mut Output<'_>) {
        match self {
            RequestBody::Create(request)
            | RequestBody::Create2(request)
            | RequestBody::CreateContainer(request) => request.encode(to),
            RequestBody::CreateTtl(request) => request.encode(to),
            RequestBody::Delete(request) => request.encode(to),
            RequestBody::Exists(request)
            | RequestBody::GetData(request)
            | RequestBody::GetChildren(request)
            | RequestBody::GetChildren2(request) => request.encode(to),
            RequestBody::SetData(request) => request.encode(to),
            RequestBody::GetAcl(request)
            | RequestBody::Sync(request)
            | RequestBody::GetAllChildrenNumber(request) => request.encode(to),
            RequestBody::SetAcl(request) => request.encode(to),
            RequestBody::Check(request) => request.encode(to),
            RequestBody::Multi(operations) | RequestBody::MultiRead(operations) => {
                multi::encode_operations(operations, to);
            }
            RequestBody::Reconfig(request) => request.encode(to),
            RequestBody::CheckWatches(request) | RequestBody::RemoveWatches(request) => {
                request.encode(to);
            }
            RequestBody::Auth(request) => request.encode(to),
            RequestBody::SetWatches(request) => request.encode(to),
            RequestBody::SetWatches2(request) => request.encode(to),
            RequestBody::Sasl(request) => request.encode(to),
            RequestBody::GetEphemerals(request) => request.encode(to),
            RequestBody::AddWatch(request) => request.encode(to),
            RequestBody::Ping | RequestBody::WhoAmI | RequestBody::CloseSession => {}
            RequestBody::Other { bytes, .. } => to.put(bytes),
        }
    }

    fn decode(opcode: OpCode, from: &mut Input<'_>) -> Result<RequestBody, DecodeError> {
        Ok(match opcode {
            OpCode::Create => RequestBody::Create(Record::decode(from)?),
            OpCode::Create2 => RequestBody::Create2(Record::decode(from)?),
            OpCode::CreateContainer => RequestBody::CreateContainer(Record::decode(from)?),
            OpCode::CreateTtl => RequestBody::CreateTtl(Record::decode(from)?),
            OpCode::Delete => RequestBody::Delete(Record::decode(from)?),
            OpCode::Exists => RequestBody::Exists(Record::decode(from)?),
            OpCode::GetData => RequestBody::GetData(Record::decode(from)?),
            OpCode::SetData => RequestBody::SetData(Record::decode(from)?),
            OpCode::GetAcl => RequestBody::GetAcl(Record::decode(from)?),
            OpCode::SetAcl => RequestBody::SetAcl(Record::decode(from)?),
            OpCode::GetChildren => RequestBody::GetChildren(Record::decode(from)?),
            OpCode::GetChildren2 => RequestBody::GetChildren2(Record::decode(from)?),
            OpCode::Sync => RequestBody::Sync(Record::decode(from)?),
            OpCode::Ping => RequestBody::Ping,
            OpCode::Check => RequestBody::Check(Record::decode(from)?),
            OpCode::Multi => RequestBody::Multi(multi::decode_operations(from)?),
            OpCode::MultiRead => RequestBody::MultiRead(multi::decode_operations(from)?),
            OpCode::Reconfig => RequestBody::Reconfig(Record::decode(from)?),
            OpCode::CheckWatches => RequestBody::CheckWatches(Record::decode(from)?),
            OpCode::RemoveWatches => RequestBody::RemoveWatches(Record::decode(from)?),
            OpCode::Auth => RequestBody::Auth(Record::decode(from)?),
            OpCode::SetWatches => RequestBody::SetWatches(Record::decode(from)?),
            OpCode::SetWatches2 => RequestBody::SetWatches2(Record::decode(from)?),
            OpCode::Sasl => RequestBody::Sasl(Record::decode(from)?),
            OpCode::GetEphemerals => RequestBody::GetEphemerals(Record::decode(from)?),
            OpCode::GetAllChildrenNumber => {
                RequestBody::GetAllChildrenNumber(Record::decode(from)?)
            }
            OpCode::AddWatch => RequestBody::AddWatch(Record::decode(from)?),
            OpCode::WhoAmI => RequestBody::WhoAmI,
            OpCode::CloseSession => RequestBody::CloseSession,
            OpCode::Notification
            | OpCode::DeleteContainer
            | OpCode::CreateSession
            | OpCode::Error
            | OpCode::Unknown(_) => RequestBody::Other {
                opcode,
                bytes: from.rest().to_vec(),
            },
        })
    }
}
