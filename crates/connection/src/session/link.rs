//! The connections of a session: one after the other, each opened, greeted and watched over time.

use std::io::ErrorKind;
use std::time::Duration;

use zookeeper_recipes_protocol::{
    AuthRequest, ConnectRequest, FrameDecoder, OpCode, PASSWORD_LENGTH, RequestBody, xid,
};

use crate::error::{Break, End, RequestError};
use crate::session::host::Obstacle;
use crate::session::machine::{Link, MOST_BREAKS, Machine, Output, Refusal, State, To};
use crate::session::timing::Timing;
use crate::session::unsupported::may_be_unknown;

/// What the machine does once a time has come.
enum Due {
    /// Ends a close that no server has answered.
    End,
    /// Tries the next address.
    Try,
    Ping,
    GiveUp(Break),
}

fn first(dues: impl IntoIterator<Item = (Duration, Due)>) -> Option<(Duration, Due)> {
    dues.into_iter().min_by_key(|(at, _)| *at)
}

impl<R, W> Machine<R, W> {
    /// The connection that [`Output::Connect`] asked for is open.
    pub fn connected(&mut self, now: Duration) {
        let Link::Opening { since } = self.link else {
            return;
        };
        self.link = Link::Greeting { since };
        self.connection += 1;
        self.heard_at = now;
        let (session_id, password, seen) = match self.asked_session() {
            Some(session) => (session.session_id, session.password.clone(), self.last_zxid),
            None => (0, vec![0; PASSWORD_LENGTH], 0),
        };
        let milliseconds = self.config.session_timeout.as_millis();
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: seen,
            timeout: i32::try_from(milliseconds).unwrap_or(i32::MAX),
            session_id,
            password,
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

    /// Leaves the present server, if it has confirmed the session and another address is known.
    pub fn leave_server(&mut self, now: Duration) {
        if matches!(self.link, Link::Up) && self.hosts.has_other() {
            self.give_up(now, Break::Left);
        }
    }

    /// Time has passed. Call it at the [`deadline`](Self::deadline), or at any other time.
    pub fn elapsed(&mut self, now: Duration) {
        let due = self.due().filter(|(at, _)| now >= *at);
        match due.map(|(_, due)| due) {
            Some(Due::End) => self.end(End::Closed),
            Some(Due::Try) => self.try_next(now),
            Some(Due::Ping) => self.ping(now),
            Some(Due::GiveUp(cause)) => self.give_up(now, cause),
            None => {}
        }
    }

    /// When [`elapsed`](Self::elapsed) has something to do, if nothing else happens before.
    pub fn deadline(&self) -> Option<Duration> {
        self.due().map(|(at, _)| at)
    }

    /// What is to be done first if nothing else happens before, and when.
    fn due(&self) -> Option<(Duration, Due)> {
        let (accept, handshake) = (self.handshake_limit.accept, self.handshake_limit.handshake);
        let of_link = match self.link {
            Link::Down { until, .. } => (until, Due::Try),
            Link::Opening { since } => (since + accept, Due::GiveUp(Break::NotConnected(accept))),
            Link::Greeting { since } => {
                (since + handshake, Due::GiveUp(Break::NoSession(handshake)))
            }
            Link::Restoring { since, .. } => {
                let silence = self.timing.silence.max(handshake);
                let most = self.timing.session.max(handshake);
                let silent = (self.heard_at + silence, Due::GiveUp(Break::Silent(silence)));
                first([silent, (since + most, Due::GiveUp(Break::NoSession(most)))])?
            }
            Link::Up => self.due_while_up()?,
            Link::Ended(_) => return None,
        };
        let closing = self.closing_until.map(|until| (until, Due::End));
        first(closing.into_iter().chain([of_link]))
    }

    fn due_while_up(&self) -> Option<(Duration, Due)> {
        let ping = self.pinged_at.map(|at| (OpCode::Ping, at));
        let asked = self.requests.oldest_sent();
        let asked = asked.and_then(|asked| Some((asked.opcode, asked.sent_at?)));
        let oldest = asked.into_iter().chain(ping).min_by_key(|(_, at)| *at);
        let limits = oldest.map(|(opcode, sent_at)| {
            let Timing {
                silence, session, ..
            } = self.timing;
            let after = session;
            let unanswered = Break::Unanswered { opcode, after };
            // A process that was paused has heard nothing for long. The server gets its time to
            // answer. Before the reply to the request before it, it was busy with that one.
            let silent_at = sent_at.max(self.heard_at) + silence;
            let unanswered_at = sent_at.max(self.answered_at) + session;
            [
                (silent_at, Due::GiveUp(Break::Silent(silence))),
                (unanswered_at, Due::GiveUp(unanswered)),
            ]
        });
        // The limit of silence covers a ping without a reply.
        let is_pinged = self.pinged_at.is_some();
        let ping = (!is_pinged).then(|| (self.said_at + self.timing.ping_after, Due::Ping));
        first(limits.into_iter().flatten().chain(ping))
    }

    /// True if a hold of the session can still be saved: T has not passed without a server.
    pub(crate) fn is_urgent(&self, now: Duration) -> bool {
        let served_at = self.served_at;
        served_at.is_some_and(|at| now < at + self.timing.session)
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
        if self.served_at.is_none() {
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
        self.refusals = 0;
        self.broken_at_watches = 0;
        self.said_at = now;
        self.yields(Output::State(State::Connected {
            session_id,
            timeout: self.shortest,
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
            self.handshake_limit.failed(&cause);
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
                To::Closing => self.ask_to_close(),
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
