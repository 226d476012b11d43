//! A znode of this process, from before its create to the answer to its deletion, and the registry
//! of all such znodes of a session.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::mem::take;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use tokio::sync::OwnedSemaphorePermit;

use crate::contender::{Contender, Identity};
use crate::events::TARGET;
use crate::hold::abandoned_creates::{AbandonedCreate, AbandonedCreates};
use crate::hold::deletion::{DeleteOutcome, Deletions};
use crate::hold::ephemerals::Ephemerals;
use crate::hold::handoff::{Alone, Handoff};
use crate::hold::named::Named;
use crate::hold::search::Searches;
use crate::hold_state::LossReason;
use crate::live::live_session::{LiveSession, SessionUse};
use crate::path::{NodePath, last_segment};
use crate::retry::Backoff;
use crate::server::ensemble::{CreateMode, Created, Pending, Stat};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::sync::{Mutex, lock};

/// The znodes that a session owns, as far as this process knows them.
pub(crate) struct SessionZnodes {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) handoff: Handoff,
    pub(crate) searches: Searches,
    pub(crate) abandoned: Arc<AbandonedCreates>,
    pub(crate) ephemerals: Ephemerals,
    deletions: Arc<Deletions>,
    registered: Mutex<Registered>,
}

/// The znodes that the session may own, by their numbers.
#[derive(Default)]
struct Registered {
    znodes: BTreeMap<u64, Arc<RegisteredZnode>>,
    last: u64,
    /// The end of the session, once the znodes stay registered.
    frozen_by: Option<SessionEnd>,
}

/// A znode that this process has created, or may have created. All clones share it.
#[derive(Clone)]
pub(crate) struct Znode {
    registered: Arc<RegisteredZnode>,
    znodes: Arc<SessionZnodes>,
}

/// A znode in the registry of its session.
struct RegisteredZnode {
    number: u64,
    kind: Kind,
    /// False until a contender's create is answered, and once the znode is known not to exist. A
    /// named znode has a flag of its own.
    may_exist: AtomicBool,
    /// True if the deletion is marked as a release.
    marks_release: AtomicBool,
    /// The contender, if it held while its znode was the only child of the directory.
    alone: OnceLock<Alone>,
    /// The bytes by which the znode counts among those of the session.
    counted: AtomicUsize,
    /// A turn among the clones of a queue, which the hold keeps until the deletion is sent.
    turn: Mutex<Option<OwnedSemaphorePermit>>,
}

/// How a znode is named, and with that how it is deleted.
#[derive(Clone)]
pub(crate) enum Kind {
    Contender(ContenderName),
    Named(Arc<Named>),
}

impl Kind {
    /// The path, if it is known, and nobody else creates a znode there.
    pub(crate) fn unique_path(&self) -> Option<&str> {
        match self {
            Kind::Contender(name) => name.path.get().map(String::as_str),
            Kind::Named(_) => None,
        }
    }
}

/// The name of a contender's znode. Nobody else creates a znode of this name.
#[derive(Clone)]
pub(crate) struct ContenderName {
    pub(crate) directory: NodePath,
    pub(crate) identity: Identity,
    /// The path, once the number at the end of the name is known.
    pub(crate) path: OnceLock<String>,
}

impl ContenderName {
    /// The name of a znode whose create may be sent.
    pub(crate) fn new(directory: &NodePath, identity: Identity) -> ContenderName {
        ContenderName {
            directory: directory.clone(),
            identity,
            path: OnceLock::new(),
        }
    }

    /// The name of a znode that may exist at this path in the directory.
    pub(crate) fn known(directory: &NodePath, identity: Identity, path: String) -> ContenderName {
        ContenderName {
            path: OnceLock::from(path),
            ..ContenderName::new(directory, identity)
        }
    }
}

impl SessionZnodes {
    /// The znodes of a session at servers with this `jute.maxbuffer`.
    pub(crate) fn new(live: &Arc<LiveSession>, jute_maxbuffer: usize) -> Arc<SessionZnodes> {
        Arc::new(SessionZnodes {
            live: live.clone(),
            handoff: Handoff::default(),
            searches: Searches::default(),
            abandoned: Arc::default(),
            ephemerals: Ephemerals::new(live.chroot(), jute_maxbuffer),
            deletions: Arc::default(),
            registered: Mutex::default(),
        })
    }

    pub(crate) fn contender(self: &Arc<Self>, name: ContenderName) -> Znode {
        self.add(Kind::Contender(name))
    }

    pub(crate) fn named(self: &Arc<Self>, named: &Arc<Named>) -> Znode {
        self.add(Kind::Named(named.clone()))
    }

