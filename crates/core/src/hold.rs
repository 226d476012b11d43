//! The hold: what every recipe yields.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use tokio::sync::watch;

use crate::alarm::{Alarm, Gone, Watched};
use crate::backoff::Backoff;
use crate::contender::Contender;
use crate::ensemble::{
    Acl, CreateMode, Operation, ServerSession, SessionEnd, SessionId, TransactionError,
};
use crate::error::{Error, InvalidInput, Refusal, ServerError};
use crate::live::LiveSession;
use crate::local::LocalTurn;
use crate::node::{OwnNode, until_gone};
use crate::rule::Rule;
use crate::session::Session;
use crate::standing::Standing;
use crate::sync::lock;
use crate::transaction::GuardedTransaction;

/// Proof, as far as a process can have one, that a recipe is held.
///
/// Cheap to clone: what is held is released when the last clone has gone, by
/// [`release`](Self::release) or by being dropped.
///
/// # What it is worth
///
/// [`is_held`](Self::is_held) is certain: it says no before the server can have passed the hold
/// on, also right after a pause of the process. The exception is a znode that somebody deletes by
/// hand: the holder notices within a sixth of the session timeout at most, and the next contender
/// may hold before that. But between that look and the work it was to
/// protect the process can be paused again. Where that must not matter, let the other side check:
/// a write to ZooKeeper through [`transaction`](Self::transaction) is refused by the server
/// itself once the hold has gone, and any other store can refuse a
/// [`fencing_token`](Self::fencing_token) older than the newest it has seen.
#[derive(Clone)]
#[must_use = "if unused, what is held is released at once"]
pub struct Hold {
    holding: Arc<Holding>,
}

/// A number that grows with every grant over the whole ensemble.
///
/// It is the `czxid` of the holder's znode: the transaction that created it, or that created the
/// one before it where that was [exchanged](Hold::exchange). (The number at the
/// end of the znode's name is no token: it begins anew with the directory.) Holders that hand the
/// lock to each other within a process share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(i64);

impl FencingToken {
    /// The number itself.
    pub fn get(self) -> i64 {
        self.0
    }
}

impl From<i64> for FencingToken {
    fn from(czxid: i64) -> FencingToken {
        FencingToken(czxid)
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// How it stands with a [`Hold`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldState {
    /// It is held.
    Held,
    /// It is held still, but no answer comes from the server; unless one does, it will be lost
    /// when [`Hold::remaining`] is zero.
    Suspended,
    /// It is held no more, and never will be again.
    Lost(LossReason),
}

/// How a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// The session it was held in is over.
    #[error("the hold is lost: its session is {0}")]
    Session(SessionEnd),
    /// Nothing was heard from the server for so long that it may have expired the session.
    #[error("the hold is lost: no answer came in time to be sure that the session lives")]
    LeaseElapsed,
    /// Somebody else has deleted the holder's znode.
    #[error("the hold is lost: its znode was deleted by somebody else")]
    Deleted,
    /// Somebody else has written to the holder's znode, in spite of its access control list (as
    /// ZooKeeper's super user can); those who wait take that for its release.
    #[error("the hold is lost: its znode was written to by somebody else")]
    Written,
    /// It was released for all its clones, by [`Hold::release_all`].
    #[error("the hold is lost: it was released by another clone")]
    Released,
}

impl Hold {
    pub(crate) fn new(grant: Grant, turn: Option<LocalTurn>) -> Hold {
        if let Some(turn) = &turn {
            turn.held_by(grant.standing());
        }
        Hold {
            holding: Arc::new(Holding {
                grant: Some(grant),
                turn: Mutex::new(turn),
            }),
        }
    }

    fn grant(&self) -> &Grant {
        self.holding.grant()
    }

    /// The path of the holder's znode.
    pub fn path(&self) -> &str {
        self.grant().node.path()
    }

    /// The number by which a store can tell this holder from an older one.
    pub fn fencing_token(&self) -> FencingToken {
        self.grant().token
    }

    /// The ZooKeeper session that the hold belongs to and ends with.
    pub fn session_id(&self) -> SessionId {
        self.grant().live.id()
    }

    /// How it stands now. Looks at the clock; sends nothing.
    pub fn state(&self) -> HoldState {
        self.grant().state()
    }

