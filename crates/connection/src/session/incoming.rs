//! What a server sends: the confirmed session, replies and events.

use std::mem;
use std::time::Duration;

use zookeeper_recipes_protocol::{
    ConnectResponse, ErrorCode, FrameDecoder, FrameError, OpCode, Reply, ReplyBody, ReplyHeader,
    RequestBody, WatcherEvent, xid,
};

use crate::error::{DisconnectReason, RequestError, SessionEnd};
use crate::session::machine::{
    Answer, Exchange, Machine, OWN_XID, Output, Phase, ReadWatch, Recipient, WatchedRead,
    only_reads,
};
use crate::session::pauses::longest_pause;
use crate::session::timing::Timing;
use crate::session::watches::{WatchEvent, WatchKind};

/// A session ends once its credentials were refused this often in a row, and once by each host.
const MAX_REFUSALS: usize = 3;

/// The number of bytes of a reply's header.
const REPLY_HEADER: usize = 16;

impl<R, W> Machine<R, W> {
    /// Bytes came over the current connection.
    pub fn received(&mut self, now: Duration, bytes: &[u8]) {
        if !self.has_connection() {
            return;
        }
        self.heard_at = now;
        if matches!(self.phase, Phase::Up) {
            self.served_at = Some(now);
        }
        let mut decoder = mem::replace(&mut self.decoder, FrameDecoder::new(0));
        decoder.feed(bytes);
        let read = self.frames(now, &mut decoder);
        if self.has_connection() {
            self.decoder = decoder;
        }
        if let Err(cause) = read {
            self.give_up(now, cause);
        }
    }

