//! The handshake: the first frame in each direction.

use std::time::Duration;

use crate::error::DecodeError;
use crate::frame;
use crate::jute::{Input, Output, Record, secret_records};
use crate::text::Form;

/// How long a password is that a server gives.
pub const PASSWORD_LENGTH: usize = 16;

secret_records! {
    /// The first frame of a client: opens a session, or takes it to this connection.
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
    } shows { protocol_version last_zxid_seen timeout session_id read_only }

    /// The first frame of a server: the session, or its end.
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
    } shows { protocol_version timeout session_id read_only }
}

impl ConnectRequest {
    /// Asks for a new session with this timeout, at a server with a quorum.
    pub fn new(timeout: Duration) -> ConnectRequest {
        ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout: timeout.as_millis().try_into().unwrap_or(i32::MAX),
            session_id: 0,
            password: vec![0; PASSWORD_LENGTH],
            read_only: Some(false),
        }
    }

    /// Appends the whole frame, its length in front.
    ///
    /// # Panics
    /// If the frame would be longer than 2 GiB - 1 byte.
    pub fn encode_frame(&self, to: &mut Vec<u8>) {
        frame::encode(to, Form::OfReplies, |to| self.encode(to));
    }

    /// Decodes the body of a client's first frame. Bytes behind it are ignored.
    ///
    /// # Errors
    /// If the body is none of this message.
    pub fn decode(body: &[u8]) -> Result<ConnectRequest, DecodeError> {
        Record::decode(&mut Input::new(body, Form::OfReplies))
    }
}

impl ConnectResponse {
    /// Appends the whole frame, its length in front.
    ///
    /// # Panics
    /// If the frame would be longer than 2 GiB - 1 byte.
    pub fn encode_frame(&self, to: &mut Vec<u8>) {
        frame::encode(to, Form::OfReplies, |to| self.encode(to));
    }

    /// Decodes the body of a server's first frame. Bytes behind it are ignored.
    ///
    /// # Errors
    /// If the body is none of this message.
    pub fn decode(body: &[u8]) -> Result<ConnectResponse, DecodeError> {
        Record::decode(&mut Input::new(body, Form::OfReplies))
    }

    /// True if the server has opened or confirmed a session.
    pub fn is_granted(&self) -> bool {
        self.timeout > 0 && self.session_id != 0
    }
}

/// The byte is there or not: all fields before it have been decoded.
impl Record for Option<bool> {
    const SMALLEST: usize = 0;

    fn encode(&self, to: &mut Output<'_>) {
        if let Some(byte) = self {
            byte.encode(to);
        }
    }

    fn decode(from: &mut Input<'_>) -> Result<Option<bool>, DecodeError> {
        Ok(bool::decode(from).ok())
    }
}
