//! The time limits of a connection, its break, and the end of the session.

use std::io::ErrorKind;
use std::time::Duration;

use zookeeper_recipes_protocol::{FrameDecoder, OpCode, RequestBody};

use crate::error::{DisconnectReason, RequestError, SessionEnd};
use crate::session::machine::{Machine, Phase, Recipient};
use crate::session::obstacle::Obstacle;
use crate::session::output::{ConnectionState, Output};
use crate::session::unsupported::{may_be_unknown, replaced_after};

/// What the machine does once a time has come.
enum Due {
    /// Ends a close that no server has answered.
    End,
    /// Tries the next address.
    Try,
    /// Looks the names up again, because no address of the hosts is known.
    LookUp,
    Ping,
    GiveUp(DisconnectReason),
}

fn first(one: (Duration, Due), other: (Duration, Due)) -> (Duration, Due) {
    match other.0 < one.0 {
        true => other,
        false => one,
    }
}

/// The connection is given up this long after `since`.
fn give_up(
    since: Duration,
    after: Duration,
    cause: impl FnOnce(Duration) -> DisconnectReason,
) -> (Duration, Due) {
    (since + after, Due::GiveUp(cause(after)))
}

impl<R, W> Machine<R, W> {
    /// As [`Connection::leave_server`](crate::Connection::leave_server).
    pub fn leave_server(&mut self, now: Duration) {
        if matches!(self.phase, Phase::Up) && self.hosts.has_other() {
            self.give_up(now, DisconnectReason::Left);
        }
    }

    /// Time has passed. Call it at the [`deadline`](Self::deadline), or at any other time.
    pub fn elapsed(&mut self, now: Duration) {
        let Some((_, due)) = self.due().filter(|(at, _)| now >= *at) else {
            return;
        };
        match due {
            Due::End => self.end(SessionEnd::Closed),
            Due::Try => self.try_next(now),
            Due::LookUp => self.look_up(now),
            Due::Ping => self.ping(now),
            Due::GiveUp(cause) => self.give_up(now, cause),
        }
    }

    /// When [`elapsed`](Self::elapsed) has something to do, if nothing else happens before.
    pub fn deadline(&self) -> Option<Duration> {
        self.due().map(|(at, _)| at)
    }

    /// What is to be done first if nothing else happens before, and when.
    fn due(&self) -> Option<(Duration, Due)> {
        let (accept, handshake) = (self.handshake_limit.accept, self.handshake_limit.handshake);
        let of_phase = match self.phase {
            // The session stays at a host that is not listed any more.
            Phase::Up if !self.hosts.has_address() => {
                first((self.look_up_at, Due::LookUp), self.due_while_up())
            }
            Phase::Up => self.due_while_up(),
            Phase::Down { until, .. } => (until, Due::Try),
            Phase::Opening { since } => give_up(since, accept, DisconnectReason::NotConnected),
            Phase::Greeting { since } => give_up(since, handshake, DisconnectReason::NoSession),
            Phase::Authenticating { since } => {
                let opcode = OpCode::Sasl;
                give_up(since, handshake, |after| DisconnectReason::Unanswered {
                    opcode,
                    after,
                })
            }
            Phase::Restoring { since, .. } => {
                let silence = self.timing.silence.max(handshake);
                let most = self.timing.session.max(handshake);
                first(
                    give_up(self.heard_at, silence, DisconnectReason::Silent),
                    give_up(since, most, DisconnectReason::NoSession),
                )
            }
            Phase::Ended(_) => return None,
        };
        Some(match self.closing_until {
            Some(until) => first((until, Due::End), of_phase),
            None => of_phase,
        })
    }

    fn due_while_up(&self) -> (Duration, Due) {
        let ping = (self.said_at + self.timing.ping_after, Due::Ping);
        let asked = self.requests.oldest_sent();
        let asked = asked.and_then(|asked| Some((asked.opcode, asked.sent_at?)));
        let (opcode, sent_at) = match (asked, self.pinged_at) {
            (None, None) => return ping,
            (None, Some(at)) => (OpCode::Ping, at),
            (Some((_, sent_at)), Some(at)) if at < sent_at => (OpCode::Ping, at),
            (Some(asked), _) => asked,
        };
        // A process that was paused has heard nothing for long. The server gets its time to answer.
        // Before the reply to the request before it, it was busy with that one.
        let heard_at = sent_at.max(self.heard_at);
        let silent = give_up(heard_at, self.timing.silence, DisconnectReason::Silent);
        let answered_at = sent_at.max(self.answered_at);
        let unanswered = |after| DisconnectReason::Unanswered { opcode, after };
        let limit = first(
            silent,
            give_up(answered_at, self.timing.session, unanswered),
        );
        match self.pinged_at {
            None => first(limit, ping),
            // The limit of silence covers a ping without a reply.
            Some(_) => limit,
        }
    }

    /// True if a hold of the session can still be saved: T has not passed without a server.
    pub(crate) fn is_urgent(&self, now: Duration) -> bool {
        self.served_at
            .is_some_and(|at| now < at + self.timing.session)
    }