    /// Whether it is certainly held still: `false` just when the [`state`](Self::state) is
    /// [`Lost`](HoldState::Lost).
    ///
    /// Right after a pause of the process, too, however long: the answer comes from a clock that
    /// does not stop, and not from an event that has yet to arrive. If somebody deletes the holder's
    /// znode by hand, this says yes for a sixth of the session timeout more at most.
    pub fn is_held(&self) -> bool {
        !matches!(self.state(), HoldState::Lost(_))
    }

    /// For how long it is certainly held if no answer comes from the server any more; zero when
    /// it is lost.
    pub fn remaining(&self) -> Duration {
        match self.state() {
            HoldState::Lost(_) => Duration::ZERO,
            HoldState::Held | HoldState::Suspended => self.grant().live.remaining(),
        }
    }

    /// Resolves when the hold is lost, before anyone else can hold. If somebody deletes the
    /// holder's znode by hand, within a sixth of the session timeout at most.
    ///
    /// "Before" is by the clock of the runtime that it is awaited in: needs that runtime to run
    /// and to have its time enabled, and not the session's. After a pause,
    /// [`is_held`](Self::is_held) is what to ask.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again.
    ///
    /// ```
    /// # use zookeeper_recipes_core::{Hold, LossReason};
    /// # async fn work() -> Result<(), LossReason> { Ok(()) }
    /// # async fn example(hold: Hold) -> Result<(), LossReason> {
    /// tokio::select! {
    ///     done = work() => done?,
    ///     reason = hold.lost() => return Err(reason),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) -> LossReason {
        self.grant().standing().lost().await
    }

    /// The state now, and then each change.
    ///
    /// Ends after [`HoldState::Lost`]. Keeps a clone of the hold.
    pub fn states(&self) -> impl Stream<Item = HoldState> + Send + Unpin + 'static + use<> {
        let hold = self.clone();
        stream::unfold((hold, None), |(hold, last)| async move {
            if matches!(last, Some(HoldState::Lost(_))) {
                return None;
            }
            let state = hold.grant().standing().changed_from(last).await;
            Some((state, (hold, Some(state))))
        })
        .boxed()
    }

    /// Writes to ZooKeeper on condition that the hold's znode still stands, in one transaction:
    /// the server itself refuses a holder that has lost its hold.
    ///
    /// See [`GuardedTransaction`] for an example.
    pub fn transaction(&self) -> GuardedTransaction {
        let grant = self.grant();
        let holding = Arc::downgrade(&self.holding);
        GuardedTransaction::new(grant.live.clone(), &grant.node, holding)
    }

    /// Replaces the holder's znode by one with the same number and another label, in one
    /// transaction: the hold goes on as one of another kind, without a moment in between. A
    /// write lock becomes a read lock this way.
    ///
    /// `from` and `to` are the labels (see [`Contender::label`](crate::Contender::label)); `data`
    /// and `acl` are the new znode's. The fencing token stays: it is older than that of everyone
    /// behind, as the new znode's `czxid` would not be. Whoever waits for the hold within the
    /// process ([`QueueOptions::local`](crate::QueueOptions::local)) waits for the kind that was,
    /// and so goes on to queue on the server. One request.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when there are other clones of the hold, its znode has not the
    /// label `from`, its rule does not [allow it](crate::Rule::may_be_exchanged), or it has a
    /// number at the end of the count (2147483647), where the order is by age and a new znode would
    /// be the youngest; [`Error::Lost`] when the hold has been lost, [`Error::Refused`] when the
    /// server would not create the new znode, [`Error::SessionOver`]. After an error, what was
    /// held is released.
    ///
    /// # Cancel safety
    ///
    /// Dropped half-way, what was held is released.
    pub async fn exchange(
        self,
        from: &str,
        to: &str,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<Hold, Error> {
        let path = self.path().to_owned();
        let Some(mut holding) = Arc::into_inner(self.holding) else {
            let problem = "has clones, which would go on as another kind";
            return Err(InvalidInput::new("hold", path, problem).into());
        };
        // Passed on at the end: the next one there must not be handed a hold of the new kind.
        let _turn = lock(&holding.turn).take();
        match holding.grant.take() {
            Some(grant) => Ok(Hold::new(grant.exchange(from, to, data, acl).await?, None)),
            None => Err(InvalidInput::new("hold", path, "is being released").into()),
        }
    }

    /// Gives up this clone of the hold; the last one releases, and waits for the server's word.
    ///
    /// One request: the deletion of the holder's znode, together with others where many go at once
    /// in the session. When its outcome is unknown it is repeated until the server has answered or
    /// the lease has run out. While other clones are alive, nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] at once when the hold is lost, so that what was done under it may not have
    /// been protected to the end; and when it is lost before the server's word comes. The znode is
    /// deleted in the background then. [`Error::SessionOver`] when the session ended before the
    /// server's word came. [`Error::Refused`] when the server would not delete the znode. In all
    /// these cases nothing more is to be done: the znode goes with the session at the latest.
    ///
    /// # Cancel safety
    ///
    /// Once polled, what is held is released whether or not one waits for it.
    pub async fn release(self) -> Result<(), Error> {
        match Arc::into_inner(self.holding) {
            Some(holding) => holding.release().await,
            None => Ok(()),
        }
    }

    /// Releases for all clones of the hold, and waits for the server's word. The other clones are
    /// lost, with [`LossReason::Released`], before anything is sent.
    ///
    /// Otherwise as [`release`](Self::release), which is what to use where no clone may have been
    /// left anywhere by mistake.
    ///
    /// # Errors
    ///
    /// Those of [`release`](Self::release), and [`Error::Lost`] with [`LossReason::Released`] when
    /// another clone has been quicker.
    ///
    /// # Cancel safety
    ///
    /// Once polled, what is held is released whether or not one waits for it.
    pub async fn release_all(self) -> Result<(), Error> {
        let turn = lock(&self.holding.turn).take();
        if self.is_held() {
            Fate::Released.befall(&self.grant().fate);
        }
        self.grant().release(turn).await
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Hold")
            .field("path", &self.path())
            .field("fencing_token", &self.fencing_token())
            .field("session_id", &self.session_id())
            .field("state", &self.state())
            .finish()
    }
}

