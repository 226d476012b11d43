//! The election.

use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::watch;
use zookeeper_recipes_core::{
    BoxFuture, Error, Hold, HoldView, InvalidInput, NodePath, Queue, QueueEntry, Recipe, Session,
};

use crate::candidate::Candidate;
use crate::hold::Leadership;
use crate::leader::{Leader, Participant};
use crate::look::{in_time, who_leads};
use crate::newest::Newest;
use crate::observe::{observe, watch_leader};
use crate::options::ElectionOptions;
use crate::rule::FirstInQueue;
use crate::stop_work::StopWork;

/// One candidate in the election of one leader, first come, first served.
///
/// Made from a [`Session`], a path and the candidate's id. [`run`](Self::run) does all that a
/// service needs. [`acquire`](Self::acquire) campaigns once, and yields a [`Leadership`]. A process
/// that only wants to know who leads makes a `LeaderElection` too, and never campaigns.
///
/// Clones are one candidate value, and share [`is_leader`](Self::is_leader). Each call that
/// campaigns has a place of its own in the queue.
///
/// # Znodes
///
/// Under the path, one ephemeral sequential znode for each campaign: `_c_<uuid>-latch-<number>`,
/// with the candidate's id as its data. The name of a candidate on [standby](Self::standby) has
/// `standby-latch` in place of `latch`. If the path does not exist, it is created as a container
/// znode. Its data is empty until a successor is [named](Self::transfer_to) or a leader
/// [proclaims](crate::Term::proclaim) something.
///
/// # Example
///
/// ```
/// # use zookeeper_recipes_core::ConnectOptions as SimulatedOptions;
/// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
/// use zookeeper_recipes_election::{LeaderElection, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let session = Session::open(simulation.ensemble("docs"), SimulatedOptions::new()).await?;
/// let election = LeaderElection::new(&session, "/app/leader", "node-7")?;
/// assert_eq!(election.leader().await?, None);
///
/// let leadership = election.acquire().await?;
/// assert!(election.is_leader());
/// let leader = election.leader().await?.expect("node-7 leads");
/// assert_eq!(leader.id, "node-7");
/// assert_eq!(leader.fencing_token, leadership.fencing_token());
/// leadership.release().await?;
/// assert!(!election.is_leader());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LeaderElection {
    pub(crate) candidate: Candidate,
    pub(crate) stop_work: StopWork,
    pub(crate) newest: Newest,
}

impl LeaderElection {
    /// A candidate in the election at `path`, with the default options. Sends nothing.
    ///
    /// The other processes see the id. It need not be unique: fencing tokens tell leaders apart.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], or a request with the path and the id
    /// is longer than the servers accept (`ConnectOptions::jute_maxbuffer`).
    pub fn new(
        session: &Session,
        path: impl AsRef<str>,
        id: impl AsRef<str>,
    ) -> Result<LeaderElection, InvalidInput> {
        LeaderElection::with_options(session, path, id, ElectionOptions::new())
    }

