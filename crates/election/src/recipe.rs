//! The election.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use zookeeper_recipes_core::{
    BoxFuture, Error, Hold, HoldView, InvalidInput, NodePath, Queue, QueueEntry, Recipe, Session,
};

use crate::ElectionOptions;
use crate::candidate::Candidate;
use crate::leader::{Leader, LeaderState};
use crate::leadership::Leadership;
use crate::read_leader::{in_time, read_leader};
use crate::rule::FirstCandidate;
use crate::watch_leader::watch_leader;

/// One candidate in the election of one leader, FIFO over all processes.
///
/// [`run`](Self::run) does all that a service needs. [`acquire`](Self::acquire) campaigns once, and
/// returns a [`Leadership`]. A process that only asks who leads creates a `LeaderElection` too, and
/// never campaigns.
///
/// Clones are the same candidate, and share [`is_leader`](Self::is_leader). Each call that campaigns
/// has a place of its own in the queue.
///
/// # Not reentrant
///
/// If a task that leads campaigns again, it is one more candidate, and the task deadlocks.
/// [`acquire_timeout`](Self::acquire_timeout) bounds the wait, and an event warns at once
/// ([events](crate::common::docs::events)).
///
/// # Znodes
///
/// Each campaign creates one ephemeral sequential znode under the path:
/// `_c_<uuid>-latch-<number>`, with the candidate's id as its data. The name of a candidate on
/// [standby](Self::standby) has `standby-latch` in place of `latch`. If the path does not exist,
/// the campaign creates it as a container znode. The container's data is empty until a process
/// [names](Self::transfer_to) a successor or a leader [proclaims](crate::Term::proclaim) a text.
///
/// # Example
///
/// ```
/// use zookeeper_recipes_election::{LeaderElection, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
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
    /// The latest leadership that the candidate, or a clone of it, has acquired.
    own_leadership: Arc<Mutex<Option<HoldView>>>,
}

/// When [`LeaderElection::run`] stops the work of a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StopWork {
    /// As soon as no answer comes from the server:
    /// [`HoldState::Suspended`](crate::HoldState::Suspended).
    ///
    /// The safe choice: the work has stopped before another candidate can lead.
    #[default]
    WhenSuspended,
    /// Only when the leadership is lost: [`HoldState::Lost`](crate::HoldState::Lost).
    ///
    /// A short disconnection does not disturb the work. This choice does not stop requests that the
    /// work has sent to another service: they can arrive together with those of the next leader.
    WhenLost,
}

impl LeaderElection {
    /// A candidate in the election at `path`, with the default options. The call sends nothing.
    ///
    /// The other processes see the id. It need not be unique: each leader has its own fencing token.
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

