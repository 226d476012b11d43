//! Requests: what a client sends after the handshake.

use crate::code::OpCode;
use crate::error::DecodeError;
use crate::frame;
use crate::jute::{Input, Output, Record, records};
use crate::message::operations;
use crate::multi::Operation;
use crate::operation::{
    AddWatchRequest, AuthRequest, CheckRequest, CreateRequest, CreateTtlRequest, DeleteRequest,
    GetEphemeralsRequest, PathRequest, ReadRequest, ReconfigRequest, SaslRequest, SetAclRequest,
    SetDataRequest, SetWatches2Request, SetWatchesRequest, WatchesRequest,
};
use crate::reply::xid;
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
        Record::decode(&mut Input::new(body, Form::OfRequests))
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
        let from = &mut Input::new(body, Form::OfRequests);
        let RequestHeader { xid, opcode } = Record::decode(from)?;
        let body = RequestBody::decode(opcode, from)?;
        let body = body.unwrap_or_else(|| RequestBody::Other {
            opcode,
            bytes: from.rest().to_vec(),
        });
        Ok(Request { xid, body })
    }
}

operations! {
    /// What a request asks for.
    pub enum RequestBody {
        /// `create`: answered by [`Create`](crate::ReplyBody::Create).
        Create(fields: CreateRequest),
        /// `create2`: answered by [`Create2`](crate::ReplyBody::Create2).
        Create2(fields: CreateRequest),
        /// `createContainer`: answered by [`Create2`](crate::ReplyBody::Create2).
        CreateContainer(fields: CreateRequest),
        /// `createTTL`: answered by [`Create2`](crate::ReplyBody::Create2).
        CreateTtl(fields: CreateTtlRequest),
        /// `delete`: answered by [`Empty`](crate::ReplyBody::Empty).
        Delete(fields: DeleteRequest),
        /// `exists`: answered by [`Stat`](crate::ReplyBody::Stat).
        Exists(fields: ReadRequest),
        /// `getData`: answered by [`Data`](crate::ReplyBody::Data).
        GetData(fields: ReadRequest),
        /// `setData`: answered by [`Stat`](crate::ReplyBody::Stat).
        SetData(fields: SetDataRequest),
        /// `getACL`: answered by [`Acl`](crate::ReplyBody::Acl).
        GetAcl(fields: PathRequest),
        /// `setACL`: answered by [`Stat`](crate::ReplyBody::Stat).
        SetAcl(fields: SetAclRequest),
        /// `getChildren`: answered by [`Children`](crate::ReplyBody::Children).
        GetChildren(fields: ReadRequest),
        /// `getChildren2`: answered by [`Children2`](crate::ReplyBody::Children2).
        GetChildren2(fields: ReadRequest),
        /// `sync`: answered by [`Sync`](crate::ReplyBody::Sync).
        Sync(fields: PathRequest),
        /// `ping`: answered by [`Empty`](crate::ReplyBody::Empty).
        Ping,
        /// `check`: answered by [`Stat`](crate::ReplyBody::Stat).
        Check(fields: CheckRequest),
        /// `multi`: answered by [`Multi`](crate::ReplyBody::Multi).
        Multi(fields: Vec<Operation>),
        /// `multiRead`: answered by [`Multi`](crate::ReplyBody::Multi).
        MultiRead(fields: Vec<Operation>),
        /// `reconfig`: answered by [`Data`](crate::ReplyBody::Data).
        Reconfig(fields: ReconfigRequest),
        /// `checkWatches`: answered by [`Empty`](crate::ReplyBody::Empty).
        CheckWatches(fields: WatchesRequest),
        /// `removeWatches`: answered by [`Empty`](crate::ReplyBody::Empty).
        RemoveWatches(fields: WatchesRequest),
        /// `auth`: answered by [`Empty`](crate::ReplyBody::Empty).
        Auth(fields: AuthRequest),
        /// `setWatches`: answered by [`Empty`](crate::ReplyBody::Empty).
        SetWatches(fields: SetWatchesRequest),
        /// `setWatches2`: answered by [`Empty`](crate::ReplyBody::Empty).
        SetWatches2(fields: SetWatches2Request),
        /// `sasl`: answered by [`Sasl`](crate::ReplyBody::Sasl).
        Sasl(fields: SaslRequest),
        /// `getEphemerals`: answered by [`Ephemerals`](crate::ReplyBody::Ephemerals).
        GetEphemerals(fields: GetEphemeralsRequest),
        /// `getAllChildrenNumber`: answered by
        /// [`AllChildrenNumber`](crate::ReplyBody::AllChildrenNumber).
        GetAllChildrenNumber(fields: PathRequest),
        /// `addWatch`: answered by [`AddWatch`](crate::ReplyBody::AddWatch).
        AddWatch(fields: AddWatchRequest),
        /// `whoAmI`: answered by [`WhoAmI`](crate::ReplyBody::WhoAmI).
        WhoAmI,
        /// `closeSession`: answered by [`Empty`](crate::ReplyBody::Empty).
        CloseSession,
    }
    /// An operation that this crate does not know, or that no client sends.
    Other {
        /// The operation's number: none that another variant has.
        opcode: OpCode,
        /// The bytes behind the header.
        bytes: Vec<u8>,
    }
}

/// The request of an operation that is in no transaction.
impl From<Operation> for RequestBody {
    fn from(operation: Operation) -> RequestBody {
        match operation {
            Operation::Create(fields) => RequestBody::Create(fields),
            Operation::Create2(fields) => RequestBody::Create2(fields),
            Operation::CreateContainer(fields) => RequestBody::CreateContainer(fields),
            Operation::CreateTtl(fields) => RequestBody::CreateTtl(fields),
            Operation::Delete(fields) => RequestBody::Delete(fields),
            Operation::SetData(fields) => RequestBody::SetData(fields),
            Operation::Check(fields) => RequestBody::Check(fields),
            Operation::GetData(fields) => RequestBody::GetData(fields),
            Operation::GetChildren(fields) => RequestBody::GetChildren(fields),
        }
    }
}

impl RequestBody {
    /// The bytes of a request without the length in front. It copies nothing.
    pub fn encoded_length(&self) -> usize {
        let mut none = Vec::new();
        let mut to = Output::new(&mut none, Form::OfRequests, 0);
        let opcode = self.opcode();
        RequestHeader { xid: 0, opcode }.encode(&mut to);
        self.encode(&mut to);
        to.length
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

    /// The xid under which clients send such a request. `None` if each has a number of its own.
    pub fn fixed_xid(&self) -> Option<i32> {
        match self {
            RequestBody::Ping => Some(xid::PING),
            RequestBody::Auth(_) => Some(xid::AUTH),
            RequestBody::SetWatches(_) | RequestBody::SetWatches2(_) => Some(xid::SET_WATCHES),
            _ => None,
        }
    }
}
