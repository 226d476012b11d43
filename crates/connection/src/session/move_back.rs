//! The move back to the host whose connection broke.
//!
//! A session that has another host meanwhile looks now and then if that host accepts a connection.
//! If it does, the session sends no more requests, waits for the replies to all that it has sent,
//! and moves. The watches are set again at the new connection, as after each reconnect. The first
//! request goes out when the host has answered a ping. So no move puts a request in doubt.

use std::time::Duration;

use crate::error::Break;
use crate::session::machine::{Link, Machine, Output};
use crate::session::way_back::Step;

impl<R, W> Machine<R, W> {
    /// The session is up at this host.
    pub(crate) fn has_arrived(&mut self, now: Duration, host: usize) {
        self.way_back.arrived(now, host);
        self.stay_away(now);
    }

    /// Lets requests out again that wait for a move.
    pub(crate) fn stay(&mut self, now: Duration) {
        if self.way_back.holds_requests() {
            self.stay_away(now);
        }
    }

    /// Draws the time of the next look: after one to two pauses, so that a fleet does not return
    /// at the same moment.
    fn stay_away(&mut self, now: Duration) {
        self.way_back.step = match (self.way_back.pause(), self.way_back.lost) {
            (Some(pause), Some(_)) => Step::Away {
                until: now + pause + self.hosts.draw(pause),
            },
            _ => Step::Nothing,
        };
    }

    /// Looks for the lost host, if a look is due.
    pub(crate) fn look_back(&mut self, now: Duration) {
        let is_due = self.way_back.look_at().is_some_and(|at| now >= at);
        if let (true, Some(host)) = (is_due, self.way_back.lost) {
            self.way_back.step = Step::Looking;
            self.yields(Output::Look {
                host,
                within: self.timing.handshake,
            });
        }
    }

    /// The answer to [`Output::Look`]: true if the host has accepted a connection.
    pub fn looked(&mut self, now: Duration, is_there: bool) {
        if self.way_back.step != Step::Looking {
            return;
        }
        if !is_there || self.closing_until.is_some() {
            return self.stay_away(now);
        }
        self.way_back.step = Step::Draining;
        self.move_if_drained(now);
    }

    /// Moves to the lost host once no reply is outstanding.
    pub(crate) fn move_if_drained(&mut self, now: Duration) {
        let is_drained = self.requests.oldest_sent().is_none()
            && self.pinged_at.is_none()
            && self.own_frames.is_empty();
        if self.way_back.step != Step::Draining || !is_drained {
            return;
        }
        let from = self.way_back.present;
        self.give_up(now, Break::Left);
        self.way_back.step = Step::Moving { from };
        self.link = Link::Down { until: now };
        self.elapsed(now);
    }
}