/// What the clones of a hold share. The grant is taken out only by the last of them.
pub(crate) struct Holding {
    grant: Option<Grant>,
    turn: Mutex<Option<LocalTurn>>,
}

impl Holding {
    fn grant(&self) -> &Grant {
        self.grant
            .as_ref()
            .expect("a hold that can be reached has not been released")
    }

    /// Whether it has been let go of.
    pub(crate) fn is_released(&self) -> bool {
        self.grant
            .as_ref()
            .is_none_or(|grant| *grant.fate.borrow() == Fate::Released)
    }

    fn take(&mut self) -> Option<(Grant, Option<LocalTurn>)> {
        let grant = self.grant.take()?;
        let turn = lock(&self.turn).take();
        match turn {
            Some(turn) => turn
                .hand_over(grant)
                .map(|(grant, turn)| (grant, Some(turn))),
            None => Some((grant, None)),
        }
    }

    async fn release(mut self) -> Result<(), Error> {
        match self.take() {
            Some((grant, turn)) => grant.release(turn).await,
            // Handed over within the process.
            None => Ok(()),
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if let Some((grant, turn)) = self.take() {
            grant.release_in_background(turn);
        }
    }
}

/// One grant of a recipe by the server: the holder's znode, and how to tell whether it stands.
///
/// Dropped, it releases in the background.
pub(crate) struct Grant {
    session: Session,
    live: Arc<LiveSession>,
    node: OwnNode,
    /// The rule of the queue, where it was granted in one.
    rule: Option<Arc<dyn Rule>>,
    token: FencingToken,
    /// How often the session's lease had lapsed at the grant.
    lapses: u64,
    fate: watch::Sender<Fate>,
    /// Kept so that the alarm can tell whether anybody is left to be told.
    told: watch::Receiver<Fate>,
    /// Its place in the session's list of grants.
    number: u64,
    /// Whether the znode has been seen to, one way or another.
    released: AtomicBool,
}

/// Tells a grant when its znode has gone.
pub(crate) struct Witness {
    node: OwnNode,
    fate: watch::Sender<Fate>,
}

impl Witness {
    /// Whether nobody is left to be told.
    pub(crate) fn is_done(&self) -> bool {
        self.fate.is_closed()
    }

    /// Sets the watch, and tells what it sees.
    pub(crate) async fn watch(self, live: Arc<LiveSession>, server: Arc<dyn ServerSession>) {
        let alarm = Alarm::unarmed(Watched {
            live,
            server,
            node: self.node.clone(),
        });
        // Others may have come by now, and wait.
        self.node.announce();
        self.tell(alarm).await;
    }

