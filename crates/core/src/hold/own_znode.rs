//! A znode of this process, from before its create to the answer to its deletion, and the registry
//! of all such znodes of a session.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::poll_fn;
use std::mem::{replace, take};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::task::Poll;

use tokio::sync::OwnedSemaphorePermit;

use crate::contender::{Contender, Identity};
use crate::error::Error;
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
use crate::retry::{Backoff, retry};
use crate::server::ensemble::{Acl, CreateMode, Created, Pending, ServerSession, Stat};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::sync::{Mutex, lock, or_pending};

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

/// The znodes that may exist.
#[derive(Default)]
struct Registered {
    /// The znodes by their numbers, each with the bytes by which it counts among the ephemerals.
    znodes: BTreeMap<u64, (Arc<ZnodeState>, usize)>,
    last: u64,
    /// The end of the session. From then on, no znode is created.
    ended_by: Option<SessionEnd>,
}

/// A znode that this process creates. All clones share its state.
///
/// The session has it in its registry from before each create until it is known not to exist.
#[derive(Clone)]
pub(crate) struct Znode {
    state: Arc<ZnodeState>,
    znodes: Arc<SessionZnodes>,
}

struct ZnodeState {
    number: u64,
    kind: Kind,
    /// True if the deletion is marked as a release.
    marks_release: AtomicBool,
    /// The contender, if it held while its znode was the only child of the directory.
    alone: OnceLock<Alone>,
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
    pub(crate) fn at(directory: &NodePath, identity: Identity, path: String) -> ContenderName {
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

    /// A znode of this name. If its path is known, it may exist.
    pub(crate) fn contender(self: &Arc<Self>, name: ContenderName) -> Znode {
        self.add(Kind::Contender(name))
    }

    pub(crate) fn named(self: &Arc<Self>, named: Arc<Named>) -> Znode {
        self.add(Kind::Named(named))
    }

    fn add(self: &Arc<Self>, kind: Kind) -> Znode {
        let all = &mut *lock(&self.registered);
        all.last += 1;
        let state = Arc::new(ZnodeState {
            number: all.last,
            kind,
            marks_release: AtomicBool::new(false),
            alone: OnceLock::new(),
            turn: Mutex::default(),
        });
        if state.kind.unique_path().is_some() {
            all.znodes.insert(all.last, (state.clone(), 0));
        }
        let znodes = self.clone();
        Znode { state, znodes }
    }

    /// Ends the registry with its session.
    ///
    /// If this process closes the session, the znodes stay registered. The process then knows what
    /// it may have created, although the attempts of the session fail.
    pub(crate) fn end(&self, end: SessionEnd) {
        let mut registered = lock(&self.registered);
        if registered.ended_by.is_some() {
            return;
        }
        registered.ended_by = Some(end);
        if !end.is_closed_here() {
            // The server deletes the znodes. They are dropped while the mutex is free.
            let _deleted = take(&mut registered.znodes);
            drop(registered);
        }
    }

    /// The znodes that the session may own.
    pub(crate) fn registered(&self) -> Vec<Kind> {
        let registered = lock(&self.registered);
        let kinds = registered.znodes.values().map(|(it, _)| it.kind.clone());
        kinds.collect()
    }
}

impl Znode {
    /// Registers the znode, and counts it among those of the session, before a create is sent. True if
    /// it was registered, so that it may exist.
    ///
    /// # Errors
    ///
    /// [`ServerError::SessionOver`] if the session is over. A refusal if the session has too many
    /// ephemeral znodes.
    fn before_create(&self, path: &str) -> Result<bool, ServerError> {
        let (all, ephemerals) = (&mut *lock(&self.znodes.registered), &self.znodes.ephemerals);
        if let Some(end) = all.ended_by {
            return Err(ServerError::SessionOver(end));
        }
        let Entry::Vacant(vacant) = all.znodes.entry(self.number()) else {
            return Ok(true);
        };
        let bytes = ephemerals.bytes_of(path, self.mode());
        ephemerals.add(bytes)?;
        vacant.insert((self.state.clone(), bytes));
        Ok(false)
    }

    /// Counts a znode that replaces another one in one transaction.
    pub(crate) fn count_replacement(&self) {
        let ephemerals = &self.znodes.ephemerals;
        let bytes = ephemerals.bytes_of(self.path(), CreateMode::Ephemeral);
        ephemerals.add_replacement(bytes);
        let znodes = &mut lock(&self.znodes.registered).znodes;
        if let Some((_, counted)) = znodes.get_mut(&self.number()) {
            *counted += bytes;
        }
    }

