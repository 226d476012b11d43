//! One ZooKeeper session, from its opening to its end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, watch};

use crate::backoff::Backoff;
use crate::breaks::{Breaks, Connection, Unsupported};
use crate::contender::Identity;
use crate::deletions::Deletions;
use crate::ensemble::{AuthId, Ensemble, ServerSession, SessionEnd, SessionId};
use crate::error::{Error, ServerError};
use crate::guard::{Guard, Guards};
use crate::hold::{Fate, HoldState, LossReason, Witness};
use crate::lease::{Lease, Terms};
use crate::marked_release;
use crate::node::OwnNode;
use crate::sweep::Sweep;
use crate::sync::lock;
use crate::unwatch::Unwatching;
use crate::watch_budget::WatchBudget;

/// One ZooKeeper session as the recipes see it: its server side, its lease, its condition.
///
/// Outlives the server side, so that what was held in it can still be asked.
pub(crate) struct LiveSession {
    id: SessionId,
    timeout: Duration,
    probe_interval: Duration,
    ensemble: Arc<dyn Ensemble>,
    runtime: Handle,
    server: Mutex<Option<Arc<dyn ServerSession>>>,
    kept: Mutex<Kept>,
    condition: watch::Sender<Condition>,
    watch_budget: WatchBudget,
    sweep: Sweep,
    deletions: Deletions,
    /// Whether the session's own identity keeps others from writing.
    is_believed: OnceCell<bool>,
    /// Those who are to watch a holder's znode, where the hold lasts.
    witnesses: Mutex<Vec<Witness>>,
    /// The paths of the znodes of this session, each with the number of those who keep it.
    own_paths: Mutex<BTreeMap<Arc<str>, Keepers>>,
    /// The znodes of the holds granted in this session and not yet released.
    granted: Mutex<Granted>,
    /// Whether a create was ever answered in it.
    creates: AtomicBool,
    containers: Arc<Breaks>,
    unwatching: Unwatching,
    guards: Guards,
}

/// The lease, and the connection whose answers renew it.
struct Kept {
    lease: Lease,
    connection: Connection,
}

impl Kept {
    /// Whether every answer until now has come over this connection.
    fn is_connected(&mut self) -> bool {
        self.connection.stands()
    }
}

struct Grantee {
    /// How often the lease had lapsed at the grant.
    lapses: u64,
    node: OwnNode,
    fate: watch::Sender<Fate>,
}

/// Granted holds by number.
#[derive(Default)]
struct Granted {
    next: u64,
    holds: BTreeMap<u64, Grantee>,
}

/// Who keeps a znode of the session.
struct Keepers {
    number: usize,
    guard: Option<Guard>,
}

/// A znode of a session, and its guard if others use the name.
pub(crate) struct OwnZnode {
    pub(crate) path: Arc<str>,
    pub(crate) guard: Option<Guard>,
}

/// An entry in the session's list of its own znodes, struck off when it is dropped.
#[derive(Debug)]
pub(crate) struct OwnPath {
    live: Arc<LiveSession>,
    path: Arc<str>,
}