    async fn tell(self, alarm: Alarm) {
        let fate = match alarm.gone_from_hold().await {
            Gone::Deleted => Fate::Deleted,
            Gone::Written => Fate::Written,
        };
        fate.befall(&self.fate);
    }
}

/// What has become of a grant, apart from its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Standing,
    Deleted,
    Written,
    /// The lease has lapsed, and the znode is being deleted for that.
    Lapsed,
    Released,
}

impl Fate {
    /// What becomes of a grant first counts.
    pub(crate) fn befall(self, grant: &watch::Sender<Fate>) {
        grant.send_if_modified(|now| {
            let standing = *now == Fate::Standing;
            if standing {
                *now = self;
            }
            standing
        });
    }
}

impl Grant {
    /// Grants what `node` stands for, unless the lease has lapsed or is sure to before it can be
    /// renewed. The znode is given back in that case.
    pub(crate) fn new(
        session: Session,
        live: Arc<LiveSession>,
        node: OwnNode,
        token: FencingToken,
        alarm: Option<Alarm>,
    ) -> Result<Grant, OwnNode> {
        let Some(lapses) = live.may_grant() else {
            return Err(node);
        };
        let (fate, told) = watch::channel(Fate::Standing);
        let witness = Witness {
            node: node.clone(),
            fate: fate.clone(),
        };
        match alarm {
            Some(alarm) => live.in_background(witness.tell(alarm)),
            // Most holds are over before it is worth a task and a request to watch them.
            None => live.watch_later(witness),
        }
        let number = live.grant(lapses, node.clone(), fate.clone());
        Ok(Grant {
            session,
            live,
            node,
            number,
            rule: None,
            token,
            lapses,
            fate,
            told,
            released: AtomicBool::new(false),
        })
    }

    /// The same, granted by this rule.
    pub(crate) fn by(mut self, rule: Arc<dyn Rule>) -> Grant {
        self.rule = Some(rule);
        self
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing {
            live: self.live.clone(),
            lapses: self.lapses,
            fate: self.told.clone(),
        }
    }

    fn state(&self) -> HoldState {
        self.standing().state()
    }

    pub(crate) fn is_held(&self) -> bool {
        self.standing().is_held()
    }

    /// Releases, and hands on the turn only once the znode has gone.
    pub(crate) async fn release(&self, turn: Option<LocalTurn>) -> Result<(), Error> {
        let path = self.node.path();
        let id = self.live.id();
        let lost = |reason| Error::Lost {
            path: path.to_owned(),
            session: id,
            reason,
        };
        // Dropped half-way, it is seen to in the background.
        let mut unconfirmed = Unconfirmed { grant: self, turn };
        if self.released.load(Ordering::Acquire) {
            return Err(lost(LossReason::Released));
        }
        let before = match *self.fate.borrow() {
            Fate::Released => self.live.standing(self.lapses),
            _ => self.state(),
        };
        if let HoldState::Lost(reason) = before {
            return Err(lost(reason));
        }
        let remove = async {
            let removed = self.node.remove(&self.live).await;
            removed.map_err(|error| Error::at(path, id, error))
        };
        let standing = self.standing();
        let removed = tokio::select! {
            biased;
            removed = self.live.during(path, remove) => removed,
            reason = standing.outlived() => {
                self.fate.send_replace(Fate::Lapsed);
                return Err(lost(reason));
            }
        };
        self.settle();
        if let Err(Error::SessionOver { .. }) = removed {
            // It went with its session, and not by its release.
            self.fate.send_replace(Fate::Standing);
        }
        drop(unconfirmed.turn.take());
        removed
    }

    /// Notes that its znode has been seen to. Whether it had been before.
    fn settle(&self) -> bool {
        self.live.ungrant(self.number);
        self.released.swap(true, Ordering::AcqRel)
    }

