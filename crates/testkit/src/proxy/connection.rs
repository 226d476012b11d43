//! One connection through a proxy.
//!
//! Each direction has a reader and a writer, with a queue between them. A reader reads frames,
//! counts them, and looks for a fault. The fault takes its place in the queue, so that the proxy
//! passes on all frames before it and none after it. A writer waits for its time and writes.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::fault::{Breakage, Direction, Strike};
use super::link::{Ending, Link};
use super::operation::Operation;
use super::shared::Shared;

/// How many frames may wait in one direction before no more are read.
const QUEUE: usize = 1024;

/// How long the other side may take to end a connection that was ended in good order.
const FAREWELL: Duration = Duration::from_secs(1);

/// What waits in a direction's queue.
pub(super) enum Item {
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

/// What becomes of a frame that a fault has struck.
pub(super) enum Fate {
    /// The frame is passed on.
    Passes,
    /// The frame goes nowhere.
    Swallowed,
    /// The frame goes nowhere, and nothing after it is read.
    Last,
}

impl Item {
    /// Puts other bytes in place of a frame.
    pub(super) fn replace(&mut self, replace: impl Fn(&[u8]) -> Vec<u8>) {
        if let Item::Bytes { bytes, .. } = self {
            *bytes = replace(bytes);
        }
    }
}

/// Has a breakage strike a frame, at its place in the queue.
pub(super) async fn strike(
    strike: Strike,
    breakage: Breakage,
    frame: &mut Item,
    queue: &mpsc::Sender<Item>,
) -> Fate {
    let (item, fate) = match breakage {
        Breakage::Delay(delay) => {
            if let Item::Bytes { due, .. } = frame {
                *due += delay;
            }
            strike.dealt();
            return Fate::Passes;
        }
        Breakage::Freeze => (Item::Freeze(strike), Fate::Passes),
        Breakage::HalfClose(direction) => (Item::HalfClose(strike, direction), Fate::Swallowed),
        Breakage::Cut => (Item::End(Some(strike), Ending::Cut), Fate::Last),
        Breakage::Reset => (Item::End(Some(strike), Ending::Reset), Fate::Last),
    };
    let _ = queue.send(item).await;
    fate
}

/// A request that the server has yet to answer.
pub(super) struct Pending {
    pub(super) xid: i32,
    pub(super) operation: Operation,
    pub(super) strike: Option<Strike>,
    /// The answer in place of the server's, if the request does not reach the server.
    pub(super) refusal: Option<(i32, Strike)>,
}

/// What both directions know.
#[derive(Default)]
pub(super) struct Conversation {
    pub(super) pending: VecDeque<Pending>,
    pub(super) last_zxid: i64,
    /// True if the client has sent since the server has, pings left out.
    pub(super) client_was_last: bool,
}

pub(super) struct Connection {
    pub(super) shared: Arc<Shared>,
    number: u64,
    pub(super) link: Arc<Link>,
    conversation: Mutex<Conversation>,
    /// How many requests the server has yet to answer.
    pub(super) unanswered: watch::Sender<usize>,
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
            // An error means that the peer has gone already. The next read finds that.
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

    pub(super) fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn due(&self) -> Instant {
        Instant::now() + self.shared.state().delay
    }

    pub(super) fn bytes(&self, bytes: Vec<u8>) -> Item {
        let due = self.due();
        Item::Bytes { bytes, due }
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
