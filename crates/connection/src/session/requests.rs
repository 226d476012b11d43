//! The requests of a session that have no reply yet.
//!
//! A server answers the requests of a connection in the order in which they were sent. So the
//! oldest request is the one that the next reply belongs to.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use zookeeper_recipes_protocol::{Acl, OpCode, Operation, Request, RequestBody};

use crate::error::RequestError;

/// A request without a reply.
pub(crate) struct InFlight<R> {
    pub(crate) xid: i32,
    pub(crate) opcode: OpCode,
    /// The bytes of its frame, until it is sent.
    length: usize,
    /// Where the reply goes.
    pub(crate) to: R,
    /// When the bytes were handed to the connection.
    pub(crate) sent_at: Option<Duration>,
}

/// The requests that wait for a connection, and those that wait for a reply.
pub(crate) struct Requests<R> {
    /// All requests in the order of the calls. Those behind the first `sent` are not sent.
    in_flight: VecDeque<InFlight<R>>,
    sent: usize,
    /// The frames of the requests that are not sent.
    frames: Vec<u8>,
    /// Once so many requests are unsent, those that nobody wants are dropped.
    look_at: usize,
    last_xid: i32,
    /// The longest request that the servers accept.
    pub(crate) limit: usize,
}

impl<R> Requests<R> {
    pub(crate) fn new() -> Requests<R> {
        Requests {
            in_flight: VecDeque::new(),
            sent: 0,
            frames: Vec::new(),
            look_at: KEPT,
            last_xid: 0,
            limit: usize::MAX,
        }
    }

    /// Adds a request behind all others, and returns `to` and the error if the request is too long.
    pub(crate) fn ask(&mut self, body: RequestBody, to: R) -> Result<(), (R, RequestError)> {
        // Numbers are positive. They begin anew after the largest.
        self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
        let xid = self.last_xid;
        let request = Request { xid, body };
        let (before, limit) = (self.frames.len(), self.limit);
        let added = added(&request.body);
        let appended = request.encode_frame_within(limit.saturating_sub(added), &mut self.frames);
        if let Err(length) = appended {
            let length = length.saturating_add(added);
            return Err((to, RequestError::RequestTooLong { length, limit }));
        }
        self.in_flight.push_back(InFlight {
            xid,
            opcode: request.body.opcode(),
            length: self.frames.len() - before,
            to,
            sent_at: None,
        });
        Ok(())
    }

    /// Adds a request before all that are not sent.
    pub(crate) fn ask_first(&mut self, body: RequestBody, to: R) -> Result<(), (R, RequestError)> {
        let frames = mem::take(&mut self.frames);
        let unsent = self.in_flight.split_off(self.sent);
        let asked = self.ask(body, to);
        self.frames.extend(frames);
        self.in_flight.extend(unsent);
        asked
    }

    /// True if requests wait to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.sent < self.in_flight.len()
    }

    /// The oldest request that was sent and has no reply.
    pub(crate) fn oldest_sent(&self) -> Option<&InFlight<R>> {
        self.sent().next()
    }

    /// All requests that were sent and have no reply, the oldest first.
    pub(crate) fn sent(&self) -> impl Iterator<Item = &InFlight<R>> {
        self.in_flight.range(..self.sent)
    }

    /// Appends the frames of all requests that are not sent. They count as sent from now on.
    pub(crate) fn send(&mut self, now: Duration, to: &mut Vec<u8>) {
        for asked in self.in_flight.iter_mut().skip(self.sent) {
            asked.sent_at = Some(now);
        }
        self.sent = self.in_flight.len();
        match to.is_empty() {
            true => mem::swap(to, &mut self.frames),
            false => to.append(&mut self.frames),
        }
    }

    /// True if the number of unsent requests has doubled since the last
    /// [`take_unwanted`](Self::take_unwanted).
    pub(crate) fn have_doubled(&self) -> bool {
        self.in_flight.len() - self.sent >= self.look_at
    }

    /// Takes the requests that are not sent and that nobody wants.
    pub(crate) fn take_unwanted(
        &mut self,
        is_wanted: impl Fn(&InFlight<R>) -> bool,
    ) -> Vec<InFlight<R>> {
        let mut unwanted = Vec::new();
        if !self.in_flight.range(self.sent..).all(&is_wanted) {
            let unsent = self.in_flight.split_off(self.sent);
            let frames = mem::take(&mut self.frames);
            let mut rest = &frames[..];
            for asked in unsent {
                let (frame, behind) = rest.split_at(asked.length);
                rest = behind;
                match is_wanted(&asked) {
                    true => {
                        self.frames.extend_from_slice(frame);
                        self.in_flight.push_back(asked);
                    }
                    false => unwanted.push(asked),
                }
            }
            self.in_flight.shrink_to(KEPT);
        }
        self.look_at = KEPT.max(2 * (self.in_flight.len() - self.sent));
        unwanted
    }

    /// Takes the oldest request that was sent: its reply has come.
    pub(crate) fn answered(&mut self) -> Option<InFlight<R>> {
        self.sent = self.sent.checked_sub(1)?;
        take_first(&mut self.in_flight)
    }

    /// Takes all requests that were sent. Their connection has broken.
    pub(crate) fn broken(&mut self) -> impl Iterator<Item = InFlight<R>> + use<R> {
        let unsent = self.in_flight.split_off(mem::take(&mut self.sent));
        mem::replace(&mut self.in_flight, unsent).into_iter()
    }

    /// Takes all requests. The session is over.
    pub(crate) fn ended(&mut self) -> impl Iterator<Item = InFlight<R>> + use<R> {
        self.sent = 0;
        self.frames = Vec::new();
        mem::take(&mut self.in_flight).into_iter()
    }
}

/// The bytes that servers may add to a request, and to each operation in it, when they pass it on.
///
/// An example is the number of a sequential znode.
const ADDED: usize = 32;

/// The bytes of all identities of a session, by which a server replaces the scheme `auth`.
const IDENTITIES: usize = 256;

/// Checks that servers with this limit accept the request, without sending it.
///
/// A server closes the connection at a request that is too long.
///
/// # Errors
///
/// [`RequestError::RequestTooLong`].
pub fn check_length(body: &RequestBody, limit: usize) -> Result<(), RequestError> {
    let length = body.encoded_length().saturating_add(added(body));
    match length <= limit {
        true => Ok(()),
        false => Err(RequestError::RequestTooLong { length, limit }),
    }
}

fn added(body: &RequestBody) -> usize {
    match body {
        RequestBody::Multi(operations) | RequestBody::MultiRead(operations) => {
            let each = operations.iter().map(|operation| match operation {
                Operation::Create2(create) | Operation::CreateContainer(create) => {
                    ADDED + identities(&create.acl)
                }
                _ => ADDED,
            });
            ADDED + each.sum::<usize>()
        }
        RequestBody::Create2(create) | RequestBody::CreateContainer(create) => {
            ADDED + identities(&create.acl)
        }
        _ => ADDED,
    }
}

fn identities(acl: &[Acl]) -> usize {
    let entries = acl.iter().filter(|entry| &*entry.id.scheme == "auth");
    entries.count() * IDENTITIES
}

/// A longer queue is given back once it is empty.
pub(crate) const KEPT: usize = 256;

/// Takes the first of a queue. A queue that was long once keeps no memory for that.
pub(crate) fn take_first<T>(queue: &mut VecDeque<T>) -> Option<T> {
    let first = queue.pop_front();
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
    first
}

#[cfg(test)]
#[path = "../../tests/unit/requests.rs"]
mod tests;
