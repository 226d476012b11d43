//! The faults: how a connection breaks, and at which request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::frame::{self, Request};
use super::operation::Operation;

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server: requests.
    ToServer,
    /// From the server to the client: replies and notifications.
    ToClient,
}

/// How a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Breakage {
    /// Both sides see the connection's end in good order (FIN), as when a process has ended.
    Cut,
    /// Both sides see the connection reset (RST), as when a machine has been restarted.
    Reset,
    /// One side sees the end of this direction. The other direction stays open.
    HalfClose(Direction),
    /// The connection stays, and nothing passes until [`Proxy::thaw`](super::Proxy::thaw).
    ///
    /// This is like a partition of the network. The bytes sent meanwhile are passed on after it.
    Freeze,
    /// The request or reply is late by this time, and so is all that follows in its direction.
    Delay(Duration),
}

/// One fault at a chosen request: an [`Occasion`] and its effect.
///
/// ```
/// use zookeeper_recipes_testkit::proxy::{Breakage, Fault, Operation};
///
/// // Applied, but the client does not learn it.
/// let applied = Fault::on(Operation::Create).under("/locks").nth(3).reply_lost();
/// // Never applied, and the client does not learn that either.
/// let not_applied = Fault::on(Operation::Delete).at_request(Breakage::Reset);
/// // Answered by the proxy: "no such znode".
/// let refused = Fault::on(Operation::GetData).repeatedly().refused(-101);
/// # let _ = (applied, not_applied, refused);
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    occasion: Occasion,
    pub(super) effect: Effect,
}

/// The requests to which a [`Fault`] happens.
#[derive(Clone, Debug)]
#[must_use = "an occasion is no fault before its effect is chosen"]
pub struct Occasion {
    operation: Option<Operation>,
    code: Option<i32>,
    prefix: Option<String>,
    nth: u64,
    repeatedly: bool,
}

type Replace = Arc<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

#[derive(Clone)]
pub(super) enum Effect {
    AtRequest(Breakage),
    AtReply(Breakage),
    Refused(i32),
    RequestReplaced(Replace),
    ReplyReplaced(Replace),
}

impl Fault {
    /// On the next request of this kind.
    ///
    /// [`Operation::Notification`] has no request, so only faults of the reply happen to it.
    pub fn on(operation: Operation) -> Occasion {
        Occasion {
            operation: Some(operation),
            ..Fault::on_any()
        }
    }

    /// On the next request with this operation code, alone or in a transaction.
    ///
    /// The codes distinguish requests that are one [`Operation`] here: `create2` is 15,
    /// `createContainer` is 19. A handshake has no code.
    pub fn on_code(code: i32) -> Occasion {
        Occasion {
            code: Some(code),
            ..Fault::on_any()
        }
    }

    /// On the next request of any kind, pings and handshakes included.
    pub fn on_any() -> Occasion {
        Occasion {
            operation: None,
            code: None,
            prefix: None,
            nth: 1,
            repeatedly: false,
        }
    }
}

impl Occasion {
    /// Only on a request about a path that begins with this prefix.
    ///
    /// A transaction counts if one of its operations does. A request without a path never counts.
    pub fn under(self, prefix: impl Into<String>) -> Occasion {
        Occasion {
            prefix: Some(prefix.into()),
            ..self
        }
    }

    /// Only on the `nth` such request, counted from one.
    ///
    /// The count begins when the proxy gets the fault.
    pub fn nth(self, nth: u64) -> Occasion {
        Occasion {
            nth: nth.max(1),
            ..self
        }
    }

    /// On each such request from then on, not only once.
    pub fn repeatedly(self) -> Occasion {
        Occasion {
            repeatedly: true,
            ..self
        }
    }

    /// The connection is cut in place of the request: **not applied**, and the client cannot know.
    pub fn request_lost(self) -> Fault {
        self.at_request(Breakage::Cut)
    }

    /// The connection is cut in place of the reply: **applied**, and the client cannot know.
    pub fn reply_lost(self) -> Fault {
        self.at_reply(Breakage::Cut)
    }

    /// The connection breaks before the request has reached the server.
    ///
    /// The request is never passed on ([`Freeze`](Breakage::Freeze) and [`Delay`](Breakage::Delay):
    /// later). Earlier requests are still answered before the connection is cut or reset.
    pub fn at_request(self, breakage: Breakage) -> Fault {
        self.causes(Effect::AtRequest(breakage))
    }

    /// The connection breaks after the server has answered, before the reply reaches the client.
    ///
    /// The reply is never passed on ([`Freeze`](Breakage::Freeze) and [`Delay`](Breakage::Delay):
    /// later). Everything before the reply is passed on.
    pub fn at_reply(self, breakage: Breakage) -> Fault {
        self.causes(Effect::AtReply(breakage))
    }

