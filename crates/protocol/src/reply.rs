//! Replies and notifications: what a server sends after the handshake.

use crate::code::{ErrorCode, EventType, KeeperState, OpCode};
use crate::data::{Acl, ClientInfo, Stat};
use crate::error::DecodeError;
use crate::frame;
use crate::jute::{Input, Output, Record, records};
use crate::message::results;
use crate::multi::Outcome;
use crate::operation::SaslResponse;
use crate::text::Form;

/// The xids that are not numbers of requests. Clients use these in requests, too.
pub mod xid {
    /// A notification of a watch.
    pub const NOTIFICATION: i32 = -1;
    /// A ping.
    pub const PING: i32 = -2;
    /// Credentials.
    pub const AUTH: i32 = -4;
    /// Watches that are set again.
    pub const SET_WATCHES: i32 = -8;
}

records! {
    /// What each reply begins with.
    #[derive(Copy)]
    pub struct ReplyHeader {
        /// The number of the request, or one of [`xid`].
        pub xid: i32,
        /// The latest zxid that the server has applied. -1 in notifications of older servers.
        pub zxid: i64,
        /// How the request went.
        pub error: ErrorCode,
    }

    /// What a watch has seen.
    pub struct WatcherEvent {
        /// What happened.
        pub kind: EventType,
        /// The state of the session.
        pub state: KeeperState,
        /// The znode.
        pub path: String,
    }
}

impl ReplyHeader {
    /// Decodes the header of a reply. The rest of the frame's body may be anything.
    ///
    /// A client reads the xid from it, and finds the operation of the request.
    ///
    /// # Errors
    /// If the body is shorter than a header.
    pub fn peek(body: &[u8]) -> Result<ReplyHeader, DecodeError> {
        Record::decode(&mut Input::new(body, Form::OfReplies))
    }
}

/// A reply, or a notification.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reply {
    /// The header.
    pub header: ReplyHeader,
    /// The rest. [`Empty`](ReplyBody::Empty) if the request has failed.
    pub body: ReplyBody,
}

impl Reply {
    /// A reply to a request that has succeeded.
    pub fn new(xid: i32, zxid: i64, body: ReplyBody) -> Reply {
        let error = ErrorCode::Ok;
        Reply {
            header: ReplyHeader { xid, zxid, error },
            body,
        }
    }

    /// A reply to a request that has failed.
    pub fn failed(xid: i32, zxid: i64, error: ErrorCode) -> Reply {
        Reply {
            header: ReplyHeader { xid, zxid, error },
            body: ReplyBody::Empty,
        }
    }

    /// A notification, as servers send it: its zxid is -1.
    pub fn notification(event: WatcherEvent) -> Reply {
        Reply::new(xid::NOTIFICATION, -1, ReplyBody::Notification(event))
    }

    /// Appends the whole frame, its length in front.
    ///
    /// # Panics
    /// If the frame would be longer than 2 GiB - 1 byte.
    pub fn encode_frame(&self, to: &mut Vec<u8>) {
        frame::encode(to, Form::OfReplies, |to| {
            self.header.encode(to);
            self.body.encode(to);
        });
    }

    /// Decodes the body of a frame that is not a server's first. Bytes behind it are ignored.
    ///
    /// `opcode` is the operation of the request with this xid, and [`OpCode::Notification`] for
    /// [`xid::NOTIFICATION`]. The body of a failed request's reply is ignored.
    ///
    /// # Errors
    /// If the body is no reply to this operation.
    pub fn decode(body: &[u8], opcode: OpCode) -> Result<Reply, DecodeError> {
        let from = &mut Input::new(body, Form::OfReplies);
        let header = ReplyHeader::decode(from)?;
        let body = match header.error {
            ErrorCode::Ok => ReplyBody::decode(opcode, from)?
                .unwrap_or_else(|| ReplyBody::Other(from.rest().to_vec())),
            _ => ReplyBody::Empty,
        };
        Ok(Reply { header, body })
    }
}

results! {
    /// What a reply says behind its header.
    pub enum ReplyBody {
        /// Nothing.
        Empty for Delete | Ping | CheckWatches | RemoveWatches | Auth | SetWatches | SetWatches2
            | CloseSession,
        /// The reply to `create`.
        Create {
            /// The path, with its number.
            path: String,
        } for Create,
        /// The reply to `create2`, `createContainer` and `createTTL`.
        Create2 {
            /// The path, with its number.
            path: String,
            /// The znode's stat.
            stat: Stat,
        } for Create2 | CreateContainer | CreateTtl,
        /// The reply to `exists`, `setData`, `setACL` and `check`.
        Stat(stat: Stat) for Exists | SetData | SetAcl | Check,
        /// The reply to `getData` and `reconfig`.
        Data {
            /// The data. `None` is kept apart from empty data.
            data: Option<Vec<u8>>,
            /// The znode's stat.
            stat: Stat,
        } for GetData | Reconfig,
        /// The reply to `getACL`.
        Acl {
            /// The access control list.
            acl: Vec<Acl>,
            /// The znode's stat.
            stat: Stat,
        } for GetAcl,
        /// The reply to `getChildren`.
        Children {
            /// The names of the children.
            children: Vec<String>,
        } for GetChildren,
        /// The reply to `getChildren2`.
        Children2 {
            /// The names of the children.
            children: Vec<String>,
            /// The parent's stat.
            stat: Stat,
        } for GetChildren2,
        /// The reply to `sync`.
        Sync {
            /// The path of the request.
            path: String,
        } for Sync,
        /// The reply to `multi` and `multiRead`: one result for each operation.
        Multi(results: Vec<Outcome>) for Multi | MultiRead,
        /// The reply to `sasl`.
        Sasl(response: SaslResponse) for Sasl,
        /// The reply to `getEphemerals`.
        Ephemerals {
            /// The paths of the session's ephemeral znodes.
            paths: Vec<String>,
        } for GetEphemerals,
        /// The reply to `getAllChildrenNumber`.
        AllChildrenNumber {
            /// How many znodes are below the path.
            count: i32,
        } for GetAllChildrenNumber,
        /// The reply to `addWatch`: a second error code, always [`ErrorCode::Ok`].
        AddWatch(error: ErrorCode) for AddWatch,
        /// The reply to `whoAmI`.
        WhoAmI {
            /// All identities of the client.
            identities: Vec<ClientInfo>,
        } for WhoAmI,
        /// The event of a watch.
        Notification(event: WatcherEvent) for Notification,
    }
    /// The reply to an operation that this crate does not know: the bytes behind the header.
    Other(Vec<u8>)
}