    fn add(self: &Arc<Self>, kind: Kind) -> Znode {
        let all = &mut *lock(&self.registered);
        all.last += 1;
        let registered = Arc::new(RegisteredZnode {
            number: all.last,
            may_exist: AtomicBool::new(kind.unique_path().is_some()),
            kind,
            marks_release: AtomicBool::new(false),
            alone: OnceLock::new(),
            counted: AtomicUsize::new(0),
            turn: Mutex::default(),
        });
        all.znodes.insert(all.last, registered.clone());
        let znodes = self.clone();
        Znode { registered, znodes }
    }

    /// Ends the registry with its session.
    ///
    /// If this process closes the session, the znodes stay registered from now on. The process then
    /// knows what it may have created, although the attempts of the session fail. From now on,
    /// recipes create no znode that they delete in their own way.
    pub(crate) fn end(&self, end: SessionEnd) {
        let mut registered = lock(&self.registered);
        if end.is_closed_here() {
            registered.frozen_by.get_or_insert(end);
        } else if registered.frozen_by.is_none() {
            // The server deletes the znodes. They are dropped while the mutex is free.
            let _deleted = take(&mut registered.znodes);
            drop(registered);
        }
    }

    /// The znodes that the session may own.
    pub(crate) fn registered(&self) -> Vec<Kind> {
        let registered = lock(&self.registered);
        registered
            .znodes
            .values()
            .map(|it| it.kind.clone())
            .collect()
    }
}

impl Znode {
    /// Notes that this named znode may exist from now on: a recipe is about to create it.
    ///
    /// # Errors
    ///
    /// [`ServerError::SessionOver`] if the session is over.
    pub(crate) fn before_create(&self, named: &Named) -> Result<(), ServerError> {
        let mut all = lock(&self.znodes.registered);
        if let Some(end) = all.frozen_by {
            return Err(ServerError::SessionOver(end));
        }
        all.znodes.insert(self.number(), self.registered.clone());
        named.set_may_exist(true);
        Ok(())
    }