    /// A candidate in the election at `path`. The call sends nothing.
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
        let unused = ["strategy", "data", "mark_release", "one_contender"];
        options.refuse(&unused, "an election")?;
        let id: Arc<str> = Arc::from(id.as_ref());
        let options = options.data(id.as_bytes());
        let rule = FirstCandidate::default();
        let queue = Queue::with_options(session, path, rule, options)?;
        Ok(LeaderElection {
            candidate: Candidate { queue, id },
            stop_work: StopWork::default(),
            own_leadership: Arc::default(),
        })
    }

    /// Sets when [`run`](Self::run) stops the work of a leader that may lose its leadership.
    ///
    /// The default is [`StopWork::WhenSuspended`]: as soon as no answer comes from the server.
    #[must_use]
    pub fn stop_work(mut self, when: StopWork) -> LeaderElection {
        self.stop_work = when;
        self
    }

    /// Makes this candidate lead only while no other candidate campaigns.
    ///
    /// When the turn of a candidate on standby comes, and a candidate that is not on standby is
    /// behind it, the candidate on standby does not lead. It leaves the queue, and enters it again
    /// at the end. If such a candidate comes later, [`run`](Self::run) stops the work and resigns.
    /// Without `run`, [`asked_to_resign`](Leadership::asked_to_resign) resolves.
    ///
    /// If all candidates are on standby, they lead in FIFO order. A candidate on standby
    /// that is the named [successor](Self::transfer_to) leads in any case.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if a request with the longer name is longer than the servers accept.
    pub fn standby(mut self) -> Result<LeaderElection, InvalidInput> {
        self.candidate.queue = self.candidate.queue.by(FirstCandidate::standby())?;
        Ok(self)
    }

    /// The session that the candidate campaigns in.
    pub fn session(&self) -> &Session {
        self.candidate.session()
    }

    /// The id of this candidate.
    pub fn id(&self) -> &str {
        &self.candidate.id
    }

    /// The directory of the candidates' znodes.
    ///
    /// The path of the leader's znode is [`HoldView::node_path`].
    pub fn path(&self) -> &NodePath {
        self.candidate.path()
    }

    /// Campaigns, and waits until this candidate leads.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | nobody leads: a create and a list | 2 | 1 | 0 |
    /// | the same from the third time on, if no other candidate came in between: a create | 1 | 1 | 0 |
    /// | the same from the third time on, if one came in between: a create, then a list | 2 | 2 | 0 |
    /// | first use of the path | see [there](crate::Recipe#first-use-of-a-path) | | |
    /// | another candidate leads: a read of the own znode, and of the predecessor's | 2 more | 1 more | 2 |
    /// | the predecessor's znode is deleted: a list, and a read of the directory | 2 more | 1 more | |
    ///
    /// The number of the new znode shows whether another candidate came in between: see
    /// [the proof](crate::common::docs::handoff#coming-back-to-where-one-was-alone).
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::acquire`](crate::Recipe::acquire).
    pub async fn acquire(&self) -> Result<Leadership, Error> {
        Ok(self.leads(self.candidate.queue.acquire().await?))
    }

    /// Campaigns, and waits until this candidate leads, for at most `timeout`.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | as [`acquire`](Self::acquire) | 1 or 2, and more to wait | 1 or 2, and more to wait | 0 or 2 |
    /// | the timeout elapses: a delete in the background | 1 more | 0 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// [`Error::DeadlineElapsed`] after `timeout`. The rest is that of [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Leadership, Error> {
        Ok(self.leads(self.candidate.queue.acquire_timeout(timeout).await?))
    }

    /// Leads if no candidate is before this one; otherwise `None`, with nothing written.
    ///
    /// [`Error::Disconnected`] if no server answers.
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

    /// Lists the candidates, the leader included, in the order of the queue.
    ///
    /// They lead in this order, unless some [step back](crate::FirstCandidate#who-steps-back).
    ///
    /// | of a [`QueueEntry`] | in an election |
    /// |---|---|
    /// | `data` | the candidate's id |
    /// | `owner` | the id as text, if it is one line of printable text |
    /// | `holds` | true for the leader, the first candidate |
    /// | `name` | contains `standby-latch` if the candidate is on [standby](Self::standby) |
    /// | `fencing_token` | that of the leadership, present or future; a candidate that steps back gets a new one |
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, then all their data in one read | 2 | 2 | 0 |
    /// | nobody campaigns: the names | 1 | 1 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::contenders`](crate::Recipe::contenders).
    pub async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        self.candidate.queue.contenders().await
    }

    /// True if this candidate, or a clone of it, leads now. The call sends nothing.
    ///
    /// The answer is that of [`HoldView::is_held`] for the leadership that this candidate acquired:
    /// `false` before another candidate can lead, with the same exception for a znode that is
    /// deleted by hand. Other processes see the leader by [`leader`](Self::leader).
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a read of the process's clock | 0 | 0 | 0 |
    pub fn is_leader(&self) -> bool {
        self.own_leadership().is_some_and(|own| own.is_held())
    }

    /// Reads who leads at this moment. `None` if nobody leads.
    ///
    /// The leader is the first candidate. If its connection was broken, or its session is new, up
    /// to a third of the session timeout may pass before it holds and its work begins.
    ///
    /// The call waits for an answer for at most the session timeout, or ten seconds while there is
    /// no session.
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
    /// If the future is dropped, nothing remains.
    ///
    /// # Session loss
    ///
    /// The call reads again in the new session, within the same time.
    pub async fn leader(&self) -> Result<Option<Leader>, Error> {
        read_leader(self.session(), self.path()).await
    }

    /// Watches who leads: a value that a task keeps up to date. The call returns at once.
    ///
    /// The value begins with [`LeaderState::Unknown`], until a server answers. So a service can
    /// start before the servers. Each later change notifies the receivers.
    ///
    /// A receiver may skip a leader that led only for the time of a round trip, or that no longer
    /// leads when the receiver is read. It never skips the present leader. A leader's token is
    /// newer than those of all leaders before. The path need not exist.
    ///
    /// The value is not proof: while no server answers, it stays as it was. A leader asks
    /// [`is_leader`](Self::is_leader).
    ///
    /// The task ends when all receivers are dropped, and removes its watches. It keeps the session
    /// open until then. If the session is closed, the task ends as well, and
    /// `changed` fails. [`leader`](Self::leader) then returns the
    /// reason.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the first value: a `sync`, the names, a read of the first and of the directory | 4 | 3 | 2 |
    /// | each change of the leader or of the directory's data: the names, these two reads | 3 more | 2 more | 2 |
    /// | a candidate behind the leader comes or goes | 0 | 0 | |
    ///
    /// # Errors
    ///
    /// If the server refuses a read, the value is [`LeaderState::Refused`]. After any error the
    /// task tries again, at least once a second.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, which the task needs.
    ///
    /// # Session loss
    ///
    /// The task continues in the new session.
    ///
    /// ```
    /// use zookeeper_recipes_election::{LeaderElection, LeaderState, Session};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
    /// let election = LeaderElection::new(&session, "/app/leader", "node-7")?;
    /// let mut leader = election.watch_leader();
    /// assert_eq!(*leader.borrow(), LeaderState::Unknown);
    ///
    /// let leadership = election.acquire().await?;
    /// let state = leader.wait_for(|state| state.leader().is_some()).await?.clone();
    /// let token = state.leader().map(|leader| leader.fencing_token);
    /// assert_eq!(token, Some(leadership.fencing_token()));
    /// leadership.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch_leader(&self) -> watch::Receiver<LeaderState> {
        watch_leader(self.session().clone(), self.path().clone())
    }

    /// Names the candidate that leads next, and asks the leader to resign.
    ///
    /// An operator may call it: this candidate need not lead, nor campaign. The leader resigns if it uses
    /// [`run`](Self::run) or awaits [`asked_to_resign`](Leadership::asked_to_resign). When the turn
    /// of a candidate before the successor comes, that candidate does not lead: it leaves the
    /// queue, and enters it again at the end. If the successor leaves meanwhile, the next candidate
    /// leads. The call returns once the successor is named. It does not wait for the transfer, which
    /// [`watch_leader`](Self::watch_leader) shows.
    ///
    /// Two candidates never lead at once: only the first in the queue leads. A `LeaderLatch` of
    /// Curator ignores the successor: it does not resign, and leads when it is first.
    ///
    /// The directory's data names the successor until another one is named. If several candidates
    /// have this id, the first of them is the successor. If the successor leads already, nothing
    /// happens.
    ///
    /// The call waits for an answer for at most the session timeout, or ten seconds while there is
    /// no session.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, all their data, the directory, a transaction | 4 | 4 | 0 |
    /// | each candidate between: a list and a read of the directory, a delete, an entry | 3, and those of [`acquire`](Self::acquire) | 2, and those of an entry | 2 |
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] if no candidate with this id campaigns, or the directory's data
    ///   belongs to another program.
    /// * [`Error::Refused`], for example without the permission to write to the directory, even if
    ///   the candidate leads already.
    /// * [`Error::OutcomeUnknown`] if no server answers in that time.
    /// * [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the successor may be named or not.
    ///
    /// # Session loss
    ///
    /// The call fails with [`Error::SessionOver`]. A successor that was named remains named.
    ///
    /// # Example
    ///
    /// ```
    /// use zookeeper_recipes_election::{LeaderElection, Session};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
    /// let old = LeaderElection::new(&session, "/app/leader", "node-7")?;
    /// let new = LeaderElection::new(&session, "/app/leader", "node-8")?;
    /// let leadership = old.acquire().await?;
    /// let campaign = tokio::spawn(async move { new.acquire().await });
    /// # while old.contenders().await?.len() < 2 {
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

    /// Records that this candidate leads, unless a later leadership is recorded.
    ///
    /// Two tasks may report their leaderships in any order.
    fn leads(&self, hold: Hold) -> Leadership {
        let mut own = self
            .own_leadership
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_newer = |other: &HoldView| hold.fencing_token() > other.fencing_token();
        if own.as_ref().is_none_or(is_newer) {
            *own = Some(hold.view());
        }
        Leadership::new(hold, self.candidate.clone())
    }

    pub(crate) fn own_leadership(&self) -> Option<HoldView> {
        let own = self
            .own_leadership
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        own.clone()
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
