//! The requests of a session that have no reply yet.
//!
//! A server answers the requests of a connection in the order in which they were sent. So the
//! oldest request is the one that the next reply belongs to.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use zookeeper_recipes_protocol::{FRAME_HEADER, OpCode, Request, RequestBody};

/// The number of a request within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub(crate) u64);

/// A request without a reply.
#[derive(Debug)]
pub(crate) struct Asked<R> {
    id: RequestId,
    pub(crate) xid: i32,
    pub(crate) opcode: OpCode,
    /// Where the reply goes.
    pub(crate) to: R,
    /// When the caller asked.
    pub(crate) asked_at: Duration,
    /// When the bytes were handed to the connection.
    pub(crate) sent_at: Option<Duration>,
}

/// The requests that wait for a connection, and those that wait for a reply.
#[derive(Debug)]
pub(crate) struct Requests<R> {
    /// All requests in the order of the calls. Those behind the first `sent` are not sent.
    asked: VecDeque<Asked<R>>,
    sent: usize,
    /// The frames of the requests that are not sent.
    frames: Vec<u8>,
    last_id: u64,
    last_xid: i32,
}

impl<R> Requests<R> {
    pub(crate) fn new() -> Requests<R> {
        Requests {
            asked: VecDeque::new(),
            sent: 0,
            frames: Vec::new(),
            last_id: 0,
            last_xid: 0,
        }
    }

    /// Adds a request behind all others.
    pub(crate) fn ask(&mut self, now: Duration, body: RequestBody, to: R) -> RequestId {
        self.last_id += 1;
        let xid = self.next_xid();
        let asked = Asked {
            id: RequestId(self.last_id),
            xid,
            opcode: body.opcode(),
            to,
            asked_at: now,
            sent_at: None,
        };
        Request { xid, body }.encode_frame(&mut self.frames);
        self.asked.push_back(asked);
        RequestId(self.last_id)
    }

    /// The id of a request that is refused before it is added.
    pub(crate) fn refused(&mut self) -> RequestId {
        self.last_id += 1;
        RequestId(self.last_id)
    }

    /// The numbers of requests are positive. They begin anew after the largest.
    fn next_xid(&mut self) -> i32 {
        self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
        self.last_xid
    }

    /// True if requests wait to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.sent < self.asked.len()
    }

    /// The oldest request that was sent and has no reply.
    pub(crate) fn oldest_sent(&self) -> Option<&Asked<R>> {
        self.asked.front().filter(|_| self.sent > 0)
    }

    /// Appends the frames of all requests that are not sent. They count as sent from now on.
    pub(crate) fn send(&mut self, now: Duration, to: &mut Vec<u8>) {
        for asked in self.asked.iter_mut().skip(self.sent) {
            asked.sent_at = Some(now);
        }
        self.sent = self.asked.len();
        match to.is_empty() {
            true => mem::swap(to, &mut self.frames),
            false => to.append(&mut self.frames),
        }
    }

    /// Takes the oldest request that was sent: its reply has come.
    pub(crate) fn answered(&mut self) -> Option<Asked<R>> {
        self.sent = self.sent.checked_sub(1)?;
        self.asked.pop_front()
    }

    /// Takes all requests that were sent. Their connection has broken.
    pub(crate) fn broken(&mut self) -> impl Iterator<Item = Asked<R>> + use<R> {
        let unsent = self.asked.split_off(mem::take(&mut self.sent));
        mem::replace(&mut self.asked, unsent).into_iter()
    }

    /// Takes all requests. The session is over.
    pub(crate) fn ended(&mut self) -> impl Iterator<Item = Asked<R>> + use<R> {
        self.sent = 0;
        self.frames = Vec::new();
        mem::take(&mut self.asked).into_iter()
    }

    /// Takes a request back that was never sent. `None` if it was sent.
    pub(crate) fn withdraw(&mut self, id: RequestId) -> Option<Asked<R>> {
        let place = self
            .asked
            .binary_search_by_key(&id, |asked| asked.id)
            .ok()?;
        let before = place.checked_sub(self.sent)?;
        let start = (0..before).try_fold(0, |start, _| self.frame_end(start))?;
        let end = self.frame_end(start)?;
        self.frames.drain(start..end);
        self.asked.remove(place)
    }

    /// Where the frame ends that begins at `start`.
    fn frame_end(&self, start: usize) -> Option<usize> {
        let header = self.frames.get(start..)?.first_chunk::<FRAME_HEADER>()?;
        let length = usize::try_from(i32::from_be_bytes(*header)).ok()?;
        Some(start + FRAME_HEADER + length)
    }
}

#[cfg(test)]
mod tests {
    use zookeeper_recipes_protocol::{DeleteRequest, FrameDecoder};

    use super::*;

    fn delete(path: &str) -> RequestBody {
        let path = path.to_owned();
        RequestBody::Delete(DeleteRequest { path, version: -1 })
    }

    fn sent(requests: &mut Requests<&'static str>) -> Vec<String> {
        let mut bytes = Vec::new();
        requests.send(Duration::ZERO, &mut bytes);
        let mut decoder = FrameDecoder::new(1 << 20);
        decoder.feed(&bytes);
        let mut paths = Vec::new();
        while let Some(frame) = decoder.next_frame().expect("frames") {
            let request = Request::decode(frame).expect("a request");
            paths.push(request.body.path().unwrap_or_default().to_owned());
        }
        paths
    }

    #[test]
    fn request_that_was_not_sent_is_taken_back_and_the_others_are_sent() {
        let mut requests = Requests::new();
        requests.ask(Duration::ZERO, delete("/before"), "before");
        assert_eq!(sent(&mut requests), ["/before"]);
        let ids = ["/a", "/bb", "/ccc"].map(|path| requests.ask(Duration::ZERO, delete(path), "x"));
        assert!(requests.withdraw(ids[1]).is_some());
        assert!(requests.withdraw(ids[1]).is_none());
        assert_eq!(sent(&mut requests), ["/a", "/ccc"]);
        assert!(requests.withdraw(ids[0]).is_none(), "it was sent");
    }

    #[test]
    fn break_takes_the_requests_that_were_sent_and_leaves_the_others() {
        let mut requests = Requests::new();
        requests.ask(Duration::ZERO, delete("/sent"), "sent");
        sent(&mut requests);
        requests.ask(Duration::ZERO, delete("/waits"), "waits");
        let broken: Vec<_> = requests.broken().map(|asked| asked.to).collect();
        assert_eq!(broken, ["sent"]);
        assert!(requests.oldest_sent().is_none());
        assert_eq!(sent(&mut requests), ["/waits"]);
    }

    #[test]
    fn numbers_begin_anew_after_the_largest() {
        let mut requests = Requests::new();
        requests.last_xid = i32::MAX - 1;
        requests.ask(Duration::ZERO, delete("/a"), "a");
        requests.ask(Duration::ZERO, delete("/b"), "b");
        let numbers: Vec<_> = requests.ended().map(|asked| asked.xid).collect();
        assert_eq!(numbers, [i32::MAX, 1]);
    }
}
