//! The queue: the part that all recipes share, from the first request to the hold.
//!
//! An acquisition takes these steps: [`Queue`], `attempt` (create and list), `wait` (order the
//! contenders, ask the rule, wait), a [`Hold`].

mod attempt;
pub(crate) mod directory;
pub(crate) mod options;
mod other_waits;
mod session_queue;
mod wait;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

use self::options::{AfterSessionLoss, QueueOptions};
use self::session_queue::{SessionQueue, SharedQueue, Turns, check_label, entries};
use crate::error::Error;
use crate::events::RecipeInfo;
use crate::events::attempt::AttemptRecord;
use crate::hold::Hold;
use crate::invalid_input::InvalidInput;
use crate::owner;
use crate::path::NodePath;
use crate::recipe::{QueueEntry, Recipe, within};
use crate::rule::{Rule, WaitStrategy};
use crate::server::checks::check_time_limit;
use crate::session::handle::Session;

/// A queue of contenders under one directory, in which a [`Rule`] decides who holds.
///
/// All recipes use it, and it is a [`Recipe`] itself. A custom recipe is a rule and a `Queue`. A
/// clone is cheap: the clones share one queue.
///
/// # Errors, cancel safety, session loss
///
/// Those of the method of the same name of [`Recipe`]. In addition, an attempt fails with
/// [`Error::InvalidInput`] if the rule breaks its contract.
///
/// # Not reentrant
///
/// If a task that holds acquires again, it is one more contender. If the rule does not let both
/// hold, the task deadlocks. [`acquire_timeout`](Self::acquire_timeout) bounds the wait. An event
/// warns at once ([events](crate::docs::events)).
#[derive(Clone)]
pub struct Queue {
    shared: Arc<SharedQueue>,
}

impl Queue {
    /// A queue under `path`, with the default options. The call sends nothing.
    ///
    /// # Errors
    ///
    /// Those of [`with_options`](Self::with_options).
    pub fn new(
        session: &Session,
        path: impl AsRef<str>,
        rule: impl Rule + 'static,
    ) -> Result<Queue, InvalidInput> {
        Queue::with_options(session, path, rule, QueueOptions::new())
    }

