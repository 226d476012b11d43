//! The connections of a session: one after the other, each opened, greeted and watched over time.

use std::io::ErrorKind;
use std::time::Duration;

use zookeeper_recipes_protocol::{
    AuthRequest, ConnectRequest, FrameDecoder, OpCode, PASSWORD_LENGTH, RequestBody, xid,
};

use crate::error::{Break, End, RequestError};
use crate::session::host::Obstacle;
use crate::session::machine::{Link, MOST_BREAKS, Machine, Output, Refusal, State, To};
use crate::session::unsupported::may_be_unknown;

impl<R, W> Machine<R, W> {
    /// The connection that [`Output::Connect`] asked for is open.
    pub fn connected(&mut self, now: Duration) {
        let Link::Opening { since } = self.link else {
            return;
        };
        self.link = Link::Greeting { since };
        self.connection += 1;
        self.heard_at = now;
        let session = self.asked_session();
        let milliseconds = self.config.session_timeout.as_millis();
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: session.map_or(0, |_| self.last_zxid),
            timeout: i32::try_from(milliseconds).unwrap_or(i32::MAX),
            session_id: session.map_or(0, |session| session.id),
            password: session.map_or_else(
                || vec![0; PASSWORD_LENGTH],
                |session| session.password.clone(),
            ),
            read_only: Some(false),
        };
        // What an earlier connection did not take belongs to that one.
        self.own_frames.clear();
        request.encode_frame(&mut self.own_frames);
    }

    /// The connection could not be opened, or has broken.
    pub fn broken(&mut self, now: Duration, cause: impl Into<Break>) {
        self.lost(now, cause.into());
    }

    /// Leaves the present server for another address.
    ///
    /// Without a confirmed connection, or another address that is known, the call does nothing.
    pub fn leave_server(&mut self, now: Duration) {
        if matches!(self.link, Link::Up) && self.hosts.has_other() {
            self.give_up(now, Break::Left);
        }
    }

    /// Time has passed. Call it at the [`deadline`](Self::deadline), or at any other time.
    pub fn elapsed(&mut self, now: Duration) {
        if self.closing_until.is_some_and(|until| now >= until) {
            return self.end(End::Closed);
        }
        match self.link {
            Link::Down { until, .. } if now >= until => self.try_next(now),
            Link::Opening { since } if now >= since + self.limits.accept => {
                self.give_up(now, Break::NotConnected(self.limits.accept));
            }
            Link::Greeting { since } if now >= since + self.limits.handshake => {
                self.give_up(now, Break::NoSession(self.limits.handshake));
            }
            Link::Restoring { .. } if now >= self.heard_at + self.limits.silence => {
                self.give_up(now, Break::Silent(self.limits.silence));
            }
            Link::Restoring { since, .. } if now >= since + self.restoring_limit() => {
                self.give_up(now, Break::NoSession(self.restoring_limit()));
            }
            Link::Up => self.look_at_replies(now),
            _ => {}
        }
    }

    /// True if a hold of the session can still be saved: T has not passed without a server.
    pub(crate) fn is_urgent(&self, now: Duration) -> bool {
        let served_at = self.served_at;
        served_at.is_some_and(|at| now < at + self.timing.session)
    }

    /// How long a host that sends something may take to restore the session.
    fn restoring_limit(&self) -> Duration {
        self.timing.unanswered.max(self.limits.silence)
    }

    /// When [`elapsed`](Self::elapsed) has something to do, if nothing else happens before.
    pub fn deadline(&self) -> Option<Duration> {
        let of_link = match &self.link {
            Link::Down { until, .. } => *until,
            Link::Opening { since } => *since + self.limits.accept,
            Link::Greeting { since } => *since + self.limits.handshake,
            Link::Restoring { since, .. } => {
                (self.heard_at + self.limits.silence).min(*since + self.restoring_limit())
            }
            Link::Up => {
                let limits = [self.silent_at(), self.unanswered_at()];
                let limits = limits.into_iter().flatten();
                limits.fold(self.ping_at(), Duration::min)
            }
            Link::Ended(_) => return None,
        };
        Some(
            self.closing_until
                .map_or(of_link, |until| until.min(of_link)),
        )
    }

    /// Why there is no session at each host, or not yet. A host that was not tried is left out.
    pub fn obstacles(&self, now: Duration) -> Vec<Obstacle> {
        let lasts = |since| now.saturating_sub(since);
        let present = match self.link {
            Link::Opening { since } => Some(Break::NotConnected(lasts(since))),
            Link::Greeting { since } => Some(Break::NoSession(lasts(since))),
            _ => None,
        };
        self.hosts.obstacles(now, present)
    }

    fn ping_at(&self) -> Duration {
        match self.pinged_at {
            None => self.said_at + self.timing.ping_after,
            // The limit of silence covers a ping without a reply.
            Some(_) => Duration::MAX,
        }
    }

    /// The oldest request or ping without a reply, and when it was sent.
    fn oldest_unanswered(&self) -> Option<(OpCode, Duration)> {
        let ping = self.pinged_at.map(|at| (OpCode::Ping, at));
        let asked = self.requests.oldest_sent();
        let asked = asked.and_then(|asked| Some((asked.opcode, asked.sent_at?)));
        asked.into_iter().chain(ping).min_by_key(|(_, at)| *at)
    }

    /// When the connection is given up, if the server sends nothing until then.
    fn silent_at(&self) -> Option<Duration> {
        let (_, sent_at) = self.oldest_unanswered()?;
        // A process that was paused has heard nothing for long. The server gets its time to answer.
        Some(sent_at.max(self.heard_at) + self.timing.silence)
    }

    /// When the connection is given up, if the server sends no reply until then.
    fn unanswered_at(&self) -> Option<Duration> {
        let (_, sent_at) = self.oldest_unanswered()?;
        // Before the reply to the request before it, the server was busy with that one.
        Some(sent_at.max(self.answered_at) + self.timing.unanswered)
    }

    fn look_at_replies(&mut self, now: Duration) {
        if self.silent_at().is_some_and(|at| now >= at) {
            return self.give_up(now, Break::Silent(self.timing.silence));
        }
        if self.unanswered_at().is_some_and(|at| now >= at) {
            let oldest = self.oldest_unanswered();
            let cause = Break::Unanswered {
                opcode: oldest.map_or(OpCode::Error, |(opcode, _)| opcode),
                after: self.timing.unanswered,
            };
            return self.give_up(now, cause);
        }
        if now >= self.ping_at() {
            self.ping(now);
        }
    }

    fn ping(&mut self, now: Duration) {
        self.pinged_at = Some(now);
        self.send_own(xid::PING, RequestBody::Ping);
    }

    /// Breaks the connection from this side.
    pub(crate) fn give_up(&mut self, now: Duration, cause: Break) {
        self.own_frames.clear();
        self.yields(Output::Disconnect);
        self.lost(now, cause);
    }

    /// The server has confirmed the session: credentials and watches come before all requests.
    pub(crate) fn restore(&mut self, now: Duration) {
        for (scheme, credentials) in self.config.auth.clone() {
            let request = AuthRequest {
                kind: 0,
                scheme,
                auth: Some(credentials),
            };
            self.send_own(xid::AUTH, RequestBody::Auth(request));
        }
        let mut watches = 0;
        if self.broken_at_watches >= MOST_BREAKS {
            self.unwatch_all();
        }
        for request in self.watches.set_again(self.last_zxid) {
            watches += 1;
            self.send_own(xid::SET_WATCHES, RequestBody::SetWatches(request));
        }
        // Servers that enforce a scheme refuse each request without it, and no handshake. The session
        // is up only once a request is served. The reply comes with those to the credentials.
        if !self.confirmed_once {
            self.ping(now);
        }
        let schemes = self.config.auth.iter().map(|(scheme, _)| scheme.clone());
        self.link = Link::Restoring {
            since: now,
            schemes: schemes.collect(),
            watches,
        };
        self.up_if_restored(now);
    }

    pub(crate) fn up_if_restored(&mut self, now: Duration) {
        let Link::Restoring {
            schemes,
            watches: 0,
            ..
        } = &self.link
        else {
            return;
        };
        let is_restored = schemes.is_empty() && self.pinged_at.is_none();
        let (true, Some(session_id)) = (is_restored, self.session_id()) else {
            return;
        };
        self.hosts.note(None);
        self.link = Link::Up;
        self.served_at = Some(now);
        self.up_at = now;
        self.refusal = Refusal::Unknown;
        self.confirmed_once = true;
        self.refusals = 0;
        self.broken_at_watches = 0;
        self.said_at = now;
        self.yields(Output::State(State::Connected {
            session_id,
            timeout: self.shortest.unwrap_or(self.timeout),
            connection: self.connection,
        }));
    }

    /// Forgets the connection. The requests that were sent over it have an unknown outcome.
    fn lost(&mut self, now: Duration, cause: Break) {
        let was_up = match &self.link {
            Link::Opening { .. } | Link::Greeting { .. } | Link::Restoring { .. } => false,
            Link::Up => true,
            Link::Down { .. } | Link::Ended(_) => return,
        };
        if self.note_refusal(now, &cause) {
            return self.end(End::Refused);
        }
        if !was_up && !self.is_urgent(now) {
            self.handshake_limit.failed(&cause, self.limits);
        }
        let refused = matches!(cause, Break::AuthenticationFailed(_));
        if matches!(self.link, Link::Restoring { watches: 1.., .. }) && !refused {
            self.broken_at_watches += 1;
        }
        let cause = self.explained(now, cause);
        if !was_up {
            self.hosts.note(Some(cause.clone()));
        }
        self.pause(now, was_up);
        self.decoder = FrameDecoder::new(self.config.reply_limit);
        self.own_frames.clear();
        self.pinged_at = None;
        for asked in self.requests.broken() {
            match asked.to {
                // The session may be open. The holds of it would last until the session timeout.
                To::Closing => self.ask_to_close(now),
                to => self.unanswered(to, RequestError::Broken(cause.clone())),
            }
        }
        self.yields(Output::State(self.disconnected()));
    }

    /// Says what the server was asked for when it closed the connection, if that may be why.
    fn explained(&mut self, now: Duration, cause: Break) -> Break {
        let oldest = match &self.link {
            _ if !is_closed(&cause) => return cause,
            Link::Greeting { .. } if self.decoder.remaining().is_empty() => {
                return Break::ClosedUnheard;
            }
            Link::Restoring { watches: 1.., .. } => Some((OpCode::SetWatches, None)),
            Link::Up => {
                let asked = self.requests.oldest_sent();
                asked.map(|asked| (asked.opcode, asked.sent_at))
            }
            _ => None,
        };
        match oldest.filter(|(opcode, _)| may_be_unknown(*opcode)) {
            Some((opcode, sent_at)) => {
                // A server that does not know the request closes the connection at once.
                if sent_at.is_some_and(|sent_at| now <= sent_at + self.timeout / 6) {
                    self.config.unsupported.closed(opcode, now);
                }
                Break::ClosedAt(opcode)
            }
            None => cause,
        }
    }

    fn unwatch_all(&mut self) {
        for watch in self.watches.take_set() {
            self.yields(Output::Unwatched(watch));
        }
    }

    /// Ends the session on this side.
    pub(crate) fn end(&mut self, end: End) {
        if self.is_ended() {
            return;
        }
        let end = match end {
            // The close may have had an effect, but no answer.
            End::Expired if self.closing_until.is_some() => End::Closed,
            end => end,
        };
        let had_connection = !matches!(self.link, Link::Down { .. });
        self.link = Link::Ended(end);
        self.pinged_at = None;
        for asked in self.requests.ended() {
            self.unanswered(asked.to, RequestError::Ended(end));
        }
        self.unwatch_all();
        self.yields(Output::State(State::Ended(end)));
        if had_connection {
            self.yields(Output::Disconnect);
        }
    }
}

/// True if the server has closed the connection. If it has not read all, the connection is reset.
fn is_closed(cause: &Break) -> bool {
    match cause {
        Break::Closed => true,
        Break::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe
        ),
        _ => false,
    }
}
