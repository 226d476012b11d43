//! One ZooKeeper session, from its opening to its end.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, watch};

use crate::announcement;
use crate::contender::Identity;
use crate::deletions::Deletions;
use crate::ensemble::{AuthId, Ensemble, ServerSession, SessionEnd, SessionId};
use crate::error::{Error, ServerError};
use crate::hold::{HoldState, LossReason, Witness};
use crate::lease::Lease;
use crate::sweep::Sweep;
use crate::sync::lock;
use crate::watch_room::WatchRoom;

/// One ZooKeeper session as the recipes see it: its server side, its lease, its condition.
///
/// Outlives the server side, so that what was held in it can still be asked.
pub(crate) struct LiveSession {
    id: SessionId,
    timeout: Duration,
    ensemble: Arc<dyn Ensemble>,
    runtime: Handle,
    server: Mutex<Option<Arc<dyn ServerSession>>>,
    lease: Mutex<Lease>,
    condition: watch::Sender<Condition>,
    watch_room: WatchRoom,
    sweep: Sweep,
    deletions: Deletions,
    /// Whether the session's own identity keeps others from writing.
    is_believed: OnceCell<bool>,
    /// Those who are to watch a holder's znode, where the hold lasts.
    witnesses: Mutex<Vec<Witness>>,
}

/// What is known of a session; each change wakes those who wait for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) contact: Contact,
    /// How often the connection was made anew.
    pub(crate) reconnects: u64,
    /// How often the lease has lapsed.
    pub(crate) lapses: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    Connected,
    /// No server answers, or the one that does does not reach its leader in time.
    Suspended,
    Ended(SessionEnd),
}