impl Drop for OwnPath {
    fn drop(&mut self) {
        let mut paths = lock(&self.live.own_paths);
        if let Some(keepers) = paths.get_mut(&self.path) {
            keepers.number -= 1;
            if keepers.number == 0 {
                paths.remove(&self.path);
            }
        }
    }
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
    /// `asked_at` is when the session was asked for, by the ensemble's clock, if that is known;
    /// `unsupported` is what the sessions before it have learned; `runtime` is where it does what it
    /// does by itself.
    pub(crate) fn new(
        ensemble: Arc<dyn Ensemble>,
        server: Arc<dyn ServerSession>,
        terms: Terms,
        asked_at: Option<Duration>,
        unsupported: Unsupported,
        runtime: Handle,
    ) -> LiveSession {
        let timeout = server.timeout();
        let kept = Mutex::new(Kept {
            lease: Lease::new(asked_at, terms),
            connection: Connection::of(&*server),
        });
        let condition = Condition {
            contact: Contact::Connected,
            reconnects: 0,
            lapses: 0,
        };
        LiveSession {
            watch_budget: WatchBudget::new(ensemble.chroot()),
            sweep: Sweep::default(),
            deletions: Deletions::default(),
            is_believed: OnceCell::new(),
            witnesses: Mutex::default(),
            id: server.id(),
            timeout,
            probe_interval: terms.probe_interval(),
            ensemble,
            runtime,
            server: Mutex::new(Some(server)),
            kept,
            own_paths: Mutex::default(),
            granted: Mutex::default(),
            creates: AtomicBool::new(false),
            containers: unsupported.containers,
            unwatching: Unwatching::new(unsupported.unwatching),
            guards: Guards::default(),
            condition: watch::Sender::new(condition),
        }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    /// The room for what is watched in the session.
    pub(crate) fn watch_budget(&self) -> &WatchBudget {
        &self.watch_budget
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
        self.probe_interval
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
            let answer = marked_release::is_believed(server, directory, identity, &owner).await;
            answer.ok_or(())
        });
        let believed = *believed.await.ok()?;
        believed.then_some(owner)
    }

    pub(crate) fn now(&self) -> Duration {
        self.ensemble.now()
    }

    /// An identity for a znode that is about to be created.
    pub(crate) fn identity(&self) -> Identity {
        self.ensemble.identity()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    pub(crate) fn condition(&self) -> Condition {
        *self.condition.borrow()
    }

    /// Notes that a request sent at `sent` was answered through the leader, just now.
    pub(crate) fn answered(&self, sent: Duration) {
        let mut kept = lock(&self.kept);
        // Over another connection, the answer may be one to another session.
        if kept.is_connected() {
            kept.lease.answered(self.now(), sent);
        }
        self.publish_lapses(kept);
        self.unwatching.answered(sent);
    }

    /// Whether what this session has asked for was created in it.
    ///
    /// # Errors
    ///
    /// [`ServerError::SessionOver`] if the owner is another session: the server has given this one
    /// up.
    pub(crate) fn is_owner(&self, owner: i64) -> Result<(), ServerError> {
        match owner == self.id.0 {
            true => Ok(()),
            false => Err(ServerError::SessionOver(SessionEnd::Expired)),
        }
    }

    /// Notes that an ephemeral znode created just now, asked for at `sent`, has this owner: which
    /// session the connection serves.
    ///
    /// # Errors
    ///
    /// [`ServerError::SessionOver`] if that is another session: the server has given this one up.
    pub(crate) fn created(&self, sent: Duration, owner: i64) -> Result<(), ServerError> {
        self.is_owner(owner)?;
        self.create_was_answered();
        let mut kept = lock(&self.kept);
        if kept.is_connected() {
            let now = self.now();
            kept.lease.proved(now);
            kept.lease.answered(now, sent);
        }
        self.publish_lapses(kept);
        self.unwatching.answered(sent);
        Ok(())
    }

    /// Notes that the server knows how to create.
    pub(crate) fn create_was_answered(&self) {
        self.creates.store(true, Ordering::Relaxed);
    }

    /// The connections that broke at the create of a container.
    pub(crate) fn containers(&self) -> &Arc<Breaks> {
        &self.containers
    }

    /// How its watches are taken off.
    pub(crate) fn unwatching(&self) -> &Unwatching {
        &self.unwatching
    }

    /// Whether a create was ever answered in this session.
    pub(crate) fn creates(&self) -> bool {
        self.creates.load(Ordering::Relaxed)
    }

    /// Goes on with the connection that stands now, if it is another than before.
    pub(crate) fn look_at_connection(&self, server: &dyn ServerSession) {
        let mut kept = lock(&self.kept);
        if !kept.is_connected() {
            kept.connection = Connection::of(server);
            if kept.is_connected() {
                kept.lease.connected_anew();
            }
        }
    }

    /// Whether what this session holds or waits for hangs on a connection that is not proven.
    pub(crate) fn must_be_proven(&self) -> bool {
        let mut kept = lock(&self.kept);
        // Where no create was ever answered, the proof might only break the connection.
        let can_be = self.creates() && kept.is_connected();
        !kept.lease.is_proven() && can_be && !lock(&self.own_paths).is_empty()
    }

    /// Waits for a connection that is known to serve this very session, or until the session must
    /// have expired if the connection serves another.
    pub(crate) async fn until_proven(&self) {
        let is_proven = || {
            let mut kept = lock(&self.kept);
            kept.is_connected() && kept.lease.is_proven()
        };
        let proven = async {
            while !is_proven() {
                tokio::time::sleep(self.probe_interval / 4).await;
            }
        };
        // An error means the latter.
        let _ = tokio::time::timeout(self.timeout * 2, proven).await;
    }

    /// Lists a znode of this session until the entry is dropped.
    pub(crate) fn own(self: &Arc<Self>, path: Arc<str>, guard: Option<Guard>) -> OwnPath {
        let none = Keepers { number: 0, guard };
        let mut paths = lock(&self.own_paths);
        paths.entry(path.clone()).or_insert(none).number += 1;
        drop(paths);
        OwnPath {
            live: self.clone(),
            path,
        }
    }

    /// The znodes of this session.
    pub(crate) fn own_paths(&self) -> Vec<OwnZnode> {
        let paths = lock(&self.own_paths);
        let znodes = paths.iter().map(|(path, keepers)| OwnZnode {
            path: path.clone(),
            guard: keepers.guard.clone(),
        });
        znodes.collect()
    }

    /// The guards of its znodes whose names others use.
    pub(crate) fn guards(&self) -> &Guards {
        &self.guards
    }

    /// Lists the znode of a hold, granted when the lease had lapsed `lapses` times. Its number.
    pub(crate) fn grant(&self, lapses: u64, node: OwnNode, fate: watch::Sender<Fate>) -> u64 {
        let mut granted = lock(&self.granted);
        granted.next += 1;
        let number = granted.next;
        let grantee = Grantee { lapses, node, fate };
        granted.holds.insert(number, grantee);
        number
    }

    /// Strikes a hold off the list: it is seen to.
    pub(crate) fn ungrant(&self, number: u64) {
        lock(&self.granted).holds.remove(&number);
    }

    /// The znodes of the holds that a lapse of the lease has cost, struck off the list.
    pub(crate) fn take_lost(&self) -> Vec<OwnNode> {
        let lapses = self.condition().lapses;
        let mut lost = Vec::new();
        lock(&self.granted).holds.retain(|_, grantee| {
            let is_lost = grantee.lapses != lapses;
            if is_lost {
                Fate::Lapsed.befall(&grantee.fate);
                lost.push(grantee.node.clone());
            }
            !is_lost
        });
        lost
    }

    /// Looks at the clock: how often the lease has lapsed, and whether it has now.
    pub(crate) fn look_at_lease(&self) -> (u64, bool) {
        self.publish_lapses(lock(&self.kept))
    }

    /// How often the lease has lapsed, if something can be granted under it now.
    pub(crate) fn may_grant(&self) -> Option<u64> {
        let may_grant = lock(&self.kept).lease.may_grant(self.now());
        let (lapses, lapsed) = self.look_at_lease();
        (may_grant && !lapsed).then_some(lapses)
    }

    /// Waits until the lease is such that something can be granted: no request if it is already.
    pub(crate) async fn until_lease(
        &self,
        path: &str,
        is_enough: fn(&Lease, Duration) -> bool,
    ) -> Result<(), ServerError> {
        let mut backoff = Backoff::up_to(self.probe_interval);
        while !is_enough(&lock(&self.kept).lease, self.now()) {
            let server = self.server()?;
            let sent = self.now();
            match server.sync(path).await {
                Ok(()) => self.answered(sent),
                Err(ServerError::OutcomeUnknown(_)) => {}
                Err(error) => return Err(error),
            }
            drop(server);
            backoff.wait().await;
        }
        Ok(())
    }

    /// How long the lease runs on; zero where it has lapsed.
    pub(crate) fn remaining(&self) -> Duration {
        let valid_until = lock(&self.kept).lease.valid_until();
        valid_until.saturating_sub(self.now())
    }

    /// How it stands with something that was granted when the lease had lapsed `lapses` times.
    pub(crate) fn standing(&self, lapses: u64) -> HoldState {
        let contact = self.condition().contact;
        let (lapses_now, _) = self.look_at_lease();
        match contact {
            Contact::Ended(end) => HoldState::Lost(LossReason::Session(end)),
            _ if lapses_now != lapses => HoldState::Lost(LossReason::LeaseElapsed),
            Contact::Suspended => HoldState::Suspended,
            Contact::Connected => HoldState::Held,
        }
    }

    fn publish_lapses(&self, mut kept: MutexGuard<'_, Kept>) -> (u64, bool) {
        let (lapses, lapsed) = kept.lease.look(self.now());
        drop(kept);
        self.condition.send_if_modified(|condition| {
            let news = lapses > condition.lapses;
            condition.lapses = condition.lapses.max(lapses);
            news
        });
        (lapses, lapsed)
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
        self.unwatching.end();
        lock(&self.server).take();
        // Each of them keeps the session.
        let granted = std::mem::take(&mut lock(&self.granted).holds);
        drop(granted);
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

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::scripted::{LEASE, Scripted, TIMEOUT};

    const SECOND: Duration = Duration::from_secs(1);

    fn valid_until(live: &LiveSession) -> Duration {
        live.now() + live.remaining()
    }

    /// Has the leader told of the session by two requests that are answered at once.
    async fn renew(live: &LiveSession) {
        for _ in 0..2 {
            sleep(3 * SECOND).await;
            live.answered(live.now());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sync_before_a_grant_counts_from_its_sending() {
        let (live, script) = Scripted::open(2 * SECOND);
        sleep(TIMEOUT).await;
        let renewed = live.until_lease("/", Lease::may_grant).await;
        renewed.expect("the server answers");
        assert!(script.has_sent(valid_until(&live) - LEASE));
    }

    #[tokio::test(start_paused = true)]
    async fn create_counts_from_its_sending() {
        let (live, _) = Scripted::open(SECOND);
        sleep(3 * SECOND).await;
        live.created(SECOND, 1).expect("the session's own");
        sleep(3 * SECOND).await;
        live.answered(live.now());
        assert_eq!(valid_until(&live), SECOND + LEASE);
    }

    #[tokio::test(start_paused = true)]
    async fn answer_over_a_connection_that_nobody_has_looked_at_counts_for_nothing() {
        let (live, script) = Scripted::open(SECOND);
        script.reconnect(2);
        renew(&live).await;
        assert_eq!(valid_until(&live), LEASE);
        live.look_at_connection(&*script);
        assert_eq!(valid_until(&live), LEASE);
    }

    #[tokio::test(start_paused = true)]
    async fn create_proves_no_connection_but_its_own() {
        let (live, script) = Scripted::open(SECOND);
        script.reconnect(1);
        live.look_at_connection(&*script);
        script.reconnect(2);
        live.created(live.now(), 1).expect("the session's own");
        assert_eq!(live.may_grant(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_granted_over_a_connection_that_is_not_proven() {
        let (live, script) = Scripted::open(SECOND);
        assert_eq!(live.may_grant(), Some(0));
        script.reconnect(1);
        live.look_at_connection(&*script);
        assert_eq!(live.may_grant(), None);
        live.created(live.now(), 1).expect("the session's own");
        assert_eq!(live.may_grant(), Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_granted_that_is_lost_before_the_lease_can_be_renewed() {
        let (live, _) = Scripted::open(SECOND);
        sleep(7 * SECOND).await;
        assert_eq!(live.may_grant(), None);
        assert_eq!(live.look_at_lease(), (0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_granted_if_the_process_stands_still_between_two_looks_at_the_clock() {
        let (live, script) = Scripted::open(SECOND);
        script.pause_between_looks(TIMEOUT);
        assert_eq!(live.may_grant(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn hold_is_lost_as_its_lease_ends_though_nobody_has_noticed() {
        let (live, _) = Scripted::open(SECOND);
        sleep(LEASE - Duration::from_millis(1)).await;
        assert_eq!(live.standing(0), HoldState::Held);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(live.standing(0), HoldState::Lost(LossReason::LeaseElapsed));
    }

    #[tokio::test(start_paused = true)]
    async fn hold_that_a_lapse_has_cost_stays_lost() {
        let (live, _) = Scripted::open(SECOND);
        sleep(LEASE).await;
        renew(&live).await;
        assert_eq!(live.may_grant(), Some(1));
        assert_eq!(live.standing(0), HoldState::Lost(LossReason::LeaseElapsed));
        assert_eq!(live.standing(1), HoldState::Held);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_has_broken_is_not_proven() {
        let (live, script) = Scripted::open(SECOND);
        assert!(live.until_proven().now_or_never().is_some());
        script.reconnect(1);
        assert!(live.until_proven().now_or_never().is_none());
    }
}