    fn frames(
        &mut self,
        now: Duration,
        decoder: &mut FrameDecoder,
    ) -> Result<(), DisconnectReason> {
        while self.has_connection() {
            match decoder.next_frame() {
                Ok(Some(frame)) => self.frame(now, frame)?,
                Ok(None) => return Ok(()),
                Err(FrameError::TooLong { length, limit }) => {
                    if !self.too_long(now, decoder.peek(REPLY_HEADER), length, limit)? {
                        return Ok(());
                    }
                    decoder.skip_frame();
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// A server that has confirmed the session has answered.
    fn confirmed(&mut self, now: Duration) {
        // A server that answers once and then breaks the connection is tried with growing pauses.
        if now >= self.up_at + longest_pause(self.timing.session) {
            self.pauses.answered();
        }
        self.handshake_limit.answered();
    }

    fn has_connection(&self) -> bool {
        !matches!(
            self.phase,
            Phase::Down { .. } | Phase::Opening { .. } | Phase::Ended(_)
        )
    }

    fn frame(&mut self, now: Duration, frame: &[u8]) -> Result<(), DisconnectReason> {
        if let Phase::Greeting { .. } = self.phase {
            return self.greeted(now, ConnectResponse::decode(frame)?);
        }
        let header = ReplyHeader::peek(frame)?;
        if matches!(self.phase, Phase::Authenticating { .. }) && header.xid == OWN_XID {
            return self.challenged(now, frame);
        }
        if header.error == ErrorCode::SessionClosedRequireSaslAuth {
            self.end(SessionEnd::SaslRequired);
            return Ok(());
        }
        match header.xid {
            xid::NOTIFICATION => self.event(now, frame),
            xid::PING => {
                let asked = self.pinged_at.take();
                asked.ok_or(DisconnectReason::NotAsked(header.xid))?;
                match self.phase {
                    Phase::Up => self.confirmed(now),
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
    fn greeted(
        &mut self,
        now: Duration,
        response: ConnectResponse,
    ) -> Result<(), DisconnectReason> {
        // It has no quorum, so it neither grants a session nor knows that one has expired.
        if response.read_only == Some(true) {
            return Err(DisconnectReason::ReadOnly);
        }
        if self.session.is_some() && self.asked_session().is_none() {
            return self.tried(now, &response);
        }
        let is_granted = response.is_granted();
        match &self.session {
            None if !is_granted => return Err(DisconnectReason::NotGranted),
            Some(session) if !is_granted || session.session_id != response.session_id => {
                if is_granted {
                    // Nobody knows the new session, so it must not stay open at the server.
                    self.send_own(RequestBody::CloseSession);
                }
                self.end(SessionEnd::Expired);
                return Ok(());
            }
            _ => {}
        }
        let granted = Duration::from_millis(response.timeout.unsigned_abs().into());
        let is_first = self.session.is_none();
        self.session = Some(response);
        self.opened_over.get_or_insert(self.connection);
        if is_first || granted < self.shortest {
            self.shortest = granted;
            // Credentials and watches come first, and the session can expire meanwhile.
            if !is_first {
                self.yields(Output::State(self.disconnected()));
            }
        }
        self.timing = Timing::of(granted, self.hosts.number());
        self.authenticate(now);
        Ok(())
    }

    /// The answer to one of the credentials.
    fn authenticated(&mut self, now: Duration, error: ErrorCode) -> Result<(), DisconnectReason> {
        let credentials = match &mut self.phase {
            Phase::Restoring { credentials, .. } if *credentials > 0 => credentials,
            _ => return Err(DisconnectReason::NotAsked(xid::AUTH)),
        };
        let place = self.config.auth.len() - *credentials;
        *credentials -= 1;
        if error == ErrorCode::Ok {
            self.up_if_restored(now);
            return Ok(());
        }
        self.credentials_refused(self.config.auth[place].0.clone())
    }

    /// The server does not accept the credentials of this scheme.
    pub(crate) fn credentials_refused(&mut self, scheme: String) -> Result<(), DisconnectReason> {
        self.refusals += 1;
        // A session that had these credentials accepted before is worth other tries.
        if self.served_at.is_none() || self.refusals >= self.hosts.number().max(MAX_REFUSALS) {
            self.hosts
                .note(Some(DisconnectReason::AuthenticationFailed(scheme)));
            self.end(SessionEnd::AuthenticationFailed);
            return Ok(());
        }
        Err(DisconnectReason::AuthenticationFailed(scheme))
    }

    /// The answer to some of the watches that were set again.
    fn watches_set(&mut self, now: Duration, header: ReplyHeader) -> Result<(), DisconnectReason> {
        let watches = match &mut self.phase {
            Phase::Restoring { watches, .. } if *watches > 0 => watches,
            _ => return Err(DisconnectReason::NotAsked(header.xid)),
        };
        if header.error != ErrorCode::Ok {
            return Err(DisconnectReason::WatchesRefused(header.error));
        }
        *watches -= 1;
        self.up_if_restored(now);
        Ok(())
    }

    fn event(&mut self, now: Duration, frame: &[u8]) -> Result<(), DisconnectReason> {
        let reply = Reply::decode(frame, OpCode::Notification)?;
        let ReplyBody::Notification(WatcherEvent { kind, path, .. }) = reply.body else {
            return Ok(());
        };
        for watch in self.watches.fire(&path, kind) {
            self.yields(Output::Watched(watch, WatchEvent::Fired(kind)));
        }
        self.tree_event(now, &path, kind);
        Ok(())
    }

    fn reply(
        &mut self,
        now: Duration,
        header: ReplyHeader,
        frame: &[u8],
    ) -> Result<(), DisconnectReason> {
        let opcode = self.answered_opcode(header)?;
        let reply = match Reply::decode(frame, opcode) {
            Ok(reply) => reply,
            Err(cause) => {
                // A read that is asked again may get the same reply for ever.
                if only_reads(opcode) {
                    self.answered(now, header, Err(RequestError::Unreadable(cause.clone())));
                }
                return Err(cause.into());
            }
        };
        self.answered(now, header, Ok(reply));
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
    ) -> Result<bool, DisconnectReason> {
        let oldest = self.requests.oldest_sent();
        if !oldest.is_some_and(|oldest| only_reads(oldest.opcode)) {
            return Err(FrameError::TooLong { length, limit }.into());
        }
        let Some(header) = header else {
            return Ok(false);
        };
        let header = ReplyHeader::peek(header)?;
        self.answered_opcode(header)?;
        self.answered(now, header, Err(RequestError::TooLong { length, limit }));
        Ok(true)
    }

    /// The kind of the request that a reply with this header answers.
    fn answered_opcode(&self, header: ReplyHeader) -> Result<OpCode, DisconnectReason> {
        let oldest = self.requests.oldest_sent();
        let asked = oldest.filter(|oldest| oldest.xid == header.xid);
        let asked = asked.ok_or(DisconnectReason::NotAsked(header.xid))?;
        Ok(asked.opcode)
    }

    /// Passes the reply to the oldest request on, or why it cannot be read.
    fn answered(&mut self, now: Duration, header: ReplyHeader, reply: Result<Reply, RequestError>) {
        self.last_zxid = self.last_zxid.max(header.zxid);
        self.answered_at = now;
        self.confirmed(now);
        let Some(asked) = self.requests.answered() else {
            return;
        };
        let unsupported = &mut self.config.unsupported;
        unsupported.answered(asked.opcode, header.error, now);
        match asked.to {
            Recipient::Caller(caller, watch) => {
                let mut uncovered = None;
                if let Some(ReadWatch {
                    read,
                    id,
                    covered_over,
                }) = watch
                {
                    match read.kind_set(header.error) {
                        Some(kind) if !self.watches.set(&id, kind) => {
                            self.remove_watch(now, &id.path, kind.table());
                        }
                        Some(_) if reply.is_ok() => {
                            let is_covered =
                                |over| over == self.connection && self.trees.is_set(&id.path);
                            if !covered_over.is_none_or(is_covered) {
                                uncovered = self.watches.take_one(&id);
                            }
                        }
                        _ => self.unwatch(now, &id),
                    }
                }
                let exchange = Exchange {
                    sent: asked.sent_at.unwrap_or_default(),
                    answered: now,
                    connection: Some(self.connection),
                };
                let answer = reply.map(|reply| Answer { reply, exchange });
                self.yields(Output::Answered(caller, answer));
                if let Some(watch) = uncovered {
                    self.yields(Output::Watched(watch, WatchEvent::Unwatched));
                }
            }
            Recipient::Tree(path) => self.tree_watched(now, &path, header.error),
            Recipient::Nobody => {}
            Recipient::Closing => self.end(SessionEnd::Closed),
        }
    }
}

impl WatchedRead {
    /// True if the read set a watch, by the error code of its reply.
    pub fn sets_watch(self, error: ErrorCode) -> bool {
        self.kind_set(error).is_some()
    }

    fn kind_set(self, error: ErrorCode) -> Option<WatchKind> {
        match (self, error) {
            (WatchedRead::Data | WatchedRead::Exists, ErrorCode::Ok) => Some(WatchKind::Data),
            (WatchedRead::Exists, ErrorCode::NoNode) => Some(WatchKind::Absent),
            (WatchedRead::Children, ErrorCode::Ok) => Some(WatchKind::Children),
            _ => None,
        }
    }
}