    async fn exchange(
        self,
        from: &str,
        to: &str,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<Grant, Error> {
        let live = self.live.clone();
        let old = self.node.path().to_owned();
        let id = live.id();
        let at = |error| Error::at(old.as_str(), id, error);
        let lost = |reason| Error::Lost {
            path: old.clone(),
            session: id,
            reason,
        };
        let Some((directory, name)) = old.rsplit_once('/') else {
            return Err(InvalidInput::new("hold", old, "has no directory").into());
        };
        let Some(contender) = Contender::parse(name, |label| label == from) else {
            let problem = format!("has not the label {from:?}");
            return Err(InvalidInput::new("hold", old, problem).into());
        };
        if self
            .rule
            .as_ref()
            .is_some_and(|rule| !rule.may_be_exchanged(from))
        {
            let problem = "is of a kind whose place in the queue no other takes";
            return Err(InvalidInput::new("hold", old, problem).into());
        }
        if contender.sequence().is_at_the_end() {
            // Ordered by `czxid`, the new znode would be behind those who wait.
            let problem = "has a number at the end of the count, which is no place in the queue";
            return Err(InvalidInput::new("hold", old, problem).into());
        }
        let name = format!(
            "{}{}",
            self.session.ensemble().identity().name(to),
            contender.sequence()
        );
        let new = format!("{directory}/{name}");
        // From here on both znodes have to be given up, should this be dropped.
        let mut successor = GivenUpUnlessKept {
            session: self.session.clone(),
            live: live.clone(),
            node: Some(OwnNode::unique(&live, &new)),
        };
        let exchange = async {
            let server = live.server().map_err(at)?;
            let operations = [
                Operation::Create {
                    path: new.clone(),
                    data: data.to_owned(),
                    mode: CreateMode::Ephemeral,
                    acl: acl.to_owned(),
                },
                Operation::Delete {
                    path: old.clone(),
                    version: None,
                },
            ];
            let both = [new.clone(), old.clone()];
            let mut backoff = Backoff::up_to(Duration::from_secs(1));
            loop {
                match server.transact(&operations).await {
                    Ok(_) => return Ok(()),
                    Err(TransactionError {
                        error: ServerError::OutcomeUnknown(_),
                        ..
                    }) => {}
                    // The old znode has gone, or even the directory.
                    Err(TransactionError { error, .. }) if error.is(Refusal::NoNode) => {
                        return Err(lost(LossReason::Deleted));
                    }
                    // Nobody else uses that name: it was done, and the answer lost.
                    Err(TransactionError {
                        operation: Some(0),
                        error,
                    }) if error.is(Refusal::NodeExists) => {}
                    Err(failure) => return Err(at(failure.error)),
                }
                let sync = server.sync(&old);
                let nodes = server.get_each(&both);
                let found = async {
                    sync.await?;
                    nodes.await
                };
                match found.await.as_deref() {
                    Ok([Some(_), _]) => return Ok(()),
                    Ok([None, Some(_)]) => {}
                    Ok(_) => return Err(lost(LossReason::Deleted)),
                    Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                    Err(error) => return Err(at(error.clone())),
                }
            }
        };
        live.during(&old, exchange).await?;
        if let HoldState::Lost(reason) = live.standing(self.lapses) {
            return Err(lost(reason));
        }
        // The transaction has deleted the old znode.
        self.settle();
        let node = OwnNode::unique(&live, &new);
        let mut grant = Grant::new(self.session.clone(), live.clone(), node, self.token, None)
            .map_err(|_| lost(LossReason::LeaseElapsed))?;
        successor.node = None;
        grant.rule = self.rule.clone();
        Ok(grant)
    }

    fn release_in_background(self, turn: Option<LocalTurn>) {
        drop(Unconfirmed { grant: &self, turn });
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        drop(Unconfirmed {
            grant: self,
            turn: None,
        });
    }
}

/// A grant whose znode is given up in the background unless that has been seen to.
struct Unconfirmed<'a> {
    grant: &'a Grant,
    turn: Option<LocalTurn>,
}

impl Drop for Unconfirmed<'_> {
    fn drop(&mut self) {
        let grant = self.grant;
        let is_gone = *grant.fate.borrow() == Fate::Deleted;
        if grant.settle() || is_gone {
            return;
        }
        if !grant.is_held() {
            grant.node.doubt();
        }
        give_up(
            &grant.session,
            &grant.live,
            grant.node.clone(),
            self.turn.take(),
        );
    }
}

/// A znode that is given up in the background, unless it is taken out before.
struct GivenUpUnlessKept {
    session: Session,
    live: Arc<LiveSession>,
    node: Option<OwnNode>,
}

impl Drop for GivenUpUnlessKept {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            give_up(&self.session, &self.live, node, None);
        }
    }
}

/// Deletes a znode in the session's own time, and keeps the session open until then.
pub(crate) fn give_up(
    session: &Session,
    live: &Arc<LiveSession>,
    node: OwnNode,
    turn: Option<LocalTurn>,
) {
    let (kept_open, own_live) = (session.clone(), live.clone());
    live.in_background(async move {
        let remove = || node.remove(&own_live);
        until_gone(&own_live, (turn, kept_open), node.path(), remove).await;
    });
}
