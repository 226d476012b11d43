//! The replies and notifications of a server, and what goes wrong at them.

use tokio::net::tcp::ReadHalf;
use tokio::sync::mpsc;
use zookeeper_recipes_protocol::{FRAME_HEADER, ReplyHeader, xid};

use super::connection::{self, Connection, Fate, Item};
use super::fault::{Direction, Effect, Strike};
use super::frame::{self, Request};
use super::operation::Operation;
use super::shared::Protocol;
use crate::frames::FrameReader;

impl Connection {
    pub(super) async fn read_replies(
        &self,
        mut server: ReadHalf<'_>,
        to_client: mpsc::Sender<Item>,
    ) {
        let direction = Direction::ToClient;
        if !matches!(self.shared.protocol, Protocol::ZooKeeper) {
            return self.read_raw(&mut server, &to_client, direction).await;
        }
        let mut first = true;
        let mut frames = FrameReader::new();
        while let Some(body) = self
            .next_frame(&mut frames, &mut server, &to_client, direction)
            .await
        {
            let header = if std::mem::take(&mut first) {
                // The handshake's answer has no header.
                Some((0, 0))
            } else {
                let header = ReplyHeader::peek(&body).ok();
                header.map(|header| (header.xid, header.zxid))
            };
            let strike = self.take_in(header, &body);
            let mut frame = self.bytes(frame::framed(&body));
            if let Some(strike) = strike {
                match strike_reply(strike, &mut frame, &to_client).await {
                    Fate::Passes => {}
                    Fate::Swallowed => continue,
                    Fate::Last => return,
                }
            }
            if to_client.send(frame).await.is_err() {
                return;
            }
            for item in self.refusals_due() {
                let _ = to_client.send(item).await;
            }
        }
    }

    /// Counts what the server has sent, and finds what is to go wrong at it.
    fn take_in(&self, header: Option<(i32, i64)>, body: &[u8]) -> Option<Strike> {
        let bytes = FRAME_HEADER + body.len();
        let mut state = self.shared.state();
        state.counters.bytes_to_client += bytes as u64;
        let (xid, zxid) = header?;
        let mut conversation = self.conversation();
        conversation.last_zxid = conversation.last_zxid.max(zxid);
        conversation.client_was_last &= xid == xid::PING;
        if xid == xid::NOTIFICATION {
            state.counters.reply(Operation::Notification, bytes);
            return state.strike(&Request {
                paths: frame::notified_path(body).into_iter().collect(),
                ..Request::of(Operation::Notification)
            });
        }
        let place = conversation
            .pending
            .iter()
            .position(|pending| pending.xid == xid && pending.refusal.is_none())?;
        let pending = conversation.pending.remove(place)?;
        state.counters.reply(pending.operation, bytes);
        self.unanswered.send_modify(|count| *count -= 1);
        pending.strike
    }
}

/// Has a fault strike a reply.
async fn strike_reply(strike: Strike, frame: &mut Item, to_client: &mpsc::Sender<Item>) -> Fate {
    match strike.effect.clone() {
        Effect::AtReply(breakage) => connection::strike(strike, breakage, frame, to_client).await,
        Effect::ReplyReplaced(replace) => {
            frame.replace(|bytes| replace(bytes));
            strike.dealt();
            Fate::Passes
        }
        Effect::AtRequest(_) | Effect::RequestReplaced(_) | Effect::Refused(_) => Fate::Passes,
    }
}
