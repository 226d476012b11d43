//! ZooKeeper's wire protocol: a codec for requests and replies, without I/O.
//!
//! A client and a server exchange frames: a length of four bytes, then a message. A
//! [`FrameDecoder`] cuts a stream into frames. The first frame in each direction is a
//! [`ConnectRequest`] and a [`ConnectResponse`]. All others are a [`Request`] and a [`Reply`].
//!
//! | | client | server |
//! |---|---|---|
//! | first frame | [`ConnectRequest::encode_frame`] | [`ConnectRequest::decode`] |
//! | its answer | [`ConnectResponse::decode`] | [`ConnectResponse::encode_frame`] |
//! | each other frame | [`Request::encode_frame`] | [`Request::decode`] |
//! | its answer | [`ReplyHeader::peek`], [`Reply::decode`] | [`Reply::encode_frame`] |
//! | an event of a watch | [`Reply::decode`] | [`Reply::notification`] |
//!
//! ```
//! use zookeeper_recipes_protocol::{
//!     DEFAULT_FRAME_LIMIT, ErrorCode, FrameDecoder, OpCode, ReadRequest, Reply, Request, RequestBody,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut sent = Vec::new();
//! let read = ReadRequest::new("/jobs", true);
//! Request { xid: 1, body: RequestBody::Exists(read) }.encode_frame(&mut sent);
//!
//! // A server reads the request, and answers.
//! let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
//! decoder.feed(&sent);
//! let frame = decoder.next_frame()?.expect("the whole frame was fed");
//! let request = Request::decode(frame)?;
//! assert_eq!(request.body.path(), Some("/jobs"));
//! let mut answer = Vec::new();
//! Reply::failed(request.xid, 77, ErrorCode::NoNode).encode_frame(&mut answer);
//!
//! // The client knows by the xid which request this answers.
//! let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
//! decoder.feed(&answer);
//! let frame = decoder.next_frame()?.expect("the whole frame was fed");
//! let reply = Reply::decode(frame, OpCode::Exists)?;
//! assert_eq!(reply.header.error, ErrorCode::NoNode);
//! # Ok(())
//! # }
//! ```
//!
//! # What a peer can claim
//!
//! - The decoder never allocates from untrusted lengths. A frame above the limit is an error.
//! - Decoding a message takes at most 32 times the bytes of its frame, for any counts in it.
//! - Any bytes yield a message or an error; none panic.
//!
//! # What differs between servers
//!
//! - Bytes behind a message are ignored, as Apache's server and its client ignore them.
//! - An operation with an unknown number is a [`RequestBody::Other`], an unknown error an
//!   [`ErrorCode::Unknown`]: neither is an error of the codec.
//! - In replies, the two surrogates that Java writes for a character beyond U+FFFF are read as that
//!   character. Java's own client reads U+FFFD twice.
//! - A path of length -1 is an error. Apache's server answers most such requests with
//!   [`ErrorCode::MarshallingError`].
//! - A list of length -1 is empty.

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-protocol/latest")]

mod code;
mod data;
mod error;
mod four_letter_word;
mod frame;
mod handshake;
mod jute;
mod message;
mod multi;
mod operation;
mod reply;
mod request;
mod text;

pub use code::{AddWatchMode, CreateMode, ErrorCode, EventType, KeeperState, OpCode, WatcherType};
pub use data::{Acl, AuthId, ClientInfo, Permission, Stat};
pub use error::DecodeError;
pub use four_letter_word::FourLetterWord;
pub use frame::{DEFAULT_FRAME_LIMIT, FRAME_HEADER, FrameDecoder, FrameError};
pub use handshake::{ConnectRequest, ConnectResponse, PASSWORD_LENGTH};
pub use multi::{Operation, Outcome};
pub use operation::{
    AddWatchRequest, AuthRequest, CheckRequest, CreateRequest, CreateTtlRequest, DeleteRequest,
    GetEphemeralsRequest, PathRequest, ReadRequest, ReconfigRequest, SaslRequest, SaslResponse,
    SetAclRequest, SetDataRequest, SetWatches2Request, SetWatchesRequest, WatchesRequest,
};
pub use reply::{Reply, ReplyBody, ReplyHeader, WatcherEvent, xid};
pub use request::{Request, RequestBody, RequestHeader};
