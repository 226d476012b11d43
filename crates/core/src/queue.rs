//! The queue: the part that all recipes share, from the first request to the hold.
//!
//! An acquisition takes these steps: [`Queue`], `attempt` (create, list, ask the rule), `wait`, a
//! [`Hold`]. `session_queue` reads the queue and orders its contenders.

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
use crate::rule::Rule;
use crate::session::handle::Session;
use futures_util::future::BoxFuture;

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
    /// * No znode's name can contain the rule's label, or the rule does not count its own label.
    /// * An option has a value that cannot work: see [`QueueOptions::check_znode`].
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        rule: impl Rule + 'static,
        options: QueueOptions,
    ) -> Result<Queue, InvalidInput> {
        let directory = NodePath::new(path.as_ref())?;
        let options = options.with_owner(session);
        let label = rule.label().into_owned();
        let name = check_label(&rule, &label)?;
        options.check_contender(session, &directory, &name, options.get_data())?;
        let owner = owner::in_data(options.get_data());
        let owner = owner.map_or_else(|| session.owner().into(), Into::into);
        let (recipe, path) = (rule.recipe(&label), directory.clone());
        let info = RecipeInfo::new(recipe, options.name.clone(), path, owner);
        let shared = SharedQueue {
            session: session.clone(),
            directory,
            label,
            rule: Arc::new(rule),
            turns: options.is_one_contender.then(Turns::default),
            options,
            info: Arc::new(info),
        };
        Ok(Queue {
            shared: Arc::new(shared),
        })
    }

    /// The same queue, for contenders of another kind. The call sends nothing.
    ///
    /// The two queues do not share the queue within the process
    /// ([`QueueOptions::one_contender`]): each kind has its own.
    ///
    /// # Errors
    ///
    /// Those of [`with_options`](Self::with_options).
    pub fn by(&self, rule: impl Rule + 'static) -> Result<Queue, InvalidInput> {
        let shared = &self.shared;
        let options = shared.options.clone();
        Queue::with_options(&shared.session, shared.directory.as_str(), rule, options)
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

    /// Waits for a turn and a hold, in one ZooKeeper session after another if the options say so.
    async fn acquire_in(&self, attempt: &AttemptRecord) -> Result<Hold, Error> {
        let (shared, path) = (&*self.shared, self.shared.directory.as_str());
        let mut turn = match &shared.turns {
            None => None,
            Some(turns) => turns.wait().await,
        };
        let anew = shared.options.after_session_loss == AfterSessionLoss::Requeue;
        loop {
            let open = shared.session.until_open(path).await?;
            let work = async {
                let queue = SessionQueue::new(shared, &open)?;
                attempt::until_granted(&queue, attempt, &mut turn).await
            };
            match open.live.until_over(path, pin!(work)).await {
                Err(Error::SessionOver { reason, .. }) if anew && reason.is_followed() => {}
                result => {
                    return result.inspect(|hold| shared.note_turn(hold));
                }
            }
        }
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
        let (shared, path) = (&*self.shared, self.shared.directory.as_str());
        let mut turn = shared.turns.as_ref().and_then(Turns::take_now);
        if shared.turns.is_some() && turn.is_none() {
            return Ok(None);
        }
        let open = shared.session.until_open(path).await?;
        let work = async {
            let queue = SessionQueue::new(shared, &open)?;
            attempt::try_grant(&queue, attempt, &mut turn).await
        };
        let hold = open.live.until_over(path, pin!(work)).await?;
        Ok(hold.inspect(|hold| shared.note_turn(hold)))
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
        open.live.until_over(path, pin!(look)).await
    }

    /// The directory of the contenders' znodes.
    pub fn path(&self) -> &NodePath {
        &self.shared.directory
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
