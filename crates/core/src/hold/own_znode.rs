//! A znode of this process, from before its create to the answer to its deletion, and the registry
//! of all such znodes of a session.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use futures_util::future::{FutureExt, join};
use tokio::sync::OwnedSemaphorePermit;

use crate::contender::{Contender, Identity};
use crate::events::TARGET;
use crate::hold::abandoned_creates::{AbandonedCreate, AbandonedCreates};
use crate::hold::deletion::{DeleteOutcome, Deletions};
use crate::hold::ephemerals::Ephemerals;
use crate::hold::search::Searches;
use crate::hold_state::LossReason;
use crate::live::last_connection::LastConnection;
use crate::live::live_session::{LiveSession, SessionUse};
use crate::path::{NodePath, last_segment};
use crate::retry::{Backoff, retry};
use crate::server::ensemble::{CreateMode, Created, Pending, ServerSession, SessionId, Stat};
use crate::server::error::{Refusal, ServerError, SessionEnd, if_there};
use crate::sync::{Mutex, SharedWork, lock};

/// The znodes that a session owns, as far as this process knows them.
pub(crate) struct SessionZnodes {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) searches: Searches,
    pub(crate) abandoned: Arc<AbandonedCreates>,
    pub(crate) ephemerals: Ephemerals,
    deletions: Arc<Deletions>,
    registered: Mutex<Registered>,
}

/// The znodes that the session may own, by their numbers.
#[derive(Default)]
struct Registered {
    znodes: BTreeMap<u64, Kind>,
    last: u64,
    /// The end of the session, once the znodes stay registered when their values are dropped.
    frozen_by: Option<SessionEnd>,
}

/// True if this data and this metadata are those of the recipe's own znode.
pub(crate) type IsOwn = dyn Fn(&[u8], &Stat) -> bool + Send + Sync;

/// A znode that this process has created, or may have created. All clones share it.
#[derive(Clone)]
pub(crate) struct Znode(Arc<RegisteredZnode>);

/// A znode in the registry of its session.
struct RegisteredZnode {
    znodes: Arc<SessionZnodes>,
    number: u64,
    kind: Kind,
    /// The transaction that created the znode, if others create znodes of the same name.
    czxid: OnceLock<i64>,
    /// True if the deletion is marked as a release.
    marks_release: AtomicBool,
    /// False until the create is answered, and once the znode is known not to exist. A named znode has
    /// a flag of its own.
    may_exist: AtomicBool,
    /// To be called once the server has confirmed the deletion.
    on_deleted: OnceLock<OnDeleted>,
    /// The bytes by which the znode counts among those of the session.
    counted: AtomicUsize,
    /// A turn among the clones of a queue, which the hold keeps until the deletion is sent.
    turn: Mutex<Option<OwnedSemaphorePermit>>,
}

type OnDeleted = Box<dyn Fn() + Send + Sync>;

/// How a znode is named, and with that how it is deleted.
#[derive(Clone)]
pub(crate) enum Kind {
    /// The path. Nobody else creates a znode of this name.
    Numbered(Arc<str>),
    /// The directory and the identity. The number at the end of the name is not known yet.
    Unnumbered(NodePath, Identity),
    Named(Arc<Named>),
}

/// A znode whose whole name the recipe chooses. Other clients create znodes of the same name.
pub(crate) struct Named {
    path: Arc<str>,
    is_own: Box<IsOwn>,
    /// True from before the first create until the znode is known not to exist.
    may_exist: AtomicBool,
    /// True while the znode is its holder's.
    is_held: AtomicBool,
    /// The connection over which the znode was last created or found.
    pub(crate) seen_over: LastConnection,
    /// The one deletion that is under way: a second one could delete the next holder's znode.
    deleting: SharedWork<Result<DeleteOutcome, ServerError>>,
}

