//! What a server sends: replies and events.

use std::mem;
use std::time::Duration;

use zookeeper_recipes_protocol::{
    ConnectResponse, ErrorCode, FrameDecoder, FrameError, OpCode, Reply, ReplyBody, ReplyHeader,
    WatcherEvent, xid,
};

use crate::error::{DisconnectReason, RequestError, SessionEnd};
use crate::session::machine::{Machine, OWN_XID, Phase, Recipient, only_reads};
use crate::session::output::{Answer, Exchange, Output};
use crate::session::pauses::longest_pause;
use crate::session::watches::WatchEvent;

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

    fn event(&mut self, now: Duration, frame: &[u8]) -> Result<(), DisconnectReason> {
        let reply = Reply::decode(frame, OpCode::Notification)?;
        let ReplyBody::Notification(WatcherEvent { kind, path, .. }) = reply.body else {
            return Ok(());
        };
        self.has_seen_more = true;
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
        self.has_seen_more = false;
        self.answered_at = now;
        self.confirmed(now);
        let Some(asked) = self.requests.answered() else {
            return;
        };
        let unsupported = &mut self.config.unsupported;
        unsupported.answered(asked.opcode, header.error, now);
        match asked.to {
            Recipient::Caller(caller, watch) => {
                let is_read = reply.is_ok();
                let exchange = Exchange {
                    sent: asked.sent_at.unwrap_or_default(),
                    answered: now,
                    connection: Some(self.connection),
                };
                let answer = reply.map(|reply| Answer { reply, exchange });
                self.yields(Output::Answered(caller, answer));
                if let Some(watch) = watch {
                    self.read_answered(now, &watch, header.error, is_read);
                }
            }
            Recipient::Tree(path) => self.tree_watched(now, &path, header.error),
            Recipient::Nobody => {}
            Recipient::Closing => self.end(SessionEnd::Closed),
        }
    }
}
