//! Frames that servers send: replies in the order of the requests, and notifications.

use std::time::Duration;

use zookeeper_recipes_protocol::{
    ConnectResponse, ErrorCode, EventType, KeeperState, OpCode, PASSWORD_LENGTH, Reply, ReplyBody,
    RequestBody, WatcherEvent,
};

use super::session::password_of;
use super::state::Servers;
use super::transaction::Origin;
use crate::chance::fault::Cut;
use crate::record::request_kind::RequestKind;
use crate::wire::message::{Answer, Arriving, Downward, Note};
use crate::wire::network::ConnectionId;
use crate::wire::request;

impl Servers {
    /// Answers a client's first frame: with the session that is served, or that it is over.
    pub(super) fn answer_greeting(&mut self, id: ConnectionId, session: Option<i64>) {
        let end = self.ends.get(&id);
        let found =
            end.and_then(|end| Some((end.greeting.as_ref()?, end.reads_only, end.answered_late)));
        let Some((greeting, reads_only, late)) = found else {
            return;
        };
        let negotiate = |_| self.options.negotiate(greeting.timeout);
        let timeout = session.map_or(Duration::ZERO, negotiate);
        let response = ConnectResponse {
            protocol_version: 0,
            timeout: timeout.as_millis() as i32,
            session_id: session.unwrap_or(0),
            password: session.map_or([0; PASSWORD_LENGTH], password_of).to_vec(),
            read_only: greeting.read_only.map(|_| reads_only),
        };
        let note = session.map_or(Note::Expired, |session| Note::Connected {
            session,
            timeout,
        });
        let mut bytes = Vec::new();
        response.encode_frame(&mut bytes);
        self.send_down(id, Downward::Bytes(bytes, note), late);
        if session.is_none() {
            self.close_at_server(id, true);
        }
    }

    pub(super) fn reply(&mut self, id: ConnectionId, arriving: &Arriving, answer: Answer) {
        let Some(connection) = self.network.connections.get(&id) else {
            return;
        };
        let (server, fate) = (connection.server, arriving.fate);
        if let Some(cut) = fate.cut_reply {
            let frame = self.frame(server, arriving, answer);
            return self.cut_reply(id, frame, cut);
        }
        let answer = match answer {
            Ok(_) if fate.hide_outcome => Err(ErrorCode::OperationTimeout),
            answer => answer,
        };
        if answer == Err(ErrorCode::SessionMoved) {
            return self.close_at_server(id, true);
        }
        let ends_connection = match answer {
            Err(ErrorCode::SessionExpired | ErrorCode::AuthFailed) => true,
            Err(ErrorCode::Unimplemented) => request::is_unknown(arriving.request.body.opcode()),
            _ => false,
        };
        let (bytes, note) = self.frame(server, arriving, answer);
        self.send_down(id, Downward::Bytes(bytes, note), fate.delay_reply);
        if ends_connection {
            self.close_at_server(id, true);
        }
        if let Some(duration) = fate.cut_off {
            self.cut_off_or_isolate(server, duration);
        }
    }

    /// The frame of a reply.
    fn frame(&self, server: usize, arriving: &Arriving, answer: Answer) -> (Vec<u8>, Note) {
        let (xid, body) = (arriving.request.xid, &arriving.request.body);
        let opcode = body.opcode();
        let is_shown = self.kernel.recorder.is_on() && arriving.kind() != RequestKind::Ping;
        let note = Note::Reply {
            took: self.kernel.now.saturating_sub(arriving.at),
            text: is_shown.then(|| format!("{}: {}", request::text(body), text(&answer))),
        };
        let zxid = match opcode {
            OpCode::Auth | OpCode::Sasl => 0,
            _ if answer == Err(ErrorCode::Unimplemented) && request::is_unknown(opcode) => -1,
            _ => self.members[server].tree.zxid,
        };
        let reply = match answer {
            Ok(body) => Reply::new(xid, zxid, body),
            Err(error) => Reply::failed(xid, zxid, error),
        };
        let mut bytes = Vec::new();
        reply.encode_frame(&mut bytes);
        (bytes, note)
    }

    /// The connection breaks within a reply.
    fn cut_reply(&mut self, id: ConnectionId, (mut bytes, mut note): (Vec<u8>, Note), cut: Cut) {
        let length = bytes.len();
        bytes.truncate(cut.draw(length, &mut self.kernel.rng));
        if bytes.len() < length {
            note = Note::Cut(bytes.len(), length);
        }
        self.send_down(id, Downward::Bytes(bytes, note), Duration::ZERO);
        let Some(connection) = self.network.connections.get_mut(&id) else {
            return;
        };
        connection.down_broken = true;
        // What was sent before still arrives.
        let at = connection
            .last_down
            .max(self.kernel.now + Duration::from_millis(1));
        let cause = "the connection was reset";
        self.network.break_at(&mut self.kernel, at, id, cause);
    }

    /// Answers the write or the sync at the head of a connection's pipeline.
    pub(super) fn complete(&mut self, origin: Origin, answer: impl FnOnce(&RequestBody) -> Answer) {
        let (connection, number) = origin;
        let Some(end) = self.ends.get_mut(&connection) else {
            return;
        };
        if end.pipeline.front().is_none_or(|it| it.number != number) {
            return;
        }
        let Some(arriving) = end.pipeline.pop_front() else {
            return;
        };
        let answer = answer(&arriving.request.body);
        self.reply(connection, &arriving, answer);
        self.drain(connection);
    }

    /// Answers the reads behind a write that has now been answered.
    fn drain(&mut self, id: ConnectionId) {
        while let Some(end) = self.ends.get_mut(&id) {
            let next = end.pipeline.front();
            if !next.is_some_and(Arriving::is_settled_here) {
                return;
            }
            if let Some(arriving) = end.pipeline.pop_front() {
                self.read(id, &arriving);
            }
        }
    }

    pub(super) fn notify(&mut self, id: ConnectionId, path: String, kind: EventType) {
        let Some(connection) = self.network.connections.get(&id) else {
            return;
        };
        if !connection.server_open {
            return;
        }
        let name = self.network.hosts[connection.host].name.clone();
        let counters = &mut self.kernel.counters;
        counters.notifications += 1;
        *counters.notifications_of.entry(name).or_default() += 1;
        let (rate, late_by) = (self.kernel.rates.event_late, self.kernel.rates.late_by);
        let delay = if self.kernel.chance(rate) {
            self.kernel.draw_up_to(late_by)
        } else {
            Duration::ZERO
        };
        let mut bytes = Vec::new();
        let event = WatcherEvent {
            kind,
            state: KeeperState::SyncConnected,
            path: path.clone(),
        };
        Reply::notification(event).encode_frame(&mut bytes);
        self.send_down(id, Downward::Bytes(bytes, Note::Event(kind, path)), delay);
    }
}

/// An answer in words.
fn text(answer: &Answer) -> String {
    match answer {
        Ok(ReplyBody::Empty | ReplyBody::Sync { .. }) => "done".to_owned(),
        Ok(ReplyBody::Create2 { path, stat }) => format!("created {path} at {:#x}", stat.czxid),
        Ok(ReplyBody::Stat(stat)) => format!("at {:#x}", stat.mzxid),
        Ok(ReplyBody::Data { data, stat }) => {
            let length = data.as_ref().map_or(0, Vec::len);
            format!("{length} bytes at {:#x}", stat.mzxid)
        }
        Ok(ReplyBody::Children2 { children, .. }) => {
            format!("{} children {children:?}", children.len())
        }
        Ok(ReplyBody::Multi(results)) => format!("{} results", results.len()),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{error:?}"),
    }
}