impl SessionZnodes {
    /// The znodes of a session at servers with this `jute.maxbuffer`.
    pub(crate) fn new(live: &Arc<LiveSession>, jute_maxbuffer: usize) -> Arc<SessionZnodes> {
        Arc::new(SessionZnodes {
            live: live.clone(),
            searches: Searches::default(),
            abandoned: Arc::default(),
            ephemerals: Ephemerals::new(live.chroot(), jute_maxbuffer),
            deletions: Arc::default(),
            registered: Mutex::default(),
        })
    }

    /// A znode of this path. Nobody else creates a znode of this name.
    pub(crate) fn numbered(self: &Arc<Self>, path: &str) -> Znode {
        self.add(Kind::Numbered(path.into()))
    }

    /// A contender's znode of this identity, whose create may be sent.
    pub(crate) fn unnumbered(self: &Arc<Self>, directory: &NodePath, identity: Identity) -> Znode {
        self.add(Kind::Unnumbered(directory.clone(), identity))
    }

    pub(crate) fn named(self: &Arc<Self>, path: &str, is_own: Box<IsOwn>) -> (Znode, Arc<Named>) {
        let named = Arc::new(Named {
            path: path.into(),
            is_own,
            may_exist: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            seen_over: LastConnection::default(),
            deleting: SharedWork::default(),
        });
        (self.add(Kind::Named(named.clone())), named)
    }

    fn add(self: &Arc<Self>, kind: Kind) -> Znode {
        let registered = &mut *lock(&self.registered);
        registered.last += 1;
        let number = registered.last;
        registered.znodes.insert(number, kind.clone());
        let may_exist = matches!(kind, Kind::Numbered(_));
        Znode(Arc::new(RegisteredZnode {
            znodes: self.clone(),
            number,
            kind,
            czxid: OnceLock::new(),
            marks_release: AtomicBool::new(false),
            may_exist: AtomicBool::new(may_exist),
            on_deleted: OnceLock::new(),
            counted: AtomicUsize::new(0),
            turn: Mutex::default(),
        }))
    }

    /// Keeps all znodes registered from now on, even if their values are dropped.
    ///
    /// The process then knows what it may have created, although the attempts of the session fail.
    /// From now on, recipes create no znode that they delete in their own way.
    pub(crate) fn freeze(&self, end: SessionEnd) {
        lock(&self.registered).frozen_by.get_or_insert(end);
    }

    /// Notes that this znode may exist from now on: a recipe is about to create it.
    ///
    /// # Errors
    ///
    /// [`ServerError::SessionOver`] if the session is over.
    pub(crate) fn before_create(&self, named: &Named) -> Result<(), ServerError> {
        let registered = lock(&self.registered);
        if let Some(end) = registered.frozen_by {
            return Err(ServerError::SessionOver(end));
        }
        named.may_exist.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The znodes that the session may own.
    pub(crate) fn registered(&self) -> Vec<Kind> {
        lock(&self.registered).znodes.values().cloned().collect()
    }
}

impl Named {
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn may_exist(&self) -> bool {
        self.may_exist.load(Ordering::Relaxed)
    }

    pub(crate) fn note_gone(&self) {
        self.may_exist.store(false, Ordering::Relaxed);
    }

    /// Reads the znode at the path. True if it is the recipe's own.
    ///
    /// Once a write is committed over this connection, the server has applied an earlier create or
    /// deletion over another connection, or will refuse it.
    pub(crate) async fn find(
        &self,
        server: &ServerSession,
    ) -> Result<Option<(Stat, bool)>, ServerError> {
        self.seen_over.note(server);
        server.commit_noop().await?;
        let found = if_there(server.get(&self.path).await)?;
        Ok(found.map(|(data, stat)| {
            let is_of_session = SessionId(stat.ephemeral_owner) == server.id();
            (stat, is_of_session && (self.is_own)(&data, &stat))
        }))
    }

