//! What a server sends: the confirmed session, replies and events.

use std::mem;
use std::time::Duration;

use zookeeper_recipes_protocol::{
    ConnectResponse, ErrorCode, FrameDecoder, FrameError, OpCode, Reply, ReplyBody, ReplyHeader,
    RequestBody, WatcherEvent, xid,
};

use crate::error::{Break, End, RequestError};
use crate::session::handshake_limit::HandshakeLimit;
use crate::session::machine::{
    Answer, Link, Machine, OpenedSession, Output, To, WatchedRead, only_reads,
};
use crate::session::pauses::longest_pause;
use crate::session::requests::Asked;
use crate::session::timing::Timing;
use crate::session::watches::Kind;

/// A session ends once its credentials were refused this often in a row, and once by each host.
const MOST_REFUSALS: usize = 3;

/// The number of bytes of a reply's header.
const REPLY_HEADER: usize = 16;

impl<R, W> Machine<R, W> {
    /// Bytes came over the current connection.
    pub fn received(&mut self, now: Duration, bytes: &[u8]) {
        if !self.has_connection() {
            return;
        }
        self.heard_at = now;
        if matches!(self.link, Link::Up) {
            self.served_at = Some(now);
        }
        let mut decoder = mem::replace(&mut self.decoder, FrameDecoder::new(0));
        decoder.feed(bytes);
        let connection = self.connection;
        let broken = loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    if let Err(cause) = self.frame(now, frame) {
                        break Some(cause);
                    }
                }
                Ok(None) => break None,
                Err(FrameError::TooLong { length, limit }) => {
                    let header = decoder.peek(REPLY_HEADER);
                    match self.too_long(now, header, length, limit) {
                        Ok(true) => decoder.skip_frame(),
                        Ok(false) => break None,
                        Err(cause) => break Some(cause),
                    }
                }
                Err(error) => break Some(error.into()),
            }
            if !self.has_connection() {
                return;
            }
        };
        debug_assert_eq!(connection, self.connection, "no input opens a connection");
        self.decoder = decoder;
        if let Some(cause) = broken {
            self.give_up(now, cause);
        }
    }

    /// A server that has confirmed the session has answered.
    fn confirmed(&mut self, now: Duration) {
        // A server that answers once and then breaks the connection is tried with growing pauses.
        if now >= self.up_at + longest_pause(self.timing.session) {
            self.pauses.answered();
        }
        self.handshake_limit = HandshakeLimit::default();
    }

    fn has_connection(&self) -> bool {
        matches!(
            self.link,
            Link::Greeting { .. } | Link::Restoring { .. } | Link::Up
        )
    }

    fn frame(&mut self, now: Duration, frame: &[u8]) -> Result<(), Break> {
        if let Link::Greeting { .. } = self.link {
            return self.greeted(now, ConnectResponse::decode(frame)?);
        }
        let header = ReplyHeader::peek(frame)?;
        if header.error == ErrorCode::SessionClosedRequireSaslAuth {
            self.end(End::SaslRequired);
            return Ok(());
        }
        match header.xid {
            xid::NOTIFICATION => self.event(frame),
            xid::PING => {
                self.pinged_at.take().ok_or(Break::NotAsked(header.xid))?;
                match self.link {
                    Link::Up => self.confirmed(now),
                    _ => self.up_if_restored(now),
                }
                Ok(())
            }
            xid::AUTH => self.authenticated(now, header.error),
            xid::SET_WATCHES => self.watches_set(now, header),
            _ => self.reply(now, header, frame),
        }
    }

    /// The answer to the request for the session.
    fn greeted(&mut self, now: Duration, response: ConnectResponse) -> Result<(), Break> {
        // It has no quorum, so it neither grants a session nor knows that one has expired.
        if response.read_only == Some(true) {
            return Err(Break::ReadOnly);
        }
        if self.session.is_some() && self.asked_session().is_none() {
            return self.tried(now, &response);
        }
        let granted = u64::try_from(response.timeout).unwrap_or_default();
        let is_granted = granted > 0 && response.session_id != 0;
        match &self.session {
            Some(_) if !is_granted => {
                self.end(End::Expired);
                return Ok(());
            }
            None if !is_granted => return Err(Break::NotGranted),
            Some(session) if session.id != response.session_id => {
                // Nobody knows the new session, so it must not stay open at the server.
                self.send_own(1, RequestBody::CloseSession);
                self.end(End::Expired);
                return Ok(());
            }
            _ => {}
        }
        self.timeout = Duration::from_millis(granted);
        self.session = Some(OpenedSession {
            id: response.session_id,
            password: response.password,
        });
        self.opened_over.get_or_insert(self.connection);
        let before = self.shortest.replace(self.timeout);
        if let Some(before) = before {
            self.shortest = Some(before.min(self.timeout));
            // Credentials and watches come first, and the session can expire meanwhile.
            if self.timeout < before {
                self.yields(Output::State(self.disconnected()));
            }
        }
        self.timing = Timing::of(self.timeout, self.hosts.number());
        self.restore(now);
        Ok(())
    }

    /// The answer to one of the credentials.
    fn authenticated(&mut self, now: Duration, error: ErrorCode) -> Result<(), Break> {
        let Link::Restoring { schemes, .. } = &mut self.link else {
            return Err(Break::NotAsked(xid::AUTH));
        };
        let scheme = schemes.pop_front().ok_or(Break::NotAsked(xid::AUTH))?;
        if error == ErrorCode::Ok {
            self.up_if_restored(now);
            return Ok(());
        }
        self.refusals += 1;
        // A session that had these credentials accepted before is worth other tries.
        if !self.confirmed_once || self.refusals >= self.hosts.number().max(MOST_REFUSALS) {
            self.hosts.note(Some(Break::AuthenticationFailed(scheme)));
            self.end(End::AuthenticationFailed);
            return Ok(());
        }
        Err(Break::AuthenticationFailed(scheme))
    }

    /// The answer to some of the watches that were set again.
    fn watches_set(&mut self, now: Duration, header: ReplyHeader) -> Result<(), Break> {
        let watches = match &mut self.link {
            Link::Restoring { watches, .. } if *watches > 0 => watches,
            _ => return Err(Break::NotAsked(header.xid)),
        };
        if header.error != ErrorCode::Ok {
            return Err(Break::WatchesRefused(header.error));
        }
        *watches -= 1;
        self.up_if_restored(now);
        Ok(())
    }

    fn event(&mut self, frame: &[u8]) -> Result<(), Break> {
        let reply = Reply::decode(frame, OpCode::Notification)?;
        let ReplyBody::Notification(WatcherEvent { kind, path, .. }) = reply.body else {
            return Ok(());
        };
        for watch in self.watches.fire(&path, kind) {
            self.yields(Output::Fired(watch, kind));
        }
        Ok(())
    }

    fn reply(&mut self, now: Duration, header: ReplyHeader, frame: &[u8]) -> Result<(), Break> {
        let opcode = self.answered_opcode(header)?;
        let reply = match Reply::decode(frame, opcode) {
            Ok(reply) => reply,
            Err(cause) => {
                // A read that is asked again may get the same reply for ever.
                if only_reads(opcode) {
                    self.refused(now, header, RequestError::Unreadable(cause.clone()));
                }
                return Err(cause.into());
            }
        };
        if let Some(asked) = self.take_answered(now, header) {
            self.answered(now, asked, reply);
        }
        Ok(())
    }

    /// A reply is too long to be read. `header` is `None` until its header has come.
    ///
    /// It is passed over if its request only reads: the request would get the same reply again, on
    /// each connection. The result is false if the header has to come first.
    fn too_long(
        &mut self,
        now: Duration,
        header: Option<&[u8]>,
        length: usize,
        limit: usize,
    ) -> Result<bool, Break> {
        let oldest = self.requests.oldest_sent();
        if !oldest.is_some_and(|oldest| only_reads(oldest.opcode)) {
            return Err(FrameError::TooLong { length, limit }.into());
        }
        let Some(header) = header else {
            return Ok(false);
        };
        let header = ReplyHeader::peek(header)?;
        self.answered_opcode(header)?;
        self.refused(now, header, RequestError::TooLong { length, limit });
        Ok(true)
    }

    /// The kind of the request that a reply with this header answers.
    fn answered_opcode(&self, header: ReplyHeader) -> Result<OpCode, Break> {
        let oldest = self.requests.oldest_sent();
        let oldest = oldest.ok_or(Break::NotAsked(header.xid))?;
        if oldest.xid != header.xid {
            return Err(Break::OutOfOrder {
                expected: oldest.xid,
                found: header.xid,
            });
        }
        Ok(oldest.opcode)
    }

    /// Takes the request that a reply with this header answers.
    fn take_answered(&mut self, now: Duration, header: ReplyHeader) -> Option<Asked<To<R, W>>> {
        self.last_zxid = self.last_zxid.max(header.zxid);
        self.answered_at = now;
        self.confirmed(now);
        self.requests.answered()
    }

    /// The reply to the oldest request has come, and cannot be passed on.
    fn refused(&mut self, now: Duration, header: ReplyHeader, error: RequestError) {
        let Some(asked) = self.take_answered(now, header) else {
            return;
        };
        if let To::Watcher { path, id, .. } = &asked.to {
            // The server has set the watch, and nobody waits for it.
            self.watches.forget(path, *id);
            if let Some(kind) = kind_set(asked.opcode, header.error) {
                self.remove_watch(now, path, kind.table());
            }
        }
        self.unanswered(asked.to, error);
    }

    fn answered(&mut self, now: Duration, asked: Asked<To<R, W>>, reply: Reply) {
        let error = reply.header.error;
        self.config.unsupported.answered(asked.opcode);
        let answer = Answer {
            reply,
            asked_at: asked.asked_at,
            sent_at: asked.sent_at.unwrap_or(asked.asked_at),
            answered_at: now,
            connection: self.connection,
        };
        match asked.to {
            To::Caller(caller) => self.yields(Output::Answered(caller, Ok(answer))),
            To::Watcher {
                caller,
                path,
                id,
                watch,
            } => {
                let set = kind_set(asked.opcode, error).map(|kind| (kind, watch));
                let table = set.as_ref().map(|(kind, _)| kind.table());
                let left_over = self.watches.answered(&path, id, set);
                if let Some(table) = table.filter(|_| left_over) {
                    self.remove_watch(now, &path, table);
                }
                self.yields(Output::Answered(caller, Ok(answer)));
            }
            To::Nobody => {}
            To::Closing => self.end(End::Closed),
        }
    }
}

impl WatchedRead {
    /// True if the read set a watch, by the error code of its reply.
    pub fn sets_watch(self, error: ErrorCode) -> bool {
        kind_set(self.opcode(), error).is_some()
    }

    pub(crate) fn opcode(self) -> OpCode {
        match self {
            WatchedRead::Data => OpCode::GetData,
            WatchedRead::Exists => OpCode::Exists,
            WatchedRead::Children => OpCode::GetChildren,
        }
    }
}

/// The watch that a read has set, by its operation and the error code of its reply.
fn kind_set(opcode: OpCode, error: ErrorCode) -> Option<Kind> {
    match (opcode, error) {
        (OpCode::GetData | OpCode::Exists, ErrorCode::Ok) => Some(Kind::Data),
        (OpCode::Exists, ErrorCode::NoNode) => Some(Kind::Absent),
        (OpCode::GetChildren, ErrorCode::Ok) => Some(Kind::Children),
        _ => None,
    }
}