impl LiveSession {
    /// `asked_at` is when the session was asked for, by the ensemble's clock; `runtime` is where it
    /// does what it does by itself.
    pub(crate) fn new(
        ensemble: Arc<dyn Ensemble>,
        server: Arc<dyn ServerSession>,
        margin: Duration,
        asked_at: Duration,
        runtime: Handle,
    ) -> LiveSession {
        let timeout = server.timeout();
        let condition = Condition {
            contact: Contact::Connected,
            reconnects: 0,
            lapses: 0,
        };
        LiveSession {
            watch_room: WatchRoom::new(ensemble.chroot()),
            sweep: Sweep::default(),
            deletions: Deletions::default(),
            is_believed: OnceCell::new(),
            witnesses: Mutex::default(),
            id: server.id(),
            timeout,
            ensemble,
            runtime,
            server: Mutex::new(Some(server)),
            lease: Mutex::new(Lease::new(asked_at, timeout, margin)),
            condition: watch::Sender::new(condition),
        }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    /// The room for what is watched in the session.
    pub(crate) fn watch_room(&self) -> &WatchRoom {
        &self.watch_room
    }

    /// The znodes that are looked at for want of room.
    pub(crate) fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// The deletions that are under way in the session.
    pub(crate) fn deletions(&self) -> &Deletions {
        &self.deletions
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How often the session speaks up by itself.
    pub(crate) fn probe_interval(&self) -> Duration {
        self.timeout / 6
    }

    /// The server side.
    ///
    /// # Errors
    ///
    /// [`ServerError::SessionOver`] once the session has ended.
    pub(crate) fn server(&self) -> Result<Arc<dyn ServerSession>, ServerError> {
        lock(&self.server).clone().ok_or_else(|| {
            let end = match self.condition.borrow().contact {
                Contact::Ended(end) => end,
                Contact::Connected | Contact::Suspended => SessionEnd::Closed,
            };
            ServerError::SessionOver(end)
        })
    }

    /// The identity that lets nobody but this session write to its contenders in the directory, if
    /// there is one. One request, the first time that the directory is there to try it in.
    pub(crate) async fn sole_writer(
        &self,
        server: &dyn ServerSession,
        directory: &str,
        identity: &Identity,
    ) -> Option<AuthId> {
        let owner = server.own_identity()?;
        let believed = self.is_believed.get_or_try_init(|| async {
            let answer = announcement::is_believed(server, directory, identity, &owner).await;
            answer.ok_or(())
        });
        let believed = *believed.await.ok()?;
        believed.then_some(owner)
    }

    pub(crate) fn now(&self) -> Duration {
        self.ensemble.now()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    pub(crate) fn condition(&self) -> Condition {
        *self.condition.borrow()
    }

    /// Takes in that a request sent at `sent` was answered through the leader.
    pub(crate) fn answered(&self, sent: Duration) {
        let mut lease = lock(&self.lease);
        let now = self.now();
        lease.renew(now, sent);
        let (lapses, _) = lease.look(now);
        drop(lease);
        self.publish_lapses(lapses);
    }

    /// Looks at the clock: how often the lease has lapsed, and whether it has now.
    pub(crate) fn look_at_lease(&self) -> (u64, bool) {
        let (lapses, lapsed) = lock(&self.lease).look(self.now());
        self.publish_lapses(lapses);
        (lapses, lapsed)
    }

    /// How long the lease runs on; zero where it has lapsed.
    pub(crate) fn remaining(&self) -> Duration {
        let valid_until = lock(&self.lease).valid_until();
        valid_until.saturating_sub(self.now())
    }

    /// How it stands with something that was granted when the lease had lapsed `lapses` times.
    pub(crate) fn standing(&self, lapses: u64) -> HoldState {
        let contact = self.condition().contact;
        let (lapses_now, lapsed) = self.look_at_lease();
        match contact {
            Contact::Ended(end) => HoldState::Lost(LossReason::Session(end)),
            _ if lapsed || lapses_now != lapses => HoldState::Lost(LossReason::LeaseElapsed),
            Contact::Suspended => HoldState::Suspended,
            Contact::Connected => HoldState::Held,
        }
    }

    fn publish_lapses(&self, lapses: u64) {
        self.condition.send_if_modified(|condition| {
            let news = lapses > condition.lapses;
            condition.lapses = condition.lapses.max(lapses);
            news
        });
    }

    /// Has a holder's znode watched from the next probe on, if it is held then.
    pub(crate) fn watch_later(&self, witness: Witness) {
        let mut witnesses = lock(&self.witnesses);
        if witnesses.len() == witnesses.capacity() {
            witnesses.retain(|witness| !witness.is_done());
            // Half of the room is free afterwards, so that this is seldom.
            let standing = witnesses.len();
            witnesses.reserve(standing);
        }
        witnesses.push(witness);
    }

    /// Those whose time to watch has come.
    pub(crate) fn take_witnesses(&self) -> Vec<Witness> {
        let mut witnesses = std::mem::take(&mut *lock(&self.witnesses));
        witnesses.retain(|witness| !witness.is_done());
        witnesses
    }

    pub(crate) fn set_contact(&self, contact: Contact) {
        self.condition.send_if_modified(|condition| {
            if condition.contact == contact || matches!(condition.contact, Contact::Ended(_)) {
                return false;
            }
            condition.contact = contact;
            true
        });
    }

    pub(crate) fn reconnected(&self) {
        self.condition
            .send_modify(|condition| condition.reconnects += 1);
    }

    /// Ends the session on this side: whoever waits in it is told, and the server side is let go.
    pub(crate) fn end(&self, end: SessionEnd) {
        self.set_contact(Contact::Ended(end));
        lock(&self.server).take();
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.condition().contact, Contact::Ended(_))
    }

    /// Resolves when the session is over.
    pub(crate) async fn ended(&self) -> SessionEnd {
        let mut condition = self.subscribe();
        loop {
            if let Contact::Ended(end) = condition.borrow_and_update().contact {
                return end;
            }
            if condition.changed().await.is_err() {
                return SessionEnd::Closed;
            }
        }
    }

    /// Does something in the session's own time, also when the caller has gone, until it is done
    /// or the session has ended. Works on any thread, inside or outside a runtime.
    pub(crate) fn in_background(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        if self.has_ended() {
            return;
        }
        let live = self.clone();
        let until_the_end = async move {
            tokio::select! {
                biased;
                () = work => {}
                _ = live.ended() => {}
            }
        };
        self.runtime
            .spawn(self.ensemble.task(until_the_end.boxed()));
    }

    /// Runs what must not outlast the session.
    ///
    /// Where it comes back with the news that the session is over, that is known to all from then
    /// on: whoever asks again at once waits for the next session, and does not get the same answer
    /// for as long as nobody has the time to open one.
    pub(crate) async fn during<T>(
        &self,
        path: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            end = self.ended() => Err(Error::at(path, self.id, ServerError::SessionOver(end))),
            result = work => {
                if let Err(Error::SessionOver { session, reason, .. }) = &result {
                    if *session == self.id {
                        self.end(*reason);
                    }
                }
                result
            }
        }
    }
}

impl fmt::Debug for LiveSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LiveSession")
            .field("id", &self.id)
            .field("timeout", &self.timeout)
            .field("condition", &self.condition())
            .finish_non_exhaustive()
    }
}