    /// The proxy answers the request with this error code, and does not pass it on.
    ///
    /// The code is one of `KeeperException.Code`, such as -101 for "no such znode".
    pub fn refused(self, code: i32) -> Fault {
        self.causes(Effect::Refused(code))
    }

    /// The server gets the bytes that `replace` returns, in place of the request.
    ///
    /// `replace` gets all bytes of the frame, beginning with its length, and may return any bytes.
    ///
    /// The reply is passed on as the reply to what the client sent.
    pub fn request_replaced(
        self,
        replace: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> Fault {
        self.causes(Effect::RequestReplaced(Arc::new(replace)))
    }

    /// A handshake asks for a new session, although its client has one.
    ///
    /// The server answers with a new session, and the old one lives on until it expires: what
    /// ClickHouse Keeper does at every reconnect. For [`Operation::Connect`]; a first handshake
    /// asks for a new session by itself.
    pub fn session_forgotten(self) -> Fault {
        self.request_replaced(frame::without_session)
    }

    /// The client gets what `replace` makes of the reply: all bytes of the frame in, its length in
    /// front, and any bytes at all out.
    pub fn reply_replaced(
        self,
        replace: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> Fault {
        self.causes(Effect::ReplyReplaced(Arc::new(replace)))
    }

    /// The client gets this error code in place of the reply: **applied**.
    ///
    /// So answer servers that do not know the outcome of a write: ClickHouse Keeper and RaftKeeper
    /// with -4 or -7.
    pub fn answered(self, code: i32) -> Fault {
        self.reply_replaced(move |reply| frame::with_code(reply, code))
    }

    fn causes(self, effect: Effect) -> Fault {
        Fault {
            occasion: self,
            effect,
        }
    }

    fn fits(&self, request: &Request) -> bool {
        self.operation
            .is_none_or(|wanted| wanted == request.operation)
            && self.code.is_none_or(|code| request.codes.contains(&code))
            && self.prefix.as_ref().is_none_or(|prefix| {
                let mut paths = request.paths.iter();
                paths.any(|path| path.starts_with(prefix))
            })
    }
}

impl fmt::Debug for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::AtRequest(breakage) => write!(formatter, "AtRequest({breakage:?})"),
            Effect::AtReply(breakage) => write!(formatter, "AtReply({breakage:?})"),
            Effect::Refused(code) => write!(formatter, "Refused({code})"),
            Effect::RequestReplaced(_) => formatter.write_str("RequestReplaced"),
            Effect::ReplyReplaced(_) => formatter.write_str("ReplyReplaced"),
        }
    }
}

/// Counts how often a [`Fault`] has struck.
#[derive(Clone, Debug)]
pub struct Strikes {
    count: watch::Receiver<u64>,
}

impl Strikes {
    /// How often it has struck so far.
    pub fn count(&self) -> u64 {
        *self.count.borrow()
    }

    /// Resolves when it has struck. The future never resolves if the proxy is dropped before that.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
    pub async fn first(&self) {
        if self
            .count
            .clone()
            .wait_for(|count| *count > 0)
            .await
            .is_err()
        {
            std::future::pending().await
        }
    }
}

/// A fault that has been given to a proxy.
#[derive(Debug)]
pub(super) struct Armed {
    fault: Fault,
    seen: u64,
    over: bool,
    pub(super) strike: Strike,
}

/// A fault that strikes when its place in the connection is reached.
#[derive(Clone, Debug)]
pub(super) struct Strike {
    pub(super) effect: Effect,
    count: watch::Sender<u64>,
}

impl Armed {
    pub(super) fn new(fault: Fault) -> (Armed, Strikes) {
        let (sender, count) = watch::channel(0);
        let strike = Strike {
            effect: fault.effect.clone(),
            count: sender,
        };
        let armed = Armed {
            fault,
            seen: 0,
            over: false,
            strike,
        };
        (armed, Strikes { count })
    }

    /// Notes a request. True if the fault strikes it, and no other fault does.
    pub(super) fn sees(&mut self, request: &Request, struck: bool) -> bool {
        let occasion = &self.fault.occasion;
        if self.over || !occasion.fits(request) {
            return false;
        }
        let now = self.seen + 1 >= occasion.nth;
        if now && struck {
            return false;
        }
        self.seen += 1;
        self.over = now && !occasion.repeatedly;
        now
    }
}

impl Strike {
    /// Reports that it has happened.
    pub(super) fn dealt(&self) {
        self.count.send_modify(|count| *count += 1);
    }
}
