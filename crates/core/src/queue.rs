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
use std::iter::zip;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::options::{AfterSessionLoss, QueueOptions};
use self::session_queue::{QueueSetup, SessionQueue, UNCOUNTED, rule_is_broken};
use crate::contender::{Contender, Identity, Sequence};
use crate::error::Error;
use crate::events::RecipeInfo;
use crate::events::attempt::AttemptRecord;
use crate::hold::Hold;
use crate::hold::grant::Grant;
use crate::invalid_input::InvalidInput;
use crate::owner;
use crate::path::NodePath;
use crate::recipe::{QueueEntry, Recipe, within};
use crate::rule::{QueueView, Rule};
use crate::session::handle::Session;
use crate::sync::{Mutex, lock};

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
    shared: Arc<Shared>,
}

/// What the clones of a queue share.
struct Shared {
    setup: QueueSetup,
    /// `None` if each attempt is a contender.
    turns: Option<Turns>,
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
        let setup = QueueSetup {
            session: session.clone(),
            directory,
            label,
            rule: Arc::new(rule),
            options,
            info: Arc::new(info),
        };
        let turns = setup.options.is_one_contender.then(Turns::default);
        let shared = Arc::new(Shared { setup, turns });
        Ok(Queue { shared })
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
        let setup = &self.shared.setup;
        let options = setup.options.clone();
        Queue::with_options(&setup.session, setup.directory.as_str(), rule, options)
    }

    /// The session of the queue.
    pub fn session(&self) -> &Session {
        &self.shared.setup.session
    }

    /// The options of the queue.
    pub fn options(&self) -> &QueueOptions {
        &self.shared.setup.options
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
        let attempt = AttemptRecord::begin(&self.shared.setup.info);
        attempt.report(pin!(self.acquire_in(&attempt))).await
    }

    /// Waits for a turn and a hold, in one ZooKeeper session after another if the options say so.
    async fn acquire_in(&self, attempt: &AttemptRecord) -> Result<Hold, Error> {
        let Shared { setup, turns } = &*self.shared;
        let path = setup.directory.as_str();
        let turn = match turns {
            None => None,
            Some(turns) => Some(turns.wait().await),
        };
        let anew = setup.options.after_session_loss == AfterSessionLoss::Requeue;
        loop {
            let open = setup.session.until_open(path).await?;
            let work = async {
                let queue = SessionQueue::new(setup, &open)?;
                attempt::until_granted(&queue, attempt).await
            };
            let hold = match open.live.until_over(path, pin!(work)).await {
                Err(Error::SessionOver { reason, .. }) if anew && reason.is_followed() => continue,
                result => result?,
            };
            self.give(turn, &hold);
            return Ok(hold);
        }
    }

    /// As [`acquire`](Self::acquire), for at most `timeout`.
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        let attempt = AttemptRecord::begin(&self.shared.setup.info);
        let acquire = pin!(self.acquire_in(&attempt));
        let within = within(timeout, self.path(), acquire);
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
        let attempt = AttemptRecord::begin(&self.shared.setup.info);
        let work = pin!(self.try_acquire_in(&attempt));
        let bounded = self.session().unless_disconnected(self.path(), work);
        attempt.report_try(bounded).await
    }

    async fn try_acquire_in(&self, attempt: &AttemptRecord) -> Result<Option<Hold>, Error> {
        let Shared { setup, turns } = &*self.shared;
        let path = setup.directory.as_str();
        let turn = turns.as_ref().and_then(Turns::take_now);
        if turns.is_some() && turn.is_none() {
            return Ok(None);
        }
        let open = setup.session.until_open(path).await?;
        let work = async {
            let queue = SessionQueue::new(setup, &open)?;
            attempt::try_grant(&queue, attempt).await
        };
        let hold = open.live.until_over(path, pin!(work)).await?;
        Ok(hold.inspect(|hold| self.give(turn, hold)))
    }

    /// Lets the hold keep its turn, if there are turns, until the deletion of its znode is sent.
    fn give(&self, turn: Option<OwnedSemaphorePermit>, hold: &Hold) {
        if let (Some(turns), Some(turn)) = (&self.shared.turns, turn) {
            let grant = &hold.view.grant;
            *lock(&turns.last) = Arc::downgrade(grant);
            grant.keep_turn(turn);
        }
    }

    /// Lists the contenders that the rule counts, in the order of the queue.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, then all their data in one read | 2 | 2 | 0 |
    /// | nobody is in the queue: the names | 1 | 1 | 0 |
    /// | the directory does not exist, and there is a chroot: a read of it | 1 more | 1 more | 0 |
    pub async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        let setup = &self.shared.setup;
        let path = setup.directory.as_str();
        let open = setup.session.until_open(path).await?;
        let look = async { entries(&SessionQueue::new(setup, &open)?).await };
        open.live.until_over(path, pin!(look)).await
    }

    /// The directory of the contenders' znodes.
    pub fn path(&self) -> &NodePath {
        &self.shared.setup.directory
    }
}