    /// Notes the path of a contender's znode, which has been created.
    fn set_path(&self, path: String) {
        if let Kind::Contender(name) = &self.state.kind {
            name.path.get_or_init(|| path);
        }
    }

    /// True unless the znode is known not to exist.
    fn may_exist(&self) -> bool {
        let registered = lock(&self.znodes.registered);
        registered.znodes.contains_key(&self.number())
    }

    /// Notes that the znode does not exist. Its owner then need not delete it. This wakes nobody.
    pub(crate) fn note_gone(&self) {
        let gone = lock(&self.znodes.registered).znodes.remove(&self.number());
        let counted = gone.map_or(0, |(_, bytes)| bytes);
        self.znodes.ephemerals.remove(counted);
    }

    /// Notes that the hold by this znode is lost. It wakes nobody.
    pub(crate) fn note_lost(&self, reason: LossReason) {
        self.end_hold();
        if reason == LossReason::Deleted {
            self.note_gone();
        }
    }

    /// Of a named znode: notes that the znode may be another holder's.
    pub(crate) fn end_hold(&self) {
        if let Kind::Named(named) = &self.state.kind {
            named.end_hold();
        }
    }

    /// Makes the deletion a marked release, if only this process can write to the znode.
    pub(crate) fn mark_on_release(&self) {
        let marks = self.is_closed_to_others();
        self.state.marks_release.store(marks, Ordering::Relaxed);
    }

    /// Notes that the contender holds while its znode is the only child of the directory.
    pub(crate) fn note_alone(&self, alone: Alone) {
        self.state.alone.get_or_init(|| alone);
    }

    fn mode(&self) -> CreateMode {
        match self.state.kind {
            Kind::Contender(_) => CreateMode::EphemeralSequential,
            Kind::Named(_) => CreateMode::Ephemeral,
        }
    }

    /// True if the recipe has chosen the znode's whole name, so that others create the same.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.state.kind, Kind::Named(_))
    }

    /// True if only this process can write to the znode, beside the super user.
    ///
    /// The waiters take a write for a release.
    pub(crate) fn is_closed_to_others(&self) -> bool {
        is_closed_to_others(self.path())
    }

    /// True if nobody else creates a znode of this name.
    pub(crate) fn has_unique_name(&self) -> bool {
        matches!(self.state.kind, Kind::Contender(_))
    }

    /// True if the znode found at the path is this one.
    ///
    /// Servers that have come back with an older backup give the numbers of transactions out again.
    pub(crate) fn is_still(&self, stat: &Stat) -> bool {
        match &self.state.kind {
            Kind::Named(named) => stat.ephemeral_owner == self.live().id.0 && named.is_still(stat),
            Kind::Contender(_) => true,
        }
    }

    /// The path of the znode, or of its directory if the name is not known yet.
    pub(crate) fn path(&self) -> &str {
        match &self.state.kind {
            Kind::Contender(name) => {
                let path = name.path.get();
                path.map_or(name.directory.as_str(), String::as_str)
            }
            Kind::Named(named) => &named.path,
        }
    }

    /// The directory of a contender's znode.
    pub(crate) fn directory(&self) -> Option<&NodePath> {
        match &self.state.kind {
            Kind::Contender(name) => Some(&name.directory),
            Kind::Named(_) => None,
        }
    }

    /// The number of the znode among those of its session.
    pub(crate) fn number(&self) -> u64 {
        self.state.number
    }

    pub(crate) fn live(&self) -> &Arc<LiveSession> {
        &self.znodes.live
    }

    pub(crate) fn znodes(&self) -> &Arc<SessionZnodes> {
        &self.znodes
    }

    /// Keeps a turn among the clones of a queue until the deletion of the znode is sent.
    ///
    /// The caller passes the turn on if the hold by the znode is lost already.
    pub(crate) fn keep_turn(&self, turn: OwnedSemaphorePermit) {
        *lock(&self.state.turn) = Some(turn);
    }