    /// Deletes the znode, or waits for the deletion that is under way. Nothing is repeated.
    ///
    /// `is_held` is true if no other client can have a znode at the path.
    pub(crate) async fn delete(
        self: &Arc<Self>,
        server: &Arc<ServerSession>,
        is_held: bool,
    ) -> Result<DeleteOutcome, ServerError> {
        let begin = || {
            let (own, server) = (self.clone(), server.clone());
            let delete = async move {
                let is_own = is_held || matches!(own.find(&server).await?, Some((_, true)));
                let mut found = DeleteOutcome::Deleted;
                if is_own && if_there(server.delete(&own.path).await)?.is_none() {
                    found = DeleteOutcome::WasGone;
                }
                own.note_gone();
                Ok(found)
            };
            delete.boxed()
        };
        self.deleting.join(begin).await
    }
}

impl RegisteredZnode {
    fn uncount(&self) {
        let counted = self.counted.swap(0, Ordering::Relaxed);
        self.znodes.ephemerals.remove(counted);
    }
}

impl Drop for RegisteredZnode {
    fn drop(&mut self) {
        self.uncount();
        let mut registered = lock(&self.znodes.registered);
        if registered.frozen_by.is_none() {
            registered.znodes.remove(&self.number);
        }
    }
}

impl Znode {
    /// Counts the znode among those of the session, before a create at this path is sent.
    pub(crate) fn count(&self, path: &str, mode: CreateMode) -> Result<(), ServerError> {
        if self.0.counted.load(Ordering::Relaxed) == 0 {
            let ephemerals = &self.znodes().ephemerals;
            let bytes = ephemerals.bytes_of(path, mode);
            ephemerals.add(bytes)?;
            self.0.counted.store(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// As [`count`](Self::count), of a znode that replaces another one in one transaction.
    pub(crate) fn count_replacement(&self) {
        let ephemerals = &self.znodes().ephemerals;
        let bytes = ephemerals.bytes_of(self.path(), CreateMode::Ephemeral);
        ephemerals.add_replacement(bytes);
        self.0.counted.store(bytes, Ordering::Relaxed);
    }

    /// The same znode, now that its path is known.
    fn numbered(&self, path: &str) -> Znode {
        let numbered = self.znodes().numbered(path);
        let counted = self.0.counted.swap(0, Ordering::Relaxed);
        numbered.0.counted.store(counted, Ordering::Relaxed);
        numbered
    }

    /// True unless the znode is known not to exist.
    fn may_exist(&self) -> bool {
        match &self.0.kind {
            Kind::Named(named) => named.may_exist(),
            _ => self.0.may_exist.load(Ordering::Relaxed),
        }
    }

    /// Notes that the znode does not exist. Its owner then need not delete it.
    pub(crate) fn note_gone(&self) {
        self.note_absent();
        self.pass_turn();
    }

    fn note_absent(&self) {
        if let Kind::Named(named) = &self.0.kind {
            named.note_gone();
        }
        self.0.may_exist.store(false, Ordering::Relaxed);
        self.0.uncount();
    }

    /// Notes that the hold by this znode is lost. It wakes nobody.
    pub(crate) fn note_lost(&self, reason: LossReason) {
        self.set_held(false);
        if reason == LossReason::Deleted {
            self.note_absent();
        }
    }

    pub(crate) fn set_czxid(&self, czxid: i64) {
        self.0.czxid.get_or_init(|| czxid);
    }

    /// Calls this once the server has confirmed that the znode is deleted.
    pub(crate) fn once_deleted(&self, call: impl Fn() + Send + Sync + 'static) {
        self.0.on_deleted.get_or_init(|| Box::new(call));
    }

    /// Makes the deletion a marked release, if only this process can write to the znode.
    pub(crate) fn mark_on_release(&self) {
        let marks = self.is_closed_to_others();
        self.0.marks_release.store(marks, Ordering::Relaxed);
    }

    /// Of a named znode: notes whether the znode is its holder's.
    pub(crate) fn set_held(&self, is_held: bool) {
        if let Kind::Named(named) = &self.0.kind {
            named.is_held.store(is_held, Ordering::Relaxed);
        }
    }

    /// True if the recipe has chosen the znode's whole name, so that others create the same.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.0.kind, Kind::Named(_))
    }

    /// True if only this process can write to the znode, beside the super user.
    ///
    /// The waiters take a write for a release.
    pub(crate) fn is_closed_to_others(&self) -> bool {
        is_closed_to_others(self.path())
    }

    /// True if the znode found at the path is this one.
    pub(crate) fn is_still(&self, stat: &Stat) -> bool {
        self.0.czxid.get().is_none_or(|czxid| *czxid == stat.czxid)
    }

    /// The path of the znode, or of its directory if the name is not known yet.
    pub(crate) fn path(&self) -> &str {
        match &self.0.kind {
            Kind::Numbered(path) => path,
            Kind::Unnumbered(directory, _) => directory.as_str(),
            Kind::Named(named) => named.path(),
        }
    }

    /// The number of the znode among those of its session.
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    pub(crate) fn live(&self) -> &Arc<LiveSession> {
        &self.znodes().live
    }

    pub(crate) fn znodes(&self) -> &Arc<SessionZnodes> {
        &self.0.znodes
    }

    /// Keeps a turn among the clones of a queue until the deletion of the znode is sent.
    pub(crate) fn keep_turn(&self, turn: OwnedSemaphorePermit) {
        *lock(&self.0.turn) = Some(turn);
    }

    /// Gives the turn to the next task of the process: the deletion is sent, or the znode is gone.
    pub(crate) fn pass_turn(&self) {
        let turn = lock(&self.0.turn).take();
        // The next task is woken while the mutex is free.
        drop(turn);
    }

    /// Deletes the znode, and repeats the deletion until the server answers or the session ends.
    ///
    /// The turn passes on once the deletion is sent. The server handles the requests of a session in
    /// order, so the next contender of the process needs no answer to the deletion. If the deletion
    /// is refused or lost, that contender waits behind this znode like one of another process.
    pub(crate) async fn delete(&self) -> Result<DeleteOutcome, ServerError> {
        // The first future is polled first.
        let (found, ()) = join(self.until_deleted(), async { self.pass_turn() }).await;
        found
    }

    async fn until_deleted(&self) -> Result<DeleteOutcome, ServerError> {
        let znodes = self.znodes();
        let (live, deletions) = (&znodes.live, &znodes.deletions);
        let mut found = DeleteOutcome::Deleted;
        match &self.0.kind {
            Kind::Numbered(path) => {
                let marked = self.0.marks_release.load(Ordering::Relaxed);
                found = deletions.delete(live, path, marked).await?;
            }
            Kind::Unnumbered(directory, identity) => {
                // Sent after the create and in the same session, so the list shows the znode if it
                // was created.
                let nodes = znodes
                    .searches
                    .own_nodes(live, directory.as_str(), identity);
                for node in nodes.await? {
                    deletions.delete(live, &node.path.into(), false).await?;
                }
            }
            Kind::Named(named) => {
                let server = live.server()?;
                let delete = || {
                    // Servers that have lost the znode may have that of another holder at the path.
                    let is_held = named.is_held.swap(false, Ordering::Relaxed);
                    named.delete(&server, is_held && named.seen_over.is_next(&server))
                };
                found = retry(ServerError::may_pass, delete).await?;
            }
        }
        self.note_gone();
        if let Some(call) = self.0.on_deleted.get() {
            call();
        }
        Ok(found)
    }

    /// Deletes the znode in the background.
    ///
    /// While the server refuses the deletion, it is repeated with a growing pause.
    ///
    /// `session_use` keeps the session open until the deletion succeeds or is refused once. After a
    /// refusal the session may close, and its end deletes the znode.
    ///
    /// The deletion is sent before all requests that the caller sends later, unless the session has
    /// [too many](Deletions) without an answer. The caller must hold no lock.
    pub(crate) fn delete_in_background(&self, session_use: impl Send + 'static) {
        let (znode, mut session_use) = (self.clone(), Some(session_use));
        let mut backoff = Backoff::up_to(self.live().timeout);
        self.live().begin_in_background(async move {
            while let Err(ServerError::Refused(refusal)) = znode.delete().await {
                if session_use.take().is_some() {
                    let path = znode.path();
                    tracing::warn!(
                        target: TARGET, path, %refusal,
                        "the server refuses a deletion, which is repeated"
                    );
                }
                backoff.wait().await;
            }
        });
        // If the session has ended, nothing is sent.
        self.pass_turn();
    }
}

/// The owner of a znode. If it is dropped, the znode is deleted in the background.
pub(crate) struct ZnodeOwner {
    pub(crate) znode: Znode,
    /// Keeps the session open until the znode is deleted.
    pub(crate) session_use: Arc<SessionUse>,
    /// The reply to the create, until it comes. The mutex lets several threads have a view of a hold.
    reply: Mutex<Option<Pending<Created>>>,
}

impl ZnodeOwner {
    pub(crate) fn new(session_use: &Arc<SessionUse>, znode: Znode) -> ZnodeOwner {
        ZnodeOwner {
            znode,
            session_use: session_use.clone(),
            reply: Mutex::default(),
        }
    }

    /// Waits for the reply to the create of the znode, which was just sent.
    ///
    /// # Cancel safety
    ///
    /// If the owner is dropped before the reply has come, a task of the session waits for the reply,
    /// and deletes the znode.
    pub(crate) async fn created(
        &mut self,
        reply: Pending<Created>,
    ) -> Result<Created, ServerError> {
        let waits = self.reply.get_mut().unwrap_or_else(PoisonError::into_inner);
        let outcome = waits.insert(reply).await;
        *waits = None;
        let may_exist = outcome.as_ref().map_or_else(may_have_created, |_| true);
        self.znode.0.may_exist.store(may_exist, Ordering::Relaxed);
        outcome
    }

    /// Notes the path of the znode, which has been created.
    pub(crate) fn set_path(&mut self, path: &str) {
        self.znode = self.znode.numbered(path);
    }

    /// Deletes the znode of a create without a reply, in the background.
    fn delete_once_answered(&self, reply: Pending<Created>) {
        let unanswered = AbandonedCreate::new(&self.znode.znodes().abandoned);
        let mut owner = ZnodeOwner::new(&self.session_use, self.znode.clone());
        self.znode.0.may_exist.store(true, Ordering::Relaxed);
        self.znode.live().in_background(async move {
            match reply.await {
                Ok(created) => owner.set_path(&created.path),
                Err(error) if !may_have_created(&error) => owner.znode.note_gone(),
                // The name is not known, so the deletion looks for the znode.
                Err(_) => {}
            }
            // Attempts that wait for this reply list the queue later. If the outcome is known, they
            // list it without the znode.
            drop(owner);
            drop(unanswered);
        });
    }
}

impl Drop for ZnodeOwner {
    fn drop(&mut self) {
        let reply = lock(&self.reply).take();
        match reply {
            Some(reply) => self.delete_once_answered(reply),
            None if self.znode.may_exist() => {
                self.znode.delete_in_background(self.session_use.clone());
            }
            None => {}
        }
    }
}

/// True if the znode may exist after a create with this error.
///
/// At the end of the count all znodes of one identity have the same name.
pub(crate) fn may_have_created(error: &ServerError) -> bool {
    matches!(error, ServerError::OutcomeUnknown(_)) || error.is(Refusal::NodeExists)
}

/// True if this names a contender's znode that only its own process can write to.
pub(crate) fn is_closed_to_others(path: &str) -> bool {
    let contender = Contender::parse(last_segment(path), |_| true);
    contender.is_some_and(|contender| contender.is_closed_to_others())
}

#[cfg(test)]
#[path = "../../tests/unit/own_znode.rs"]
mod tests;