/// Lists the contenders that the rule counts, in the order of the queue.
async fn entries(queue: &SessionQueue<'_>) -> Result<Vec<QueueEntry>, Error> {
    let mut listing = queue.list().await?;
    if listing.is_missing {
        let (live, server) = (queue.live, &*queue.server);
        live.refuse_missing_chroot(server, queue.directory())
            .await?;
    }
    queue.put_in_order(&mut listing).await?;
    let read = queue.read_each(listing.contenders.iter()).await?;
    // A contender without a znode has left since the list.
    let read = zip(listing.contenders, read);
    let (contenders, nodes): (Vec<_>, Vec<_>) =
        read.filter_map(|(it, node)| Some((it, node?))).unzip();
    let (rule, data) = (&*queue.setup.rule, listing.data.as_deref());
    let each = nodes.into_iter().enumerate().map(|(position, node)| {
        let me = &contenders[position];
        let holds = rule.holds(&QueueView::new(&contenders[..position], me, data));
        QueueEntry::new(position, me.name(), node, holds)
    });
    Ok(each.collect())
}

/// The turns of the tasks that share one contender of the process.
struct Turns {
    /// One permit, which the tasks take first in, first out.
    permit: Arc<Semaphore>,
    /// The grant whose hold had the last turn.
    last: Mutex<Weak<Grant>>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            permit: Arc::new(Semaphore::new(1)),
            last: Mutex::default(),
        }
    }
}

impl Turns {
    /// The turn, if no other task has it or waits for it.
    fn take_now(&self) -> Option<OwnedSemaphorePermit> {
        self.permit.clone().try_acquire_owned().ok()
    }

    async fn wait(&self) -> OwnedSemaphorePermit {
        if let Some(turn) = self.take_now() {
            return turn;
        }
        let last = lock(&self.last).upgrade();
        if let Some(grant) = last {
            grant.warn_of_own_wait("a task without a znode");
        }
        let turn = self.permit.clone().acquire_owned().await;
        turn.expect("nobody closes the semaphore")
    }

    /// True if no task waits or has the turn.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.permit) == 1
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Queue")
            .field("directory", self.path())
            .field("rule", &self.shared.setup.rule)
            .field("options", self.options())
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

/// Refuses a label that cannot name a znode, or that the rule does not count.
///
/// The result is a name with this label. The name of each contender is as long.
fn check_label(rule: &dyn Rule, label: &str) -> Result<String, InvalidInput> {
    let identity = Identity::from_random_bits(0);
    let name = format!("{}{}", identity.name(label), Sequence::from(0));
    if let Err(error) = NodePath::new(&format!("/{name}")) {
        let problem = format!("cannot name a znode: {error}");
        return Err(rule_is_broken(label, &problem));
    }
    if name.contains('/') {
        let problem = "cannot name a znode: the label contains '/'";
        return Err(rule_is_broken(label, problem));
    }
    match Contender::parse(&name, |label| rule.counts(label)) {
        Some(_) => Ok(name),
        None => Err(rule_is_broken(label, UNCOUNTED)),
    }
}