    /// Gives the turn to the next task of the process: the deletion is sent, or the znode is gone.
    pub(crate) fn pass_turn(&self) {
        let turn = lock(&self.state.turn).take();
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
            match &self.state.kind {
                Kind::Contender(name) => match name.path.get() {
                    Some(path) => {
                        let marked = self.state.marks_release.load(Ordering::Relaxed);
                        deletions.delete(live, path, marked).await
                    }
                    None => self.delete_found(name).await,
                },
                Kind::Named(named) => named.delete_until_answered(&live.server()?).await,
            }
        };
        let mut deletion = pin!(deletion);
        let sent = poll_fn(|context| Poll::Ready(deletion.as_mut().poll(context))).await;
        self.pass_turn();
        let outcome = match sent {
            Poll::Ready(deleted) => deleted?,
            Poll::Pending => deletion.await?,
        };
        self.note_gone();
        if let (Some(directory), Some(alone)) = (self.directory(), self.state.alone.get()) {
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
        for (path, _) in nodes.await? {
            znodes.deletions.delete(live, &path, false).await?;
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
    /// True if a create got no reply, or a server refused it because of a znode of the same name.
    is_in_doubt: bool,
    /// True once it was given up. A drop then does nothing.
    is_given_up: bool,
}

/// What the create of a znode has done.
#[derive(Debug)]
pub(crate) enum CreateOutcome {
    Created {
        stat: Stat,
        /// The connection that carried the create and its reply. `None` if a look has found it.
        connection: Option<u64>,
    },
    /// The create was not applied, and can be repeated.
    NotCreated,
    /// The path of a [`Named`] znode has another contender's znode.
    Taken,
    MissingDirectory,
}

impl ZnodeOwner {
    pub(crate) fn new(session_use: &Arc<SessionUse>, znode: Znode) -> ZnodeOwner {
        ZnodeOwner {
            znode,
            session_use: session_use.clone(),
            reply: Mutex::default(),
            is_in_doubt: false,
            is_given_up: false,
        }
    }

    /// Creates the znode at this path. If no reply comes, looks for it.
    ///
    /// `behind` sends the requests that the server is to answer after the create, and returns their
    /// replies. After a look it sends them again, because the first ones may be older than the
    /// znode.
    ///
    /// # Lost replies
    ///
    /// From before the create is sent, the session knows that the znode may exist. Only the server
    /// can say that it does not: by a refusal, if each earlier create has a reply, or by the reply
    /// to the deletion. Until then a drop of the owner deletes the znode:
    ///
    /// | when the owner is dropped | the deletion |
    /// |---|---|
    /// | the reply has named the znode, or a look has found it | deletes that path |
    /// | the reply is outstanding | waits for the reply |
    /// | a create has got no reply, and no look has found its znode | looks for all znodes of the name |
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] and [`Error::SessionOver`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the znode may exist. The next call then looks for it if the server
    /// refuses a second one.
    pub(crate) fn create<'a, R>(
        &'a mut self,
        server: &ServerSession,
        path: impl Fn() -> String + 'a,
        data: &[u8],
        acl: Cow<'_, [Acl]>,
        behind: impl Fn() -> R + 'a,
    ) -> impl Future<Output = Result<(CreateOutcome, R), Error>> {
        let sent = self.send(server, path(), data, acl, &behind);
        async move {
            let answer = or_pending(self.reply().as_mut()).await;
            *self.reply() = None;
            let outcome = match self.note_reply(answer) {
                Ok(created) => Some(created),
                Err(error) => self.outcome_of(&path, error)?,
            };
            if let Some(outcome) = outcome {
                return Ok((outcome, sent));
            }
            // Boxed: an attempt would keep room for it while it waits.
            let found = Box::pin(self.find()).await?;
            let sent = match found {
                CreateOutcome::Created { .. } => behind(),
                _ => sent,
            };
            Ok((found, sent))
        }
    }

    fn reply(&mut self) -> &mut Option<Pending<Created>> {
        let reply = self.reply.get_mut();
        reply.unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the create, and what the server is to answer after it.
    ///
    /// If the create may not be sent, its reply says why.
    fn send<R>(
        &mut self,
        server: &ServerSession,
        path: String,
        data: &[u8],
        acl: Cow<'_, [Acl]>,
        behind: impl Fn() -> R,
    ) -> R {
        if let Kind::Named(named) = &self.znode.state.kind {
            named.note_connection(server);
        }
        let reply = match self.znode.before_create(&path) {
            Ok(may_exist) => {
                // An earlier call may have created it, although its future was dropped.
                self.is_in_doubt |= may_exist;
                server.create(path, data, self.znode.mode(), acl)
            }
            Err(error) => Pending::known(Err(error)),
        };
        let sent = behind();
        *self.reply() = Some(reply);
        sent
    }

    /// The outcome of a create that a server has not confirmed. `None` if it is unknown.
    fn outcome_of(
        &self,
        path: impl Fn() -> String,
        error: ServerError,
    ) -> Result<Option<CreateOutcome>, Error> {
        match error {
            error if error.is(Refusal::NoNode) => Ok(Some(CreateOutcome::MissingDirectory)),
            error if error.is_unknown() || self.is_in_doubt && error.is(Refusal::NodeExists) => {
                tracing::debug!(
                    target: TARGET, path = path(), %error, "looking for the znode of an unknown create"
                );
                Ok(None)
            }
            error if error.is(Refusal::NodeExists) => Ok(Some(CreateOutcome::Taken)),
            error => Err(Error::at_create(&path(), self.znode.live().id, error)),
        }
    }

    /// Notes what the reply to a create says of the znode.
    fn note_reply(
        &mut self,
        reply: Result<Created, ServerError>,
    ) -> Result<CreateOutcome, ServerError> {
        match reply {
            Ok(created) => {
                self.is_in_doubt = false;
                self.znode.set_path(created.path);
                let (stat, connection) = (created.stat, created.connection);
                Ok(CreateOutcome::Created { stat, connection })
            }
            Err(error) => {
                // At the end of the count all znodes of one identity have the same name.
                let is_own_name = error.is(Refusal::NodeExists) && !self.znode.is_named();
                // A session that is over here may be open at the server, and the create applied.
                let is_over = matches!(error, ServerError::SessionOver(_));
                self.is_in_doubt |= error.is_unknown() || is_own_name || is_over;
                if !self.is_in_doubt {
                    self.znode.note_gone();
                }
                Err(error)
            }
        }
    }

    /// Looks for the znode until an answer comes.
    ///
    /// If the znode is not there after a [commit](ServerSession::commit_noop), no create that was
    /// sent before will be applied.
    pub(crate) async fn find(&mut self) -> Result<CreateOutcome, Error> {
        let found = match &self.znode.state.kind {
            Kind::Contender(name) => self.find_contender(name).await,
            Kind::Named(named) => self.find_named(named).await,
        };
        let failed = |error| Error::at(self.znode.path(), self.znode.live().id, error);
        let found = found.map_err(failed)?;
        // A member that lags behind may not show the znode, so it stays in doubt if it is not there.
        if !matches!(found, CreateOutcome::NotCreated) {
            self.is_in_doubt = false;
        }
        if let CreateOutcome::Taken = found {
            self.znode.note_gone();
        }
        Ok(found)
    }

    async fn find_contender(&self, name: &ContenderName) -> Result<CreateOutcome, ServerError> {
        let (znodes, directory) = (self.znode.znodes(), &name.directory);
        let own = znodes
            .searches
            .own_nodes(self.znode.live(), directory.as_str(), &name.identity);
        let mut own = own.await?;
        own.sort_unstable_by_key(|(_, stat)| stat.czxid);
        let mut own = own.into_iter();
        let Some((path, stat)) = own.next() else {
            return Ok(CreateOutcome::NotCreated);
        };
        self.znode.set_path(path);
        // A server has applied two creates. The second znode would keep all later contenders waiting
        // until the session ends.
        for (other, _) in own {
            let name = ContenderName::at(directory, name.identity, other);
            drop(ZnodeOwner::new(&self.session_use, znodes.contender(name)));
        }
        Ok(CreateOutcome::Created {
            stat,
            connection: None,
        })
    }

    async fn find_named(&self, named: &Named) -> Result<CreateOutcome, ServerError> {
        let server = self.znode.live().server()?;
        let found = retry(ServerError::may_pass, || named.find(&server)).await?;
        Ok(match found {
            Some((stat, true)) => CreateOutcome::Created {
                stat,
                connection: None,
            },
            Some((_, false)) => CreateOutcome::Taken,
            None => CreateOutcome::NotCreated,
        })
    }

    /// Does what a drop does: deletes the znode in the background, unless there is none.
    pub(crate) fn give_up(&mut self) {
        if replace(&mut self.is_given_up, true) {
            return;
        }
        match self.reply().take() {
            Some(reply) => self.delete_once_answered(reply),
            None if self.znode.may_exist() => {
                self.znode.delete_in_background(self.session_use.clone());
            }
            None => self.znode.pass_turn(),
        }
    }

    /// Deletes the znode once the reply to its create has come, in the background.
    fn delete_once_answered(&self, reply: Pending<Created>) {
        let unanswered = AbandonedCreate::new(&self.znode.znodes.abandoned);
        let mut owner = ZnodeOwner::new(&self.session_use, self.znode.clone());
        owner.is_in_doubt = self.is_in_doubt;
        self.znode.live().in_background(async move {
            let reply = reply.await;
            // If an earlier create is in doubt, the deletion looks for the znodes of both.
            if !owner.is_in_doubt || reply.is_err() {
                let _ = owner.note_reply(reply);
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
        self.give_up();
    }
}

/// True if this names a contender's znode that only its own process can write to.
pub(crate) fn is_closed_to_others(path: &str) -> bool {
    let contender = Contender::parse(last_segment(path), |_| true);
    contender.is_some_and(|contender| contender.is_closed_to_others())
}

#[cfg(test)]
#[path = "../../tests/unit/own_znode.rs"]
mod tests;