    /// A queue under `path`, with these options. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] in each of these cases:
    ///
    /// * The path is not a [`NodePath`].
    /// * The access control list is empty.
    /// * A request with the path, the data and the access control list is longer than the servers
    ///   accept: [`ConnectOptions::jute_maxbuffer`](crate::ConnectOptions::jute_maxbuffer).
    /// * No znode's name can contain the rule's label, or the rule does not count its own label.
    /// * The interval of [`WaitStrategy::Poll`] or the [time limit](QueueOptions::max_hold) is zero.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        rule: impl Rule + 'static,
        mut options: QueueOptions,
    ) -> Result<Queue, InvalidInput> {
        let directory = NodePath::new(path.as_ref())?;
        let owner = || session.owner().as_bytes().into();
        check_time_limit(options.max_hold)?;
        let data = options.data.get_or_insert_with(owner);
        let label = rule.label().into_owned();
        let name = check_label(&rule, &label)?;
        let scope = session.scope();
        scope.check_contender(directory.as_str(), &name, data, &options.acl)?;
        if options.strategy == WaitStrategy::Poll(Duration::ZERO) {
            return Err(InvalidInput::new("poll interval", "0", "must not be zero"));
        }
        Ok(Queue::of(session, &directory, rule, label, &options))
    }

    fn of(
        session: &Session,
        directory: &NodePath,
        rule: impl Rule + 'static,
        label: String,
        options: &QueueOptions,
    ) -> Queue {
        let owner = options.data.as_deref().and_then(owner::in_data);
        let info = RecipeInfo {
            recipe: rule.recipe(&label),
            name: options.name.clone(),
            path: directory.clone(),
            owner: owner.map_or_else(|| session.owner().into(), Into::into),
            leads: options.leads,
        };
        let shared = SharedQueue {
            session: session.clone(),
            directory: directory.clone(),
            label: check_label(&rule, &label).map(|_| label),
            rule: Arc::new(rule),
            turns: options.is_one_contender.then(Turns::default),
            options: options.clone(),
            info: Arc::new(info),
        };
        Queue {
            shared: Arc::new(shared),
        }
    }

    /// The same queue, for contenders of another kind. The call sends nothing.
    ///
    /// The two queues do not share the queue within the process
    /// ([`QueueOptions::one_contender`]): each kind has its own.
    pub fn by(&self, rule: impl Rule + 'static) -> Queue {
        let (shared, label) = (&self.shared, rule.label().into_owned());
        let (session, directory) = (&shared.session, &shared.directory);
        Queue::of(session, directory, rule, label, &shared.options)
    }

    /// The session of the queue.
    pub fn session(&self) -> &Session {
        &self.shared.session
    }

    /// The options of the queue.
    pub fn options(&self) -> &QueueOptions {
        &self.shared.options
    }

    /// True if this is the only clone, and no task of the process waits or holds by it.
    ///
    /// A task counts from its first wait until the deletion of its hold's znode is sent, but only
    /// with [`QueueOptions::one_contender`]. The answer remains true until this value is cloned or
    /// used.
    // Hidden: it serves the values of the crate `lock` that many names share.
    #[doc(hidden)]
    pub fn is_idle(&self) -> bool {
        // In this order: without another clone, no turn begins after the first look.
        Arc::strong_count(&self.shared) == 1
            && self.shared.turns.as_ref().is_none_or(Turns::is_idle)
    }

    /// Waits until the queue's rule lets a new contender hold.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | nobody else in the queue: a create and a list | 2 | 1 | 0 |
    /// | the same from the third time on, if no other contender came in between: a create | 1 | 1 | 0 |
    /// | the same from the third time on, if one came in between: a create, then a list | 2 | 2 | 0 |
    /// | to wait: a read of the own znode, and one of each contender that the rule names | 1 more, and 1 for each | 1 more | 1, and 1 for each |
    /// | to look again, after one of these contenders has left: a list | 1 more | 1 more | 0 |
    /// | first contender of a session that marks releases: a transaction | 1 more | 1 more | 0 |
    ///
    /// If the rule [reads the directory](Rule::reads_directory), each look sends one request more,
    /// together with the others. The wait then sets one watch more. If the rule
    /// [looks behind](Rule::looks_behind), each look after the first sends one request more.
    /// [`docs::handoff`](crate::docs::handoff) says when the fast paths apply.
    ///
    /// The call waits for a connection first, without a limit. It then waits for the replies to
    /// creates whose attempts in this session were dropped: at most one round trip.
    pub async fn acquire(&self) -> Result<Hold, Error> {
        let attempt = AttemptRecord::begin(&self.shared.info);
        attempt.report(pin!(self.acquire_in(&attempt))).await
    }

    async fn acquire_in(&self, attempt: &AttemptRecord) -> Result<Hold, Error> {
        let turn = match &self.shared.turns {
            None => None,
            Some(turns) => Some(turns.wait().await),
        };
        let hold = self.shared.hold(attempt).await?;
        Ok(self.with_turn(hold, turn))
    }

    /// As [`acquire`](Self::acquire), for at most `timeout`.
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        let attempt = AttemptRecord::begin(&self.shared.info);
        let acquire = pin!(self.acquire_in(&attempt));
        let within = within(timeout, &self.shared.directory, acquire);
        attempt.report(within).await
    }

    /// Holds at once if the rule lets a new contender hold; otherwise `None`.
    ///
    /// The call lists the queue first, and writes nothing if the contender would have to wait. It
    /// fails if no server answers: at once if that is known, after the session timeout if not.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the contender would have to wait: a list | 1 | 1 | 0 |
    /// | the contender holds: a list, and an acquisition | 1 more | 1 more | 0 |
    pub async fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        let attempt = AttemptRecord::begin(&self.shared.info);
        let work = pin!(self.try_acquire_in(&attempt));
        let path = &self.shared.directory;
        let bounded = self.shared.session.unless_disconnected(path, work);
        attempt.report_try(bounded).await
    }

    async fn try_acquire_in(&self, attempt: &AttemptRecord) -> Result<Option<Hold>, Error> {
        let turn = match &self.shared.turns {
            None => None,
            Some(turns) => match turns.take_now() {
                Some(turn) => Some(turn),
                None => return Ok(None),
            },
        };
        let hold = self.shared.try_hold(attempt).await?;
        Ok(hold.map(|hold| self.with_turn(hold, turn)))
    }

    /// Lists the contenders that the rule counts, in the order of the queue.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, then all their data in one read | 2 | 2 | 0 |
    /// | nobody is in the queue: the names | 1 | 1 | 0 |
    /// | the directory does not exist, and there is a chroot: a read of it | 1 more | 1 more | 0 |
    pub async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        let queue = &*self.shared;
        let path = queue.directory.as_str();
        let open = queue.session.until_open(path).await?;
        let look = async { entries(&SessionQueue::new(queue, &open)?).await };
        open.live.during(path, pin!(look)).await
    }

    /// The directory of the contenders' znodes.
    pub fn path(&self) -> &NodePath {
        &self.shared.directory
    }

    /// Lets the hold keep the turn of its attempt.
    fn with_turn(&self, hold: Hold, turn: Option<OwnedSemaphorePermit>) -> Hold {
        if let (Some(turns), Some(turn)) = (&self.shared.turns, turn) {
            turns.keep(turn, &hold);
        }
        hold
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Queue")
            .field("directory", &self.shared.directory)
            .field("rule", &self.shared.rule)
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}

impl Recipe for Queue {
    fn acquire(&self) -> BoxFuture<'_, Result<Hold, Error>> {
        Box::pin(self.acquire())
    }

    fn acquire_timeout(&self, timeout: Duration) -> BoxFuture<'_, Result<Hold, Error>> {
        Box::pin(self.acquire_timeout(timeout))
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<Hold>, Error>> {
        Box::pin(self.try_acquire())
    }

    fn contenders(&self) -> BoxFuture<'_, Result<Vec<QueueEntry>, Error>> {
        Box::pin(self.contenders())
    }

    fn path(&self) -> &NodePath {
        self.path()
    }

    fn session(&self) -> &Session {
        self.session()
    }
}

impl SharedQueue {
    /// Waits for a hold, in one ZooKeeper session after another if the options say so.
    async fn hold(&self, attempt: &AttemptRecord) -> Result<Hold, Error> {
        let path = self.directory.as_str();
        let anew = self.options.after_session_loss == AfterSessionLoss::Requeue;
        loop {
            let open = self.session.until_open(path).await?;
            let work = async {
                let queue = SessionQueue::new(self, &open)?;
                attempt::until_granted(&queue, attempt).await
            };
            match open.live.during(path, pin!(work)).await {
                Err(Error::SessionOver { reason, .. }) if anew && reason.is_followed() => {}
                result => return result,
            }
        }
    }

    async fn try_hold(&self, attempt: &AttemptRecord) -> Result<Option<Hold>, Error> {
        let path = self.directory.as_str();
        let open = self.session.until_open(path).await?;
        let work = async {
            let queue = SessionQueue::new(self, &open)?;
            attempt::try_grant(&queue, attempt).await
        };
        open.live.during(path, pin!(work)).await
    }
}
