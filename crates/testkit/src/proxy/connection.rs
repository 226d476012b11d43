//! One connection through a proxy.
//!
//! Each direction is a reader and a writer with a queue between them. Readers read frames, count
//! them, and find out what is to go wrong; whatever goes wrong takes its place in the queue, so
//! that all before it is passed on and nothing after it. Writers wait for their time and write.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::fault::{Breakage, Direction, Effect, Strike};
use super::frame::{self, Read, ReplyHeader, Request};
use super::operation::Operation;
use super::{Frozen, Protocol, Shared};

/// How many frames may wait in one direction before no more are read.
const QUEUE: usize = 1024;

/// How long the other side may take to end a connection that was ended in good order.
const FAREWELL: Duration = Duration::from_secs(1);

const NOTIFICATION: i32 = -1;

/// How a connection ends altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Cut,
    Reset,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Condition {
    frozen: Frozen,
    closed: Frozen,
    ending: Option<Ending>,
}

/// What a connection is told from outside, and by the faults that strike it.
pub(super) struct Link {
    condition: watch::Sender<Condition>,
}

impl Link {
    pub(super) fn new(frozen: Frozen) -> Link {
        Link {
            condition: watch::Sender::new(Condition {
                frozen,
                ..Condition::default()
            }),
        }
    }

    pub(super) fn end(&self, ending: Ending) {
        self.condition.send_modify(|condition| {
            condition.ending.get_or_insert(ending);
        });
    }

    pub(super) fn freeze(&self, frozen: Frozen) {
        self.condition
            .send_modify(|condition| condition.frozen = frozen);
    }

    pub(super) fn half_close(&self, direction: Direction) {
        self.condition
            .send_modify(|condition| condition.closed = condition.closed.and(direction));
    }

    /// Waits for a condition. The sender lives as long as this, so it does not fail.
    async fn when(&self, met: impl FnMut(&Condition) -> bool) -> Condition {
        let mut condition = self.condition.subscribe();
        let met = condition.wait_for(met).await.map(|condition| *condition);
        match met {
            Ok(condition) => condition,
            Err(_) => std::future::pending().await,
        }
    }
}

/// What waits in a direction's queue.
enum Item {
    Bytes {
        bytes: Vec<u8>,
        due: Instant,
    },
    Freeze(Strike),
    HalfClose(Strike, Direction),
    End(Option<Strike>, Ending),
    /// The sender has ended its direction.
    SenderEnded,
}

/// A request that the server has yet to answer.
struct Pending {
    xid: i32,
    operation: Operation,
    strike: Option<Strike>,
    /// Where the server is not asked, what is answered in its stead.
    refusal: Option<(i32, Strike)>,
}

/// What both directions know.
#[derive(Default)]
struct Conversation {
    pending: VecDeque<Pending>,
    last_zxid: i64,
}

