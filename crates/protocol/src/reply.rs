//! Replies and notifications: what a server sends after the handshake.

use crate::code::{ErrorCode, EventType, KeeperState, OpCode};
use crate::data::{Acl, ClientInfo, Stat};
use crate::error::DecodeError;
use crate::frame;
use crate::jute::{Input, Output, Record, records};
use crate::multi::{self, MultiResult};
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
        Record::decode(&mut Input::of_reply(body))
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
        let from = &mut Input::of_reply(body);
        let header = ReplyHeader::decode(from)?;
        let body = match header.error {
            ErrorCode::Ok => ReplyBody::decode(opcode, from)?,
            _ => ReplyBody::Empty,
        };
        Ok(Reply { header, body })
    }
}

/// What a reply says behind its header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplyBody {
    /// Nothing.
    Empty,
    /// The reply to `create`.
    Create {
        /// The path, with its number.
        path: String,
    },
    /// The reply to `create2`, `createContainer` and `createTTL`.
    Create2 {
        /// The path, with its number.
        path: String,
        /// The znode's stat.
        stat: Stat,
    },
    /// The reply to `exists`, `setData`, `setACL` and `check`.
    Stat(Stat),
    /// The reply to `getData` and `reconfig`.
    Data {
        /// The data. `None` is kept apart from empty data.
        data: Option<Vec<u8>>,
        /// The znode's stat.
        stat: Stat,
    },
    /// The reply to `getACL`.
    Acl {
        /// The access control list.
        acl: Vec<Acl>,
        /// The znode's stat.
        stat: Stat,
    },
    /// The reply to `getChildren`.
    Children {
        /// The names of the children.
        children: Vec<String>,
    },
    /// The reply to `getChildren2`.
    Children2 {
        /// The names of the children.
        children: Vec<String>,
        /// The parent's stat.
        stat: Stat,
    },
    /// The reply to `sync`.
    Sync {
        /// The path of the request.
        path: String,
    },
    /// The reply to `multi` and `multiRead`: one result for each operation.
    Multi(Vec<MultiResult>),
    /// The reply to `sasl`.
    Sasl(SaslResponse),
    /// The reply to `getEphemerals`.
    Ephemerals {
        /// The paths of the session's ephemeral znodes.
        paths: Vec<String>,
    },
    /// The reply to `getAllChildrenNumber`.
    AllChildrenNumber {
        /// How many znodes are below the path.
        count: i32,
    },
    /// The reply to `addWatch`: a second error code, always [`ErrorCode::Ok`].
    AddWatch(ErrorCode),
    /// The reply to `whoAmI`.
    WhoAmI {
        /// All identities of the client.
        identities: Vec<ClientInfo>,
    },
    /// The event of a watch.
    Notification(WatcherEvent),
    /// The reply to an operation that this crate does not know: the bytes behind the header.
    Other(Vec<u8>),
}

impl ReplyBody {
    fn encode(&self, to: &mut Output<'_>) {
        match self {
            ReplyBody::Empty => {}
            ReplyBody::Create { path } | ReplyBody::Sync { path } => path.encode(to),
            ReplyBody::Create2 { path, stat } => {
                path.encode(to);
                stat.encode(to);
            }
            ReplyBody::Stat(stat) => stat.encode(to),
            ReplyBody::Data { data, stat } => {
                data.encode(to);
                stat.encode(to);
            }
            ReplyBody::Acl { acl, stat } => {
                acl.encode(to);
                stat.encode(to);
            }
            ReplyBody::Children { children } => children.encode(to),
            ReplyBody::Children2 { children, stat } => {
                children.encode(to);
                stat.encode(to);
            }
            ReplyBody::Multi(results) => multi::encode_results(results, to),
            ReplyBody::Sasl(response) => response.encode(to),
            ReplyBody::Ephemerals { paths } => paths.encode(to),
            ReplyBody::AllChildrenNumber { count } => count.encode(to),
            ReplyBody::AddWatch(error) => error.encode(to),
            ReplyBody::WhoAmI { identities } => identities.encode(to),
            ReplyBody::Notification(event) => event.encode(to),
            ReplyBody::Other(bytes) => to.put(bytes),
        }
    }

    fn decode(opcode: OpCode, from: &mut Input<'_>) -> Result<ReplyBody, DecodeError> {
        Ok(match opcode {
            OpCode::Create => ReplyBody::Create {
                path: Record::decode(from)?,
            },
            OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => ReplyBody::Create2 {
                path: Record::decode(from)?,
                stat: Record::decode(from)?,
            },
            OpCode::Exists | OpCode::SetData | OpCode::SetAcl | OpCode::Check => {
                ReplyBody::Stat(Record::decode(from)?)
            }
            OpCode::GetData | OpCode::Reconfig => ReplyBody::Data {
                data: Record::decode(from)?,
                stat: Record::decode(from)?,
            },
            OpCode::GetAcl => ReplyBody::Acl {
                acl: Record::decode(from)?,
                stat: Record::decode(from)?,
            },
            OpCode::GetChildren => ReplyBody::Children {
                children: Record::decode(from)?,
            },
            OpCode::GetChildren2 => ReplyBody::Children2 {
                children: Record::decode(from)?,
                stat: Record::decode(from)?,
            },
            OpCode::Multi | OpCode::MultiRead => ReplyBody::Multi(multi::decode_results(from)?),
            other => return ReplyBody::decode_rarer(other, from),
        })
    }

    fn decode_rarer(opcode: OpCode, from: &mut Input<'_>) -> Result<ReplyBody, DecodeError> {
        Ok(match opcode {
            OpCode::Notification => ReplyBody::Notification(Record::decode(from)?),
            OpCode::Sync => ReplyBody::Sync {
                path: Record::decode(from)?,
            },
            OpCode::Sasl => ReplyBody::Sasl(Record::decode(from)?),
            OpCode::GetEphemerals => ReplyBody::Ephemerals {
                paths: Record::decode(from)?,
            },
            OpCode::GetAllChildrenNumber => ReplyBody::AllChildrenNumber {
                count: Record::decode(from)?,
            },
            OpCode::AddWatch => ReplyBody::AddWatch(Record::decode(from)?),
            OpCode::WhoAmI => ReplyBody::WhoAmI {
                identities: Record::decode(from)?,
            },
            OpCode::Delete
            | OpCode::Ping
            | OpCode::CheckWatches
            | OpCode::RemoveWatches
            | OpCode::Auth
            | OpCode::SetWatches
            | OpCode::SetWatches2
            | OpCode::CloseSession => ReplyBody::Empty,
            _ => ReplyBody::Other(from.rest().to_vec()),
        })
    }
}