    /// A candidate in the election at `path`. Sends nothing.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), and [`InvalidInput`] if an option has a value that cannot work.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        id: impl AsRef<str>,
        options: ElectionOptions,
    ) -> Result<LeaderElection, InvalidInput> {
        let id: Arc<str> = Arc::from(id.as_ref());
        let options = options.into_queue().data(id.as_bytes()).leads();
        let rule = FirstInQueue::default();
        let queue = Queue::with_options(session, path, rule, options)?;
        Ok(LeaderElection {
            candidate: Candidate { queue, id, rule },
            stop_work: StopWork::default(),
            newest: Newest::default(),
        })
    }

    /// When [`run`](Self::run) stops the work of a leader that may lose its leadership.
    ///
    /// By default as soon as no answer comes from the server.
    #[must_use]
    pub fn stop_work(mut self, when: StopWork) -> LeaderElection {
        self.stop_work = when;
        self
    }

    /// Makes this candidate lead only while no other campaigns.
    ///
    /// When the turn of a candidate on standby comes, and another candidate is behind it, it does
    /// not lead: it leaves the queue, and enters it again at the end. If another candidate comes
    /// while it leads, [`run`](Self::run) stops the work and resigns. Without `run`,
    /// [`asked_to_resign`](Leadership::asked_to_resign) resolves.
    ///
    /// If all candidates are on standby, they lead in the order of arrival. A candidate on standby
    /// that is named as the [successor](Self::transfer_to) leads in any case.
    #[must_use]
    pub fn standby(mut self) -> LeaderElection {
        let rule = FirstInQueue::standby();
        self.candidate.rule = rule;
        self.candidate.queue = self.candidate.queue.by(rule);
        self
    }

    /// The session that the candidate campaigns in.
    pub fn session(&self) -> &Session {
        self.candidate.session()
    }

    /// The id of this candidate.
    pub fn id(&self) -> &str {
        &self.candidate.id
    }

    /// The directory of the candidates' znodes. The leader's is [`HoldView::node_path`].
    pub fn path(&self) -> &NodePath {
        self.candidate.path()
    }

    /// Campaigns, and waits until this candidate leads.
    ///
    /// Has no deadline. While no server answers, it waits for one, until the session is over.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | nobody leads: a create and a list | 2 | 1 | 0 |
    /// | the same from the third time on, if no other candidate came in between: a create | 1 | 1 | 0 |
    /// | the same from the third time on, if one came in between: a create, then a list | 2 | 2 | 0 |
    /// | another candidate leads: a read of the own znode, of the directory, and of the predecessor's | 3 more | 1 more | 3 |
    /// | the predecessor goes, and was alone before this candidate | 0 more | 0 | |
    /// | the predecessor goes, and others were before it: a list | 1 more | 1 more | |
    /// | the directory's data has changed meanwhile, or this candidate is on standby: a list and a read | 2 more | 2 more | |
    ///
    /// The number of the new znode tells if another candidate came in between: see
    /// [the proof](crate::common::docs::handoff#coming-back-to-where-one-was-alone).
    ///
    /// # Errors
    ///
    /// * The attempt failed: [`Error::Refused`] (for example, no permission),
    ///   [`Error::ContenderDeleted`], [`Error::OtherRecipe`].
    /// * The session is over: [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// After each of these errors nothing stays in the queue.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the place in the queue is lost. No znode and no watch remain: the
    /// session deletes the znode in the background.
    ///
    /// # Session loss
    ///
    /// If the session expires during the wait, the place in the queue is lost. The call fails with
    /// [`Error::SessionOver`], or campaigns anew if [`ElectionOptions::after_session_loss`] says
    /// so.
    pub async fn acquire(&self) -> Result<Leadership, Error> {
        Ok(self.leads(self.candidate.queue.acquire().await?))
    }

    /// Campaigns, and waits until this candidate leads, for at most `timeout`.
    ///
    /// The timeout bounds everything: the wait for a connection, the server's answers, the queue.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | as [`acquire`](Self::acquire) | 1 or 2, and more to wait | 1 or 2, and more to wait | 0 or 3 |
    /// | the timeout elapses: a delete in the background | 1 more | 0 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::DeadlineElapsed`] after `timeout`, and the errors of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety, session loss
    ///
    /// Those of [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Leadership, Error> {
        Ok(self.leads(self.candidate.queue.acquire_timeout(timeout).await?))
    }

    /// Leads if no candidate is before this one; otherwise `None`, with nothing written.
    ///
    /// While no server answers, it waits for one: bound it with [`tokio::time::timeout`].
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | another candidate leads: a list | 1 | 1 | 0 |
    /// | nobody leads: a list, and the rows of [`acquire`](Self::acquire) | 2 or 3 | 2 or 3 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Leadership>, Error> {
        let hold = self.candidate.queue.try_acquire().await?;
        Ok(hold.map(|hold| self.leads(hold)))
    }

    /// Campaigns, runs the work until it is done or the leadership is lost, and resigns.
    ///
    /// Campaigns once; [`run`](Self::run) does it again and again. Does not stop work that blocks
    /// its thread: see [`Hold::guard`].
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | as [`acquire`](Self::acquire), and the release | 2 or 3, and more to wait | 2 or 3, and more to wait | 0 or 3 |
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Self::acquire) and [`Leadership::release`], and [`Error::Lost`] if the
    /// leadership was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the work is dropped, and the leadership is released in the
    /// background.
    ///
    /// # Session loss
    ///
    /// During the wait as for [`acquire`](Self::acquire). During the work: [`Error::Lost`].
    pub async fn with<T, F>(&self, work: impl FnOnce(HoldView) -> F) -> Result<T, Error>
    where
        F: Future<Output = T>,
    {
        let recipe: &dyn Recipe = self;
        recipe.with(work).await
    }

    /// Lists the leader and the other candidates, in the order of the queue.
    ///
    /// The same as [`participants`](Self::participants), with the raw data of the znodes.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, then all their data in one read | 2 | 2 | 0 |
    /// | nobody campaigns: the names | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], [`Error::MissingChroot`], [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// Leaves nothing behind.
    ///
    /// # Session loss
    ///
    /// Fails with [`Error::SessionOver`] if the session expires before the server answers.
    pub async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        self.candidate.queue.contenders().await
    }

    /// Lists the candidates with their ids, the leader included, in the order of the queue.
    ///
    /// They lead in this order, unless some [step back](crate::FirstInQueue#who-steps-back).
    /// The list is what the server knew at one moment. If the path does not exist, it is empty.
    /// Costs what [`contenders`](Self::contenders) costs.
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`contenders`](Self::contenders).
    pub async fn participants(&self) -> Result<Vec<Participant>, Error> {
        let contenders = self.candidate.queue.contenders().await?;
        Ok(contenders.into_iter().map(Participant::new).collect())
    }

    /// Whether this candidate, or a clone of it, leads now. Sends nothing.
    ///
    /// The answer is that of [`HoldView::is_held`] for the leadership that this candidate acquired:
    /// `false` before another candidate can lead, with the same exception for a znode that is
    /// deleted by hand. Other processes see the leader by [`leader`](Self::leader).
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a look at the clock | 0 | 0 | 0 |
    pub fn is_leader(&self) -> bool {
        self.newest.is_held()
    }

    /// Who leads at this moment, or `None` if nobody does.
    ///
    /// The leader is the first candidate. If its connection was broken, or its session is new, up
    /// to a third of the session timeout may pass before it holds and its work begins.
    ///
    /// Waits for an answer for at most the session timeout, or ten seconds while there is no
    /// session.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, then a read of the first and of the directory | 3 | 2 | 0 |
    /// | nobody leads: the names | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// * [`Error::OutcomeUnknown`] if no server answers in that time.
    /// * [`Error::Connect`] if no session could be opened in that time.
    /// * [`Error::Refused`], for example without the permission to read.
    /// * [`Error::NoSession`] if the session has been closed.
    ///
    /// # Cancel safety
    ///
    /// Leaves nothing behind.
    ///
    /// # Session loss
    ///
    /// Asks again in the new session, within the same time.
    pub async fn leader(&self) -> Result<Option<Leader>, Error> {
        who_leads(self.candidate.queue.session(), self.path()).await
    }

    /// Watches who leads: a value that a task keeps up to date, `None` while nobody leads.
    ///
    /// Waits for the first value as [`leader`](Self::leader) does. The task ends when all receivers
    /// are dropped, and keeps the session open until then. If the session is closed, the task ends
    /// as well, and [`changed`](watch::Receiver::changed) fails.
    ///
    /// A receiver may skip a leader that led only for the time of a round trip. The value is not
    /// proof: while no server answers, or reading is not allowed, it stays as it was. A leader asks
    /// [`is_leader`](Self::is_leader).
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the first value: a `sync`, the names, a read of the first and of the directory | 4 | 3 | 2 |
    /// | each change of the leader or of the directory's data: the names, these two reads | 3 more | 2 more | 2 |
    /// | a candidate behind the leader comes or goes | 0 | 0 | |
    ///
    /// # Errors
    ///
    /// Those of [`leader`](Self::leader), before the first value. Later errors are logged, and the
    /// task tries again, at least once a second.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, which the task needs.
    ///
    /// # Cancel safety
    ///
    /// Leaves nothing behind.
    ///
    /// # Session loss
    ///
    /// Goes on in the new session.
    ///
    /// ```
    /// # use zookeeper_recipes_core::ConnectOptions as SimulatedOptions;
    /// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
    /// use zookeeper_recipes_election::{LeaderElection, Session};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulation = Simulation::new(SimulationOptions::default());
    /// # let session = Session::open(simulation.ensemble("docs"), SimulatedOptions::new()).await?;
    /// let election = LeaderElection::new(&session, "/app/leader", "node-7")?;
    /// let mut leader = election.watch_leader().await?;
    /// assert_eq!(*leader.borrow(), None);
    ///
    /// let leadership = election.acquire().await?;
    /// leader.changed().await?;
    /// let id = leader.borrow().as_ref().map(|leader| leader.id.clone());
    /// assert_eq!(id.as_deref(), Some("node-7"));
    /// leadership.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn watch_leader(&self) -> Result<watch::Receiver<Option<Leader>>, Error> {
        watch_leader(self.candidate.queue.session(), self.path()).await
    }

    /// A stream of who leads: the present state first, then each change.
    ///
    /// Yields `None` while nobody leads. A leader's token is newer than those of all leaders that
    /// the stream yielded before. The stream may skip a leader that led only for the time of a
    /// round trip. It never skips the present leader. The path need not exist.
    ///
    /// While no server answers, the stream is silent. Once a server answers, the stream yields the
    /// present state if it has changed. An item is not proof: a leader asks
    /// [`is_leader`](Self::is_leader).
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the first item: a `sync`, the names, a read of the first and of the directory | 4 | 3 | 2 |
    /// | each change of the leader or of the directory's data: the names, these two reads | 3 more | 2 more | 2 |
    /// | a candidate behind the leader comes or goes | 0 | 0 | |
    ///
    /// # Errors
    ///
    /// The stream yields:
    ///
    /// * [`Error::Refused`], for example without the permission to read. The stream yields it once,
    ///   and tries again, at least once a second.
    /// * [`Error::NoSession`] once the session has been closed. Then the stream ends.
    ///
    /// # Cancel safety
    ///
    /// The wait for the next item may be dropped and begun again: nothing is missed. The watch is
    /// removed with the stream. The stream keeps the session open.
    ///
    /// # Session loss
    ///
    /// Goes on in the new session.
    ///
    /// ```
    /// # use zookeeper_recipes_core::ConnectOptions as SimulatedOptions;
    /// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
    /// use futures_util::StreamExt;
    /// use zookeeper_recipes_election::{LeaderElection, Session};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulation = Simulation::new(SimulationOptions::default());
    /// # let session = Session::open(simulation.ensemble("docs"), SimulatedOptions::new()).await?;
    /// let election = LeaderElection::new(&session, "/app/leader", "node-7")?;
    /// let mut leaders = election.observe();
    /// assert_eq!(leaders.next().await.transpose()?, Some(None));
    ///
    /// let leadership = election.acquire().await?;
    /// let Some(Some(leader)) = leaders.next().await.transpose()? else {
    ///     panic!("node-7 leads");
    /// };
    /// assert_eq!(leader.id, "node-7");
    /// leadership.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(
        &self,
    ) -> impl Stream<Item = Result<Option<Leader>, Error>> + Send + Unpin + 'static + use<> {
        observe(self.candidate.queue.session().clone(), self.path().clone())
    }

    /// Asks the leader to hand over to the candidate with this id.
    ///
    /// For an operator: this candidate need not lead, nor campaign. The leader resigns when it
    /// notices, if it uses [`run`](Self::run) or awaits
    /// [`asked_to_resign`](Leadership::asked_to_resign). When the turn of a candidate before the
    /// successor comes, it does not lead: it leaves the queue, and enters it again at the end. If
    /// the successor leaves meanwhile, the next candidate leads. Returns once the successor is
    /// named, and does not wait for the transfer: [`watch_leader`](Self::watch_leader) shows it.
    ///
    /// Two candidates never lead at once: the first in the queue leads, and no other. A
    /// `LeaderLatch` of Curator takes no notice of a successor: it does not resign, and leads when
    /// it is first.
    ///
    /// The directory's data names the successor until another one is named. If several candidates
    /// have this id, the first of them is the successor. If it leads already, nothing happens.
    ///
    /// Waits for an answer for at most the session timeout, or ten seconds while there is no
    /// session.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, all their data, the directory, a transaction | 4 | 4 | 0 |
    /// | each candidate between: a list and a read of the directory, a delete, an entry | 3, and those of [`acquire`](Self::acquire) | 3, and those of an entry | 2 |
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] if no candidate with this id campaigns, or the directory's data
    ///   belongs to another program.
    /// * [`Error::Refused`], for example without the permission to write to the directory.
    /// * [`Error::OutcomeUnknown`] if no server answers in that time.
    /// * [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the successor is named or not.
    ///
    /// # Session loss
    ///
    /// Fails with [`Error::SessionOver`]. A successor that was named stays named.
    ///
    /// # Example
    ///
    /// ```
    /// # use zookeeper_recipes_core::ConnectOptions as SimulatedOptions;
    /// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
    /// use zookeeper_recipes_election::{LeaderElection, Session};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulation = Simulation::new(SimulationOptions::default());
    /// # let session = Session::open(simulation.ensemble("docs"), SimulatedOptions::new()).await?;
    /// let old = LeaderElection::new(&session, "/app/leader", "node-7")?;
    /// let new = LeaderElection::new(&session, "/app/leader", "node-8")?;
    /// let leadership = old.acquire().await?;
    /// let campaign = tokio::spawn(async move { new.acquire().await });
    /// # while old.participants().await?.len() < 2 {
    /// #     tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    /// # }
    ///
    /// let operator = LeaderElection::new(&session, "/app/leader", "")?;
    /// operator.transfer_to("node-8").await?;
    ///
    /// leadership.asked_to_resign().await;
    /// leadership.release().await?;
    /// assert_eq!(campaign.await??.id(), "node-8");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn transfer_to(&self, id: &str) -> Result<(), Error> {
        let transfer = self.candidate.name_successor(id, None);
        in_time(self.session(), self.path(), transfer).await
    }

    /// Takes note that this candidate leads.
    fn leads(&self, hold: Hold) -> Leadership {
        self.newest.acquired(hold.view());
        Leadership::new(hold, self.candidate.clone())
    }
}

impl Recipe for LeaderElection {
    fn acquire(&self) -> BoxFuture<'_, Result<Hold, Error>> {
        Box::pin(async { Ok(self.acquire().await?.into_hold()) })
    }

    fn acquire_timeout(&self, timeout: Duration) -> BoxFuture<'_, Result<Hold, Error>> {
        Box::pin(async move { Ok(self.acquire_timeout(timeout).await?.into_hold()) })
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<Hold>, Error>> {
        Box::pin(async { Ok(self.try_acquire().await?.map(Leadership::into_hold)) })
    }

    fn contenders(&self) -> BoxFuture<'_, Result<Vec<QueueEntry>, Error>> {
        Box::pin(self.contenders())
    }

    fn path(&self) -> &NodePath {
        self.path()
    }

    fn session(&self) -> &Session {
        self.candidate.queue.session()
    }
}