pub(super) struct Connection {
    shared: Arc<Shared>,
    number: u64,
    link: Arc<Link>,
    conversation: Mutex<Conversation>,
    /// How many requests the server has yet to answer.
    unanswered: watch::Sender<usize>,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, number: u64, link: Arc<Link>) -> Connection {
        Connection {
            shared,
            number,
            link,
            conversation: Mutex::default(),
            unanswered: watch::Sender::new(0),
        }
    }

    pub(super) async fn run(self, mut client: TcpStream) {
        let met = self.link.when(|condition| {
            condition.ending.is_some() || !condition.frozen.is(Direction::ToServer)
        });
        let server = match met.await.ending {
            None => self.shared.connect().await.ok(),
            Some(_) => None,
        };
        if let Some(mut server) = server {
            // An error means that the peer has gone already, as reading will tell.
            let _ = client.set_nodelay(true);
            let _ = server.set_nodelay(true);
            match self.pass_on(&mut client, &mut server).await {
                Ending::Cut => {
                    tokio::join!(end(&mut client), end(&mut server));
                }
                Ending::Reset => {
                    reset(&client);
                    reset(&server);
                }
            }
        }
    }

    async fn pass_on(&self, client: &mut TcpStream, server: &mut TcpStream) -> Ending {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let (requests, queued_requests) = mpsc::channel(QUEUE);
        let (replies, queued_replies) = mpsc::channel(QUEUE);
        let reading = async {
            tokio::join!(
                self.read_requests(from_client, requests, replies.downgrade()),
                self.read_replies(from_server, replies.clone()),
            );
            drop(replies);
        };
        let passing = async {
            tokio::try_join!(
                async {
                    reading.await;
                    Ok(())
                },
                self.write(to_server, queued_requests, Direction::ToServer),
                self.write(to_client, queued_replies, Direction::ToClient),
            )
        };
        tokio::select! {
            biased;
            ended = self.link.when(|condition| condition.ending.is_some()) => {
                ended.ending.unwrap_or(Ending::Cut)
            }
            passed = passing => match passed {
                Ok(_) => Ending::Cut,
                Err(_) => Ending::Reset,
            }
        }
    }

    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn due(&self) -> Instant {
        Instant::now() + self.shared.state().delay
    }

    fn bytes(&self, bytes: Vec<u8>) -> Item {
        let due = self.due();
        Item::Bytes { bytes, due }
    }

    async fn read_requests(
        &self,
        mut client: ReadHalf<'_>,
        to_server: mpsc::Sender<Item>,
        to_client: mpsc::WeakSender<Item>,
    ) {
        match &self.shared.protocol {
            Protocol::ZooKeeper => {}
            Protocol::Raw | Protocol::Quorum => {
                return self.read_raw(client, to_server, Direction::ToServer).await;
            }
            Protocol::Election(address) => {
                let greeting = match address.get() {
                    Some(address) => greeting_from(&mut client, *address).await,
                    None => Ok(Vec::new()),
                };
                if let Ok(greeting) = greeting {
                    let _ = to_server.send(self.bytes(greeting)).await;
                }
                return self.read_raw(client, to_server, Direction::ToServer).await;
            }
        }
        let mut first = true;
        loop {
            let bytes = match frame::read(&mut client).await {
                Ok(Read::Frame(frame)) => frame,
                Ok(Read::NoFrame(bytes)) => {
                    self.shared.state().counters.bytes_to_server += bytes.len() as u64;
                    let _ = to_server.send(self.bytes(bytes)).await;
                    return self.read_raw(client, to_server, Direction::ToServer).await;
                }
                Ok(Read::End) => {
                    let _ = to_server.send(Item::SenderEnded).await;
                    return;
                }
                Err(_) => {
                    let _ = to_server.send(Item::End(None, Ending::Reset)).await;
                    return;
                }
            };
            let request = if std::mem::take(&mut first) {
                Some(Request::of(Operation::Connect))
            } else {
                Request::parse(&bytes)
            };
            let strike = {
                let mut state = self.shared.state();
                state.counters.bytes_to_server += bytes.len() as u64;
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
                match strike.effect.clone() {
                    Effect::AtReply(_) | Effect::ReplyReplaced(_) => pending.strike = Some(strike),
                    Effect::Refused(code) => pending.refusal = Some((code, strike)),
                    Effect::RequestReplaced(replace) => {
                        if let Item::Bytes { bytes, .. } = &mut frame {
                            *bytes = replace(bytes);
                        }
                        strike.dealt();
                    }
                    Effect::AtRequest(Breakage::Delay(delay)) => {
                        if let Item::Bytes { due, .. } = &mut frame {
                            *due += delay;
                        }
                        strike.dealt();
                    }
                    Effect::AtRequest(Breakage::Freeze) => {
                        let _ = to_server.send(Item::Freeze(strike)).await;
                    }
                    Effect::AtRequest(Breakage::HalfClose(direction)) => {
                        let item = Item::HalfClose(strike, direction);
                        let _ = to_server.send(item).await;
                        continue;
                    }
                    Effect::AtRequest(Breakage::Cut) => {
                        return self.end_once_answered(to_client, strike, Ending::Cut).await;
                    }
                    Effect::AtRequest(Breakage::Reset) => {
                        return self
                            .end_once_answered(to_client, strike, Ending::Reset)
                            .await;
                    }
                }
            }
            if let Some(pending) = pending {
                let refused = pending.refusal.is_some();
                self.conversation().pending.push_back(pending);
                self.unanswered.send_modify(|count| *count += 1);
                if refused {
                    let Some(to_client) = to_client.upgrade() else {
                        return;
                    };
                    for item in self.refusals_due() {
                        let _ = to_client.send(item).await;
                    }
                    continue;
                }
            }
            if to_server.send(frame).await.is_err() {
                return;
            }
        }
    }

    async fn end_once_answered(
        &self,
        to_client: mpsc::WeakSender<Item>,
        strike: Strike,
        ending: Ending,
    ) {
        // An error is impossible: the sender is our own.
        let _ = self
            .unanswered
            .subscribe()
            .wait_for(|count| *count == 0)
            .await;
        match to_client.upgrade() {
            Some(to_client) => {
                let _ = to_client.send(Item::End(Some(strike), ending)).await;
            }
            // The server has ended its direction already.
            None => {
                self.link.end(ending);
                strike.dealt();
            }
        }
    }

    /// The answers in the server's stead whose turn has come.
    fn refusals_due(&self) -> Vec<Item> {
        let mut items = Vec::new();
        let due = self.due();
        let mut conversation = self.conversation();
        while let Some((code, strike)) = conversation
            .pending
            .front()
            .and_then(|pending| pending.refusal.clone())
        {
            if let Some(pending) = conversation.pending.pop_front() {
                let header = ReplyHeader {
                    xid: pending.xid,
                    zxid: conversation.last_zxid,
                };
                let bytes = header.refusal(code);
                items.push(Item::Bytes { bytes, due });
            }
            strike.dealt();
        }
        drop(conversation);
        self.unanswered.send_modify(|count| *count -= items.len());
        items
    }

    async fn read_replies(&self, mut server: ReadHalf<'_>, to_client: mpsc::Sender<Item>) {
        if !matches!(self.shared.protocol, Protocol::ZooKeeper) {
            return self.read_raw(server, to_client, Direction::ToClient).await;
        }
        let mut first = true;
        loop {
            let bytes = match frame::read(&mut server).await {
                Ok(Read::Frame(frame)) => frame,
                Ok(Read::NoFrame(bytes)) => {
                    self.shared.state().counters.bytes_to_client += bytes.len() as u64;
                    let _ = to_client.send(self.bytes(bytes)).await;
                    return self.read_raw(server, to_client, Direction::ToClient).await;
                }
                Ok(Read::End) => {
                    let _ = to_client.send(Item::SenderEnded).await;
                    return;
                }
                Err(_) => {
                    let _ = to_client.send(Item::End(None, Ending::Reset)).await;
                    return;
                }
            };
            let header = if std::mem::take(&mut first) {
                Some(ReplyHeader { xid: 0, zxid: 0 })
            } else {
                ReplyHeader::parse(&bytes)
            };
            let strike = self.take_in(header, &bytes);
            let mut frame = self.bytes(bytes);
            if let Some(strike) = strike {
                match &strike.effect {
                    Effect::AtReply(Breakage::Delay(delay)) => {
                        if let Item::Bytes { due, .. } = &mut frame {
                            *due += *delay;
                        }
                        strike.dealt();
                    }
                    Effect::AtReply(Breakage::Freeze) => {
                        let _ = to_client.send(Item::Freeze(strike)).await;
                    }
                    Effect::AtReply(Breakage::HalfClose(direction)) => {
                        let direction = *direction;
                        let item = Item::HalfClose(strike, direction);
                        let _ = to_client.send(item).await;
                        continue;
                    }
                    Effect::AtReply(Breakage::Cut) => {
                        let item = Item::End(Some(strike), Ending::Cut);
                        let _ = to_client.send(item).await;
                        return;
                    }
                    Effect::AtReply(Breakage::Reset) => {
                        let item = Item::End(Some(strike), Ending::Reset);
                        let _ = to_client.send(item).await;
                        return;
                    }
                    Effect::ReplyReplaced(replace) => {
                        if let Item::Bytes { bytes, .. } = &mut frame {
                            *bytes = replace(bytes);
                        }
                        strike.dealt();
                    }
                    Effect::AtRequest(_) | Effect::RequestReplaced(_) | Effect::Refused(_) => {}
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
    fn take_in(&self, header: Option<ReplyHeader>, bytes: &[u8]) -> Option<Strike> {
        let mut state = self.shared.state();
        state.counters.bytes_to_client += bytes.len() as u64;
        let header = header?;
        let mut conversation = self.conversation();
        conversation.last_zxid = conversation.last_zxid.max(header.zxid);
        if header.xid == NOTIFICATION {
            state.counters.reply(Operation::Notification, bytes.len());
            return state.strike(&Request {
                paths: frame::notified_path(bytes).into_iter().collect(),
                ..Request::of(Operation::Notification)
            });
        }
        let place = conversation
            .pending
            .iter()
            .position(|pending| pending.xid == header.xid && pending.refusal.is_none())?;
        let pending = conversation.pending.remove(place)?;
        state.counters.reply(pending.operation, bytes.len());
        self.unanswered.send_modify(|count| *count -= 1);
        pending.strike
    }

    async fn read_raw(
        &self,
        mut from: ReadHalf<'_>,
        queue: mpsc::Sender<Item>,
        direction: Direction,
    ) {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let read = match from.read(&mut buffer).await {
                Ok(0) => {
                    let _ = queue.send(Item::SenderEnded).await;
                    return;
                }
                Ok(read) => read,
                Err(_) => {
                    let _ = queue.send(Item::End(None, Ending::Reset)).await;
                    return;
                }
            };
            {
                let mut state = self.shared.state();
                match direction {
                    Direction::ToServer => state.counters.bytes_to_server += read as u64,
                    Direction::ToClient => state.counters.bytes_to_client += read as u64,
                }
            }
            if queue
                .send(self.bytes(buffer[..read].to_vec()))
                .await
                .is_err()
            {
                return;
            }
        }
    }

    async fn write(
        &self,
        mut to: WriteHalf<'_>,
        mut queue: mpsc::Receiver<Item>,
        direction: Direction,
    ) -> io::Result<()> {
        let closed = || self.link.when(|condition| condition.closed.is(direction));
        loop {
            let item = tokio::select! {
                biased;
                _ = closed() => break,
                item = queue.recv() => item,
            };
            let Some(item) = item else { break };
            if let Item::Bytes { due, .. } = &item {
                sleep_until(*due).await;
            }
            let open = self.link.when(|condition| {
                condition.closed.is(direction) || !condition.frozen.is(direction)
            });
            if open.await.closed.is(direction) {
                break;
            }
            match item {
                Item::Bytes { bytes, .. } => to.write_all(&bytes).await?,
                Item::Freeze(strike) => {
                    self.link.freeze(Frozen::BOTH);
                    strike.dealt();
                }
                Item::HalfClose(strike, closed) => {
                    self.link.half_close(closed);
                    strike.dealt();
                }
                Item::End(strike, ending) => {
                    self.link.end(ending);
                    if let Some(strike) = strike {
                        strike.dealt();
                    }
                    return Ok(());
                }
                Item::SenderEnded => break,
            }
        }
        // An error means that the receiver has gone already.
        let _ = to.shutdown().await;
        // What is sent into an end that was closed from outside goes nowhere.
        while queue.recv().await.is_some() {}
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.state().links.remove(&self.number);
    }
}

/// Ends a connection in good order. What still comes is read: a socket that is closed with unread
/// data would reset the connection instead.
async fn end(stream: &mut TcpStream) {
    let farewell = async {
        stream.shutdown().await?;
        let mut buffer = [0; 4096];
        while stream.read(&mut buffer).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(FAREWELL, farewell).await;
}

/// Makes the connection be reset when it is closed.
fn reset(stream: &TcpStream) {
    // An error means that the connection has gone already.
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
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
