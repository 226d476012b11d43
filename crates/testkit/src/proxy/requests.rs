//! The requests of a client, and what goes wrong at them.

use std::io;
use std::net::SocketAddr;

use tokio::io::AsyncReadExt;
use tokio::net::tcp::ReadHalf;
use tokio::sync::mpsc;

use super::connection::{self, Connection, Fate, Item, Pending};
use super::fault::{Breakage, Direction, Effect, Strike};
use super::frame::{self, Request};
use super::link::Ending;
use super::operation::Operation;
use super::shared::Protocol;
use crate::frames::FrameReader;

impl Connection {
    pub(super) async fn read_requests(
        &self,
        mut client: ReadHalf<'_>,
        to_server: mpsc::Sender<Item>,
        to_client: mpsc::WeakSender<Item>,
    ) {
        match &self.shared.protocol {
            Protocol::ZooKeeper => self.read_each(&mut client, &to_server, &to_client).await,
            Protocol::Raw | Protocol::Quorum => {
                self.read_raw(&mut client, &to_server, Direction::ToServer)
                    .await;
            }
            Protocol::Election(address) => {
                let greeting = match address.get() {
                    Some(address) => greeting_from(&mut client, *address).await,
                    None => Ok(Vec::new()),
                };
                if let Ok(greeting) = greeting {
                    let _ = to_server.send(self.bytes(greeting)).await;
                }
                self.read_raw(&mut client, &to_server, Direction::ToServer)
                    .await;
            }
        }
    }

    async fn read_each(
        &self,
        client: &mut ReadHalf<'_>,
        to_server: &mpsc::Sender<Item>,
        to_client: &mpsc::WeakSender<Item>,
    ) {
        let mut first = true;
        let mut frames = FrameReader::new();
        while let Some(body) = self
            .next_frame(&mut frames, client, to_server, Direction::ToServer)
            .await
        {
            let request = if std::mem::take(&mut first) {
                Some(Request::of(Operation::Connect))
            } else {
                Request::parse(&body)
            };
            let bytes = frame::framed(&body);
            let strike = {
                let mut state = self.shared.state();
                state.counters.bytes_to_server += bytes.len() as u64;
                let operation = request.as_ref().map(|request| request.operation);
                if operation != Some(Operation::Ping) {
                    let was_last =
                        std::mem::replace(&mut self.conversation().client_was_last, true);
                    state.counters.round_trips += u64::from(!was_last);
                }
                request
                    .as_ref()
                    .and_then(|request| state.request(request, bytes.len()))
            };
            let mut frame = self.bytes(bytes);
            let mut pending = request.map(|request| Pending {
                xid: request.xid,
                operation: request.operation,
                strike: None,
                refusal: None,
            });
            if let (Some(strike), Some(pending)) = (strike, &mut pending) {
                let struck = self.strike_request(strike, pending, &mut frame, to_server, to_client);
                match struck.await {
                    Fate::Passes => {}
                    Fate::Swallowed => continue,
                    Fate::Last => return,
                }
            }
            if let Some(pending) = pending {
                match self.await_answer(pending, to_client).await {
                    Fate::Passes => {}
                    Fate::Swallowed => continue,
                    Fate::Last => return,
                }
            }
            if to_server.send(frame).await.is_err() {
                return;
            }
        }
    }

    /// Has a fault strike a request.
    async fn strike_request(
        &self,
        strike: Strike,
        pending: &mut Pending,
        frame: &mut Item,
        to_server: &mpsc::Sender<Item>,
        to_client: &mpsc::WeakSender<Item>,
    ) -> Fate {
        match strike.effect.clone() {
            Effect::AtReply(_) | Effect::ReplyReplaced(_) => pending.strike = Some(strike),
            Effect::Refused(code) => pending.refusal = Some((code, strike)),
            Effect::RequestReplaced(replace) => {
                frame.replace(|bytes| replace(bytes));
                strike.dealt();
            }
            Effect::AtRequest(breakage @ (Breakage::Cut | Breakage::Reset)) => {
                // Earlier requests are answered first.
                let mut unanswered = self.unanswered.subscribe();
                // An error is impossible: the sender is our own.
                let _ = unanswered.wait_for(|count| *count == 0).await;
                match to_client.upgrade() {
                    Some(queue) => {
                        connection::strike(strike, breakage, frame, &queue).await;
                    }
                    // The server has ended its direction already.
                    None => {
                        self.link.end(match breakage {
                            Breakage::Reset => Ending::Reset,
                            _ => Ending::Cut,
                        });
                        strike.dealt();
                    }
                }
                return Fate::Last;
            }
            Effect::AtRequest(breakage) => {
                return connection::strike(strike, breakage, frame, to_server).await;
            }
        }
        Fate::Passes
    }

    /// Notes a request that is to be answered: by the server, or in its stead.
    async fn await_answer(&self, pending: Pending, to_client: &mpsc::WeakSender<Item>) -> Fate {
        let refused = pending.refusal.is_some();
        self.conversation().pending.push_back(pending);
        self.unanswered.send_modify(|count| *count += 1);
        if !refused {
            return Fate::Passes;
        }
        let Some(to_client) = to_client.upgrade() else {
            return Fate::Last;
        };
        for item in self.refusals_due() {
            let _ = to_client.send(item).await;
        }
        Fate::Swallowed
    }

    /// The answers in the server's stead whose turn has come.
    pub(super) fn refusals_due(&self) -> Vec<Item> {
        let mut items = Vec::new();
        let due = self.due();
        let mut conversation = self.conversation();
        while let Some((code, strike)) = conversation
            .pending
            .front()
            .and_then(|pending| pending.refusal.clone())
        {
            if let Some(pending) = conversation.pending.pop_front() {
                let bytes = frame::refusal(pending.xid, conversation.last_zxid, code);
                items.push(Item::Bytes { bytes, due });
            }
            strike.dealt();
        }
        drop(conversation);
        self.unanswered.send_modify(|count| *count -= items.len());
        items
    }
}

/// Reads the message that a server begins an election connection with, and puts `address` in place
/// of the one it gives.
async fn greeting_from(server: &mut ReadHalf<'_>, address: SocketAddr) -> io::Result<Vec<u8>> {
    // The version is a negative number; older servers begin with their number instead.
    let version = server.read_i64().await?;
    let mut greeting = Vec::from(version.to_be_bytes());
    if version >= 0 {
        return Ok(greeting);
    }
    let number = server.read_i64().await?;
    let length = server.read_u32().await?;
    server
        .take(u64::from(length))
        .read_to_end(&mut Vec::new())
        .await?;
    let address = address.to_string();
    greeting.extend(number.to_be_bytes());
    greeting.extend((address.len() as u32).to_be_bytes());
    greeting.extend(address.as_bytes());
    Ok(greeting)
}
