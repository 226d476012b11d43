//! What the handle of a session, its watches and its driver share.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::driver::network::Network;
use crate::error::RequestError;
use crate::session::machine::Machine;
use crate::session::output::{Answer, ConnectionState, Output};
use crate::session::watches::WatchEvent;
use crate::sync::{Mutex, MutexGuard, lock};

pub(crate) type ReplyTo = oneshot::Sender<Result<Answer, RequestError>>;
pub(crate) type WatchTo = oneshot::Sender<WatchEvent>;

/// What the handle, its watches and the driver share.
pub(crate) struct Shared {
    pub(crate) inner: Mutex<Inner>,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) state: watch::Sender<ConnectionState>,
}

pub(crate) struct Inner {
    pub(crate) machine: Machine<ReplyTo, WatchTo>,
    /// The driver's, while it waits.
    pub(crate) driver: Option<Waker>,
    /// True if the driver has gone, so that each caller takes what the machine yields.
    pub(crate) is_left: bool,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Gives the machine an input, and wakes the driver if it waits.
    pub(crate) fn input<T>(
        &self,
        act: impl FnOnce(&mut Machine<ReplyTo, WatchTo>, Duration) -> T,
    ) -> T {
        let now = self.network.now();
        let mut left = VecDeque::new();
        let (result, driver) = {
            let mut inner = self.lock();
            let result = act(&mut inner.machine, now);
            if inner.is_left {
                mem::swap(&mut left, &mut inner.machine.outputs);
            }
            (result, inner.driver.take())
        };
        if let Some(driver) = driver {
            driver.wake();
        }
        left.into_iter().for_each(|output| self.deliver(output));
        result
    }

    /// Passes an output on to its caller. This wakes tasks, so the machine must not be locked.
    pub(crate) fn deliver(&self, output: Output<ReplyTo, WatchTo>) {
        // A caller that has gone does not want what it asked for.
        match output {
            Output::Answered(to, answer) => drop(to.send(answer)),
            Output::Watched(to, event) => drop(to.send(event)),
            Output::Wake(waker) => waker.wake(),
            Output::State(state) => drop(self.state.send_replace(state)),
            Output::Connect { .. } | Output::LookUp(_) | Output::Disconnect => {}
        }
    }
}
