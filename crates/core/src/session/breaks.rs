//! Requests that the servers may not know, as far as broken connections show.
//!
//! Older servers of another kind close the connection at a request that they do not know, and some
//! of them give a new ZooKeeper session to each client that reconnects: then each such request
//! ends the session that it was sent in. So what is learned here outlives the ZooKeeper session.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};

use crate::server::ensemble::{Ensemble, ServerSession};
use crate::sync::lock;

/// How many connections in a row may break at a kind of request before it is done without.
const MOST: u32 = 3;

/// Counts the connections in a row that broke at one kind of request.
pub(crate) struct Breaks {
    clock: Arc<dyn Ensemble>,
    count: Mutex<Count>,
}

#[derive(Default)]
struct Count {
    breaks: u32,
    /// When the last of them was noticed.
    last: Duration,
    /// How often the request was tried again after that.
    trials: u32,
}

impl Breaks {
    pub(crate) fn new(clock: Arc<dyn Ensemble>) -> Arc<Breaks> {
        let count = Mutex::default();
        Arc::new(Breaks { clock, count })
    }

    /// True if the request is to be done without.
    pub(crate) fn are_too_many(&self) -> bool {
        lock(&self.count).breaks >= MOST
    }

    /// True if the request, done without until now, is to be tried once more: after `pause`, and
    /// then ever more rarely. One more break is enough to do without it again.
    pub(crate) fn may_try_again(&self, pause: Duration) -> bool {
        let now = self.clock.now();
        let mut count = lock(&self.count);
        let pause = pause.saturating_mul(2_u32.saturating_pow(count.trials));
        let may = count.breaks >= MOST && now > count.last.saturating_add(pause);
        if may {
            count.breaks = MOST - 1;
            count.trials += 1;
        }
        may
    }

    /// Notes that such a request is sent now, over the connection that stands.
    pub(crate) fn asked(self: &Arc<Self>, server: &dyn ServerSession) -> Asked {
        let mut connection = Connection::of(server);
        Asked {
            breaks: self.clone(),
            sent: self.clock.now(),
            // A request that waits for a connection teaches nothing.
            is_answered: !connection.stands(),
            connection,
        }
    }
}

/// What a session has learned of its servers, from one ZooKeeper session to the next.
#[derive(Clone)]
pub(crate) struct Unsupported {
    /// The connections that broke at the create of a container.
    pub(crate) containers: Arc<Breaks>,
    /// The connections that broke when a watch was taken off.
    pub(crate) unwatching: Arc<Breaks>,
}

impl Unsupported {
    /// Nothing, yet.
    pub(crate) fn new(clock: &Arc<dyn Ensemble>) -> Unsupported {
        Unsupported {
            containers: Breaks::new(clock.clone()),
            unwatching: Breaks::new(clock.clone()),
        }
    }
}

/// A request that no answer has come to yet. If its connection has broken when this is dropped,
/// the break is counted.
pub(crate) struct Asked {
    breaks: Arc<Breaks>,
    sent: Duration,
    connection: Connection,
    is_answered: bool,
}

impl Asked {
    pub(crate) fn sent(&self) -> Duration {
        self.sent
    }

    /// Notes that the servers know the request.
    pub(crate) fn answered(mut self) {
        self.is_answered = true;
        *lock(&self.breaks.count) = Count::default();
    }

    /// Notes that the connection broke before an answer came.
    pub(crate) fn broke(mut self) {
        self.is_answered = true;
        self.count();
    }

    pub(crate) fn has_broken(&mut self) -> bool {
        !self.connection.stands()
    }

    fn count(&self) {
        let now = self.breaks.clock.now();
        let mut count = lock(&self.breaks.count);
        // Each connection counts once, however many requests break with it.
        if self.sent > count.last {
            count.breaks += 1;
            count.last = now;
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_answered && self.has_broken() {
            self.count();
        }
    }
}

/// The connection that stood at one moment.
pub(crate) struct Connection {
    /// Ready when it has broken; `None` from then on.
    broken: Option<BoxFuture<'static, ()>>,
}

impl Connection {
    pub(crate) fn of(server: &dyn ServerSession) -> Connection {
        let broken = Some(server.disconnected());
        Connection { broken }
    }

    /// Whether every answer until now has come over this connection.
    pub(crate) fn stands(&mut self) -> bool {
        let broken = &mut self.broken;
        if broken
            .as_mut()
            .is_some_and(|broken| broken.now_or_never().is_some())
        {
            *broken = None;
        }
        broken.is_some()
    }
}
