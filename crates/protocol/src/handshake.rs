//! The handshake: the first frame in each direction.

use std::fmt;

use crate::error::DecodeError;
use crate::frame;
use crate::jute::{Input, Output, Record};
use crate::text::Form;

/// How long a password is that a server gives.
pub const PASSWORD_LENGTH: usize = 16;

/// The first frame of a client: opens a session, or takes it to this connection.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ConnectRequest {
    /// The version of the protocol: always 0.
    pub protocol_version: i32,
    /// The latest zxid that the client has seen. A server that is behind it closes the connection.
    pub last_zxid_seen: i64,
    /// The session timeout that the client asks for, in milliseconds.
    pub timeout: i32,
    /// The session. 0 asks for a new one.
    pub session_id: i64,
    /// The password of the session.
    pub password: Vec<u8>,
    /// True if a server that only reads will do. `None`: the client (before 3.4) does not send it.
    pub read_only: Option<bool>,
}

/// The first frame of a server: the session, or its end.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ConnectResponse {
    /// The version of the protocol: always 0.
    pub protocol_version: i32,
    /// The session timeout that the server grants, in milliseconds. 0 if the session has expired.
    pub timeout: i32,
    /// The session. 0 if the session has expired.
    pub session_id: i64,
    /// The password of the session.
    pub password: Vec<u8>,
    /// True if the server only reads. Servers send it to clients that sent theirs.
    pub read_only: Option<bool>,
}

impl ConnectRequest {
    /// Appends the whole frame, its length in front.
    ///
    /// # Panics
    /// If the frame would be longer than 2 GiB - 1 byte.
    pub fn encode_frame(&self, to: &mut Vec<u8>) {
        frame::encode(to, Form::OfReplies, |to| {
            self.protocol_version.encode(to);
            self.last_zxid_seen.encode(to);
            self.timeout.encode(to);
            self.session_id.encode(to);
            self.password.encode(to);
            encode_read_only(self.read_only, to);
        });
    }

    /// Decodes the body of a client's first frame. Bytes behind it are ignored.
    ///
    /// # Errors
    /// If the body is none of this message.
    pub fn decode(body: &[u8]) -> Result<ConnectRequest, DecodeError> {
        let from = &mut Input::of_reply(body);
        Ok(ConnectRequest {
            protocol_version: Record::decode(from)?,
            last_zxid_seen: Record::decode(from)?,
            timeout: Record::decode(from)?,
            session_id: Record::decode(from)?,
            password: Record::decode(from)?,
            read_only: decode_read_only(from),
        })
    }
}

impl ConnectResponse {
    /// Appends the whole frame, its length in front.
    ///
    /// # Panics
    /// If the frame would be longer than 2 GiB - 1 byte.
    pub fn encode_frame(&self, to: &mut Vec<u8>) {
        frame::encode(to, Form::OfReplies, |to| {
            self.protocol_version.encode(to);
            self.timeout.encode(to);
            self.session_id.encode(to);
            self.password.encode(to);
            encode_read_only(self.read_only, to);
        });
    }

    /// Decodes the body of a server's first frame. Bytes behind it are ignored.
    ///
    /// # Errors
    /// If the body is none of this message.
    pub fn decode(body: &[u8]) -> Result<ConnectResponse, DecodeError> {
        let from = &mut Input::of_reply(body);
        Ok(ConnectResponse {
            protocol_version: Record::decode(from)?,
            timeout: Record::decode(from)?,
            session_id: Record::decode(from)?,
            password: Record::decode(from)?,
            read_only: decode_read_only(from),
        })
    }
}

/// Leaves the password out.
impl fmt::Debug for ConnectRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectRequest")
            .field("protocol_version", &self.protocol_version)
            .field("last_zxid_seen", &self.last_zxid_seen)
            .field("timeout", &self.timeout)
            .field("session_id", &self.session_id)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

/// Leaves the password out.
impl fmt::Debug for ConnectResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectResponse")
            .field("protocol_version", &self.protocol_version)
            .field("timeout", &self.timeout)
            .field("session_id", &self.session_id)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

fn encode_read_only(read_only: Option<bool>, to: &mut Output<'_>) {
    if let Some(read_only) = read_only {
        read_only.encode(to);
    }
}

/// The byte is there or not: all fields before it have been decoded.
fn decode_read_only(from: &mut Input<'_>) -> Option<bool> {
    bool::decode(from).ok()
}