    /// As [`Connection::obstacles`](crate::Connection::obstacles).
    pub fn obstacles(&self, now: Duration) -> Vec<Obstacle> {
        let lasts = |since| now.saturating_sub(since);
        let present = match self.phase {
            Phase::Opening { since } => Some(DisconnectReason::NotConnected(lasts(since))),
            Phase::Greeting { since } => Some(DisconnectReason::NoSession(lasts(since))),
            _ => None,
        };
        self.hosts.obstacles(now, present)
    }

    pub(crate) fn ping(&mut self, now: Duration) {
        self.pinged_at = Some(now);
        self.send_own(RequestBody::Ping);
    }

    /// Breaks the connection from this side.
    pub(crate) fn give_up(&mut self, now: Duration, cause: DisconnectReason) {
        self.own_frames.clear();
        self.yields(Output::Disconnect);
        self.broken(now, cause);
    }

    /// The connection could not be opened, or has broken.
    ///
    /// The requests that were sent over it have an unknown outcome.
    pub fn broken(&mut self, now: Duration, cause: impl Into<DisconnectReason>) {
        let cause = cause.into();
        let was_up = match &self.phase {
            Phase::Up => true,
            Phase::Down { .. } | Phase::Ended(_) => return,
            _ => false,
        };
        if self.note_refusal(now, &cause) {
            return self.end(SessionEnd::Refused);
        }
        if !was_up && !self.is_urgent(now) {
            self.handshake_limit.failed(&cause);
        }
        let refused = matches!(cause, DisconnectReason::AuthenticationFailed(_));
        if matches!(self.phase, Phase::Restoring { watches: 1.., .. }) && !refused {
            self.broken_at_watches += 1;
        }
        let cause = self.explained(now, cause);
        if matches!(cause, DisconnectReason::ClosedAt(OpCode::AddWatch)) {
            self.trees.breaks += 1;
        }
        let has_left = matches!(cause, DisconnectReason::Left);
        match was_up {
            true => self.hosts.note_end(has_left),
            false => self.hosts.note(Some(cause.clone())),
        }
        self.pause(now, was_up, has_left);
        self.decoder = FrameDecoder::new(self.config.reply_limit);
        self.own_frames.clear();
        self.pinged_at = None;
        for asked in self.requests.broken() {
            match asked.to {
                // The session may be open. The holds of it would last until the session timeout.
                Recipient::Closing => self.ask_to_close(),
                to => self.unanswered(to, RequestError::Broken(cause.clone())),
            }
        }
        self.yields(Output::State(self.disconnected()));
    }

    /// Says what the server was asked for when it closed the connection, if that may be why.
    fn explained(&mut self, now: Duration, cause: DisconnectReason) -> DisconnectReason {
        let suspect = match &self.phase {
            _ if !is_closed(&cause) => None,
            Phase::Greeting { .. } if self.decoder.remaining().is_empty() => {
                return DisconnectReason::ClosedUnheard;
            }
            Phase::Authenticating { .. } => return DisconnectReason::ClosedAt(OpCode::Sasl),
            Phase::Restoring { watches: 1.., .. } => {
                return DisconnectReason::ClosedAt(OpCode::SetWatches);
            }
            Phase::Up => {
                // A server reads on before it has answered the requests before.
                let mut sent = self.requests.sent();
                let replaced = sent.find(|asked| replaced_after(asked.opcode).is_some());
                replaced.or(self.requests.oldest_sent())
            }
            _ => None,
        };
        let Some(suspect) = suspect.filter(|asked| may_be_unknown(asked.opcode)) else {
            return cause;
        };
        // A server that does not know the request closes the connection at once.
        let is_at_once = |sent_at| now <= sent_at + self.timing.session / 6;
        if suspect.sent_at.is_some_and(is_at_once) {
            self.config.unsupported.closed(suspect.opcode, now);
        }
        DisconnectReason::ClosedAt(suspect.opcode)
    }

    /// Ends the session on this side.
    pub(crate) fn end(&mut self, end: SessionEnd) {
        if self.is_ended() {
            return;
        }
        let end = match end {
            // The close may have had an effect, but no answer.
            SessionEnd::Expired if self.closing_until.is_some() => SessionEnd::Closed,
            end => end,
        };
        let had_connection = !matches!(self.phase, Phase::Down { .. });
        self.phase = Phase::Ended(end);
        self.pinged_at = None;
        for asked in self.requests.ended() {
            self.unanswered(asked.to, RequestError::Ended(end));
        }
        let unwatched = self.watches.take_all_set();
        self.unwatched(unwatched);
        self.end_trees(&RequestError::Ended(end));
        self.yields(Output::State(ConnectionState::Ended(end)));
        if had_connection {
            self.yields(Output::Disconnect);
        }
    }
}

/// True if the server has closed the connection. If it has not read all, the connection is reset.
fn is_closed(cause: &DisconnectReason) -> bool {
    match cause {
        DisconnectReason::Closed => true,
        DisconnectReason::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe
        ),
        _ => false,
    }
}
