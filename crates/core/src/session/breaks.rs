//! Counts the connections that break at requests which the servers may not know.
//!
//! Some servers that are not ZooKeeper close the connection if they do not know a request. Some of
//! these servers also give a new ZooKeeper session to each client that reconnects. Each unknown
//! request then ends its session. So the counts outlive the ZooKeeper session.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};

use crate::server::ensemble::{Ensemble, ServerSession};
use crate::sync::lock;

/// After this many breaks in a row, the session stops sending a kind of request.
const MOST: u32 = 3;

/// Counts the connections in a row that broke at one kind of request.
pub(crate) struct Breaks {
    clock: Arc<dyn Ensemble>,
    count: Mutex<Count>,
}

#[derive(Default)]
struct Count {
    breaks: u32,
    /// When the last break was noticed.
    last: Duration,
    /// The number of trials since the last answer.
    trials: u32,
}

impl Breaks {
    pub(crate) fn new(clock: Arc<dyn Ensemble>) -> Arc<Breaks> {
        let count = Mutex::default();
        Arc::new(Breaks { clock, count })
    }

    /// True if the session must not send the request.
    pub(crate) fn are_too_many(&self) -> bool {
        lock(&self.count).breaks >= MOST
    }

    /// True if the session may try a request again that it has stopped sending.
    ///
    /// The first trial comes `pause` after the last break. The pause before each further trial is
    /// twice as long. If the connection breaks at the trial, the session stops again.
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

    /// Notes that such a request is sent now, over the current connection.
    pub(crate) fn asked(self: &Arc<Self>, server: &dyn ServerSession) -> Asked {
        let mut connection = Connection::of(server);
        Asked {
            breaks: self.clone(),
            sent: self.clock.now(),
            // If no connection stands now, no later break was caused by this request.
            is_answered: !connection.stands(),
            connection,
        }
    }
}

/// What is known of requests that the servers may not support. Kept from one ZooKeeper session to the next.
#[derive(Clone)]
pub(crate) struct Unsupported {
    /// The connections that broke at the create of a container.
    pub(crate) containers: Arc<Breaks>,
    /// True once a server has answered a create.
    pub(crate) creates: Arc<AtomicBool>,
}

impl Unsupported {
    /// No break is counted yet, and no create is answered.
    pub(crate) fn new(clock: &Arc<dyn Ensemble>) -> Unsupported {
        Unsupported {
            containers: Breaks::new(clock.clone()),
            creates: Arc::default(),
        }
    }
}

/// A request without an answer yet.
///
/// If the connection of the request has broken when this is dropped, the break is counted.
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
        // One break of a connection counts once for all requests that it met.
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

/// The connection that was open when this value was made.
pub(crate) struct Connection {
    /// Ready once the connection has broken. `None` after that.
    broken: Option<BoxFuture<'static, ()>>,
}

impl Connection {
    pub(crate) fn of(server: &dyn ServerSession) -> Connection {
        let broken = Some(server.disconnected());
        Connection { broken }
    }

    /// True if the connection has not broken. All answers until now then came over it.
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