    /// Counts the znode among those of the session, before a create at this path is sent.
    pub(crate) fn count(&self, path: &str, mode: CreateMode) -> Result<(), ServerError> {
        if self.registered.counted.load(Ordering::Relaxed) == 0 {
            let ephemerals = &self.znodes.ephemerals;
            let bytes = ephemerals.bytes_of(path, mode);
            ephemerals.add(bytes)?;
            self.registered.counted.store(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// As [`count`](Self::count), of a znode that replaces another one in one transaction.
    pub(crate) fn count_replacement(&self) {
        let ephemerals = &self.znodes.ephemerals;
        let bytes = ephemerals.bytes_of(self.path(), CreateMode::Ephemeral);
        ephemerals.add_replacement(bytes);
        self.registered.counted.store(bytes, Ordering::Relaxed);
    }

    /// Notes the answer to the create of a contender's znode.
    fn note_created(&self, created: Result<&Created, &ServerError>) {
        let may_exist = created.map_or_else(may_have_created, |_| true);
        self.registered
            .may_exist
            .store(may_exist, Ordering::Relaxed);
    }

    /// Notes the path of a contender's znode, which has been created.
    pub(crate) fn set_path(&self, path: String) {
        if let Kind::Contender(name) = &self.registered.kind {
            name.path.get_or_init(|| path);
        }
    }

    /// True unless the znode is known not to exist.
    fn may_exist(&self) -> bool {
        match &self.registered.kind {
            Kind::Named(named) => named.may_exist(),
            Kind::Contender(_) => self.registered.may_exist.load(Ordering::Relaxed),
        }
    }

    /// Notes that the znode does not exist. Its owner then need not delete it. This wakes nobody.
    pub(crate) fn note_gone(&self) {
        if let Kind::Named(named) = &self.registered.kind {
            named.set_may_exist(false);
        }
        self.registered.may_exist.store(false, Ordering::Relaxed);
        let counted = self.registered.counted.swap(0, Ordering::Relaxed);
        self.znodes.ephemerals.remove(counted);
        let mut all = lock(&self.znodes.registered);
        if all.frozen_by.is_none() {
            all.znodes.remove(&self.number());
        }
    }

    /// Notes that the hold by this znode is lost. It wakes nobody.
    pub(crate) fn note_lost(&self, reason: LossReason) {
        self.set_held(false);
        if reason == LossReason::Deleted {
            self.note_gone();
        }
    }

    /// Of a named znode: notes whether the znode is its holder's.
    pub(crate) fn set_held(&self, is_held: bool) {
        if let Kind::Named(named) = &self.registered.kind {
            named.set_held(is_held);
        }
    }

    /// Makes the deletion a marked release, if only this process can write to the znode.
    pub(crate) fn mark_on_release(&self) {
        let marks = self.is_closed_to_others();
        self.registered
            .marks_release
            .store(marks, Ordering::Relaxed);
    }

    /// Notes that the contender holds while its znode is the only child of the directory.
    pub(crate) fn note_alone(&self, alone: Alone) {
        self.registered.alone.get_or_init(|| alone);
    }

    /// True if the recipe has chosen the znode's whole name, so that others create the same.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.registered.kind, Kind::Named(_))
    }

    /// True if only this process can write to the znode, beside the super user.
    ///
    /// The waiters take a write for a release.
    pub(crate) fn is_closed_to_others(&self) -> bool {
        is_closed_to_others(self.path())
    }

    /// True if the znode found at the path is this one.
    pub(crate) fn is_still(&self, stat: &Stat) -> bool {
        match &self.registered.kind {
            Kind::Named(named) => named.is_still(stat),
            Kind::Contender(_) => true,
        }
    }

    /// The path of the znode, or of its directory if the name is not known yet.
    pub(crate) fn path(&self) -> &str {
        match &self.registered.kind {
            Kind::Contender(name) => {
                let path = name.path.get();
                path.map_or(name.directory.as_str(), String::as_str)
            }
            Kind::Named(named) => &named.path,
        }
    }

    /// The directory of a contender's znode.
    pub(crate) fn directory(&self) -> Option<&NodePath> {
        match &self.registered.kind {
            Kind::Contender(name) => Some(&name.directory),
            Kind::Named(_) => None,
        }
    }

    /// The number of the znode among those of its session.
    pub(crate) fn number(&self) -> u64 {
        self.registered.number
    }

    pub(crate) fn live(&self) -> &Arc<LiveSession> {
        &self.znodes.live
    }

    pub(crate) fn znodes(&self) -> &Arc<SessionZnodes> {
        &self.znodes
    }

    /// Keeps a turn among the clones of a queue until the deletion of the znode is sent.
    pub(crate) fn keep_turn(&self, turn: OwnedSemaphorePermit) {
        *lock(&self.registered.turn) = Some(turn);
    }

    /// Gives the turn to the next task of the process: the deletion is sent, or the znode is gone.
    pub(crate) fn pass_turn(&self) {
        let turn = lock(&self.registered.turn).take();
        // The next task is woken while the mutex is free.
        drop(turn);
    }

    /// Deletes the znode, and repeats the deletion until the server answers or the session ends.
    ///
    /// The turn passes on once the deletion is sent, or waits to be sent [with others](Deletions). The
    /// server handles the requests of a session in order, so the next contender of the process needs
    /// no answer to the deletion. If the deletion is sent later, refused or lost, that contender waits
    /// behind this znode like one of another process.
    pub(crate) async fn delete(&self) -> Result<DeleteOutcome, ServerError> {
        let (live, deletions) = (self.live(), &self.znodes.deletions);
        let deletion = async {
            match &self.registered.kind {
                Kind::Contender(name) => match name.path.get() {
                    Some(path) => {
                        let marked = self.registered.marks_release.load(Ordering::Relaxed);
                        deletions.delete(live, path, marked).await
                    }
                    None => self.delete_found(name).await,
                },
                Kind::Named(named) => named.delete_until_answered(&live.server()?).await,
            }
        };
        let mut deletion = pin!(deletion);
        let deleted = poll_fn(|context| {
            let deleted = deletion.as_mut().poll(context);
            self.pass_turn();
            deleted
        });
        let outcome = deleted.await?;
        self.note_gone();
        if let (Some(directory), Some(alone)) = (self.directory(), self.registered.alone.get()) {
            self.znodes.handoff.note_alone(directory, *alone);
        }
        Ok(outcome)
    }

    /// Looks for a contender's znode whose number is not known, and deletes it.
    ///
    /// The list is sent after the create and in the same session, so it shows the znode if it was
    /// created.
    async fn delete_found(&self, name: &ContenderName) -> Result<DeleteOutcome, ServerError> {
        let (live, znodes) = (self.live(), &self.znodes);
        let directory = name.directory.as_str();
        let nodes = znodes.searches.own_nodes(live, directory, &name.identity);
        for node in nodes.await? {
            znodes.deletions.delete(live, &node.path, false).await?;
        }
        Ok(DeleteOutcome::Deleted)
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
        self.znode.note_created(outcome.as_ref());
        outcome
    }

    /// Deletes the znode of a create without a reply, in the background.
    fn delete_once_answered(&self, reply: Pending<Created>) {
        let unanswered = AbandonedCreate::new(&self.znode.znodes.abandoned);
        let owner = ZnodeOwner::new(&self.session_use, self.znode.clone());
        owner
            .znode
            .registered
            .may_exist
            .store(true, Ordering::Relaxed);
        self.znode.live().in_background(async move {
            let outcome = reply.await;
            owner.znode.note_created(outcome.as_ref());
            // If the name is not known, the deletion looks for the znode.
            if let Ok(created) = outcome {
                owner.znode.set_path(created.path);
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
            None => self.znode.note_gone(),
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
