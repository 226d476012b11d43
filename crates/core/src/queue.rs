//! The queue: what all recipes do alike, from the first request to the hold.
//!
//! One acquisition runs [`Queue::acquire`](crate::Recipe::acquire) → `attempt` (enter the queue: create,
//! list → put the contenders in order → ask the rule) → `wait` (wait) → `attempt` (list, and again),
//! or [`Hold`].

mod attempt;
mod entry;
mod unwatched;
mod wait;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::alone::LastAlone;
use crate::directory::Directories;
use crate::ensemble::{Acl, SessionEnd, SessionId};
use crate::error::{Error, InvalidInput};
use crate::hold::{FencingToken, Grant, Hold};
use crate::local::{LocalQueue, Turn};
use crate::path::NodePath;
use crate::recipe::{QueueEntry, Recipe};
use crate::rule::{Rule, WaitStrategy};
use crate::session::Session;
use crate::transaction::{check_acl, check_data, open_acl};
use attempt::{Attempt, check_label};

/// A queue of contenders under one directory, in which a [`Rule`] says who holds.
///
/// The engine of all recipes, and a [`Recipe`] itself: a recipe of one's own is a rule and a
/// `Queue`. Cheap to clone; the clones are one.
///
/// Acquiring without contention costs two requests, sent together (the creation of the contender's
/// znode, a list of the directory), and releasing one (the deletion). Once the clones of a queue
/// have been alone in it a few times, acquiring costs one (the creation). Whoever has to wait
/// sends two more, together (a watch on its own znode, one on that of each contender it waits on),
/// and one (a list) each time one of those goes, unless it was the only one, or went by a release
/// that said so. For that the first contender of each session costs a request more. See
/// [`docs::handoff`](crate::docs::handoff).
#[derive(Clone)]
pub struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    session: Session,
    directory: NodePath,
    rule: Arc<dyn Rule>,
    options: QueueOptions,
    local: Option<LocalQueue>,
    last_alone: LastAlone,
}

/// What can be chosen about a [`Queue`].
#[derive(Clone, Debug)]
#[must_use]
pub struct QueueOptions {
    strategy: WaitStrategy,
    data: Vec<u8>,
    acl: Vec<Acl>,
    directories: Directories,
    after_session_loss: AfterSessionLoss,
    marks_release: bool,
    local: Option<u32>,
}

/// What an attempt does when the session ends that it was waiting in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AfterSessionLoss {
    /// It fails with [`Error::SessionOver`].
    #[default]
    Fail,
    /// It goes to the end of the queue, in a new session.
    QueueAnew,
}

impl QueueOptions {
    /// Watching the predecessor, no data, an open access control list, container directories,
    /// failing at the loss of the session, releases that are marked where the rule allows it,
    /// no queue within the process.
    pub fn new() -> QueueOptions {
        QueueOptions {
            strategy: WaitStrategy::Predecessor,
            data: Vec::new(),
            acl: open_acl(),
            directories: Directories::Container,
            after_session_loss: AfterSessionLoss::Fail,
            marks_release: true,
            local: None,
        }
    }

    /// How a waiter learns that its turn may have come.
    pub fn strategy(mut self, strategy: WaitStrategy) -> QueueOptions {
        self.strategy = strategy;
        self
    }

    /// What the contender's znode says of its owner, for [`Recipe::contenders`] and for people.
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> QueueOptions {
        self.data = data.into();
        self
    }

    /// The access control list of the znodes that are created, the directories included. Where
    /// releases are marked, those who may read a contender's znode by it can only read it.
    ///
    /// ```
    /// use zookeeper_recipes_core::{Acl, AuthId, ConnectOptions, Permission, QueueOptions};
    ///
    /// // Who shows these credentials may do anything, everyone else may look.
    /// let connect = ConnectOptions::new().auth("digest", "service:secret");
    /// let options = QueueOptions::new().acl([
    ///     Acl::new(Permission::ALL, AuthId::authed()),
    ///     Acl::new(Permission::READ, AuthId::anyone()),
    /// ]);
    /// # let _ = (connect, options);
    /// ```
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> QueueOptions {
        self.acl = acl.into();
        self
    }

    /// What missing directories are created as.
    pub fn directories(mut self, kind: Directories) -> QueueOptions {
        self.directories = kind;
        self
    }

    /// What an attempt does when the session ends that it was waiting in.
    pub fn after_session_loss(mut self, then: AfterSessionLoss) -> QueueOptions {
        self.after_session_loss = then;
        self
    }

    /// Whether a release says that it is one, so that the next holder needs no look at the queue,
    /// where the rule and the ensemble allow it: see [`docs::handoff`](crate::docs::handoff).
    ///
    /// Costs one request for each session. Without it the next holder lists the queue, once for
    /// each release, unless it had nobody else before it. Turn it off where others queue here that are woken by nothing but the deletion
    /// of a znode.
    pub fn mark_release(mut self, mark: bool) -> QueueOptions {
        self.marks_release = mark;
        self
    }

    /// As [`local`](Self::local), unless that was already called.
    pub fn local_by_default(mut self, handovers_in_a_row: u32) -> QueueOptions {
        self.local.get_or_insert(handovers_in_a_row);
        self
    }

    /// Lets the clones of the queue wait for each other within the process, first in, first out,
    /// with one contender in the directory at a time; the lock is handed on without asking the
    /// server at most `handovers_in_a_row` times, before other processes get their turn.
    pub fn local(mut self, handovers_in_a_row: u32) -> QueueOptions {
        self.local = Some(handovers_in_a_row);
        self
    }

    /// What was given as [`data`](Self::data).
    pub fn get_data(&self) -> &[u8] {
        &self.data
    }

    /// What was given as [`acl`](Self::acl).
    pub fn get_acl(&self) -> &[Acl] {
        &self.acl
    }

    /// What was given as [`local`](Self::local), if anything.
    pub fn get_local(&self) -> Option<u32> {
        self.local
    }
}

impl Default for QueueOptions {
    fn default() -> QueueOptions {
        QueueOptions::new()
    }
}

impl Queue {
    /// A queue under `path`, with the default options. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path is no [`NodePath`].
    pub fn new(
        session: &Session,
        path: impl AsRef<str>,
        rule: impl Rule + 'static,
    ) -> Result<Queue, InvalidInput> {
        Queue::with_options(session, path, rule, QueueOptions::new())
    }

    /// A queue under `path`. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path is no [`NodePath`], the access control list is empty, the
    /// data is longer than 1,000,000 bytes, the rule's label can be in no znode's name, or the
    /// interval to poll at is zero.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        rule: impl Rule + 'static,
        options: QueueOptions,
    ) -> Result<Queue, InvalidInput> {
        let directory = NodePath::new(path.as_ref())?;
        check_acl(&options.acl)?;
        check_data(&options.data)?;
        check_label(&rule, &rule.label())?;
        if options.strategy == WaitStrategy::Poll(Duration::ZERO) {
            return Err(InvalidInput::new(
                "interval to poll at",
                "0",
                "must not be zero",
            ));
        }
        let shared = Shared {
            session: session.clone(),
            directory,
            rule: Arc::new(rule),
            local: options.local.map(LocalQueue::new),
            options,
            last_alone: LastAlone::default(),
        };
        Ok(Queue {
            shared: Arc::new(shared),
        })
    }

    /// The same queue for contenders of another kind. Nothing is sent yet.
    ///
    /// The rules of one queue count the same contenders. What one of them has learned of who is in
    /// the queue, the others know as well; within the process
    /// ([`QueueOptions::local`]) each kind waits for itself.
    pub fn by(&self, rule: impl Rule + 'static) -> Queue {
        let shared = Shared {
            session: self.shared.session.clone(),
            directory: self.shared.directory.clone(),
            rule: Arc::new(rule),
            local: self.shared.options.local.map(LocalQueue::new),
            options: self.shared.options.clone(),
            last_alone: self.shared.last_alone.clone(),
        };
        Queue {
            shared: Arc::new(shared),
        }
    }

    /// The session that it stands on.
    pub fn session(&self) -> &Session {
        &self.shared.session
    }

    /// What was chosen about it.
    pub fn options(&self) -> &QueueOptions {
        &self.shared.options
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

#[async_trait]
impl Recipe for Queue {
    async fn acquire(&self) -> Result<Hold, Error> {
        let turn = match &self.shared.local {
            None => None,
            Some(local) => match local.turn().await {
                Turn::Granted(grant, turn) if grant.is_held() => {
                    return Ok(Hold::new(grant, Some(turn)));
                }
                Turn::Granted(_, turn) | Turn::Enter(turn) => Some(turn),
            },
        };
        Ok(Hold::new(self.shared.acquire().await?, turn))
    }

    async fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        let turn = match &self.shared.local {
            None => None,
            Some(local) => match local.try_turn() {
                Some(turn) => Some(turn),
                None => return Ok(None),
            },
        };
        let grant = self.shared.try_acquire().await?;
        Ok(grant.map(|grant| Hold::new(grant, turn)))
    }

    async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        self.shared.contenders().await
    }

    fn path(&self) -> &NodePath {
        &self.shared.directory
    }
}

impl Shared {
    async fn acquire(&self) -> Result<Grant, Error> {
        let path = self.directory.as_str();
        loop {
            let live = self.session.live(path).await?;
            let attempt = async {
                let attempt = Attempt::begin(self, &live)?;
                let (entry, children) = attempt.enter().await?;
                attempt.wait_for_turn(entry, children).await
            };
            match live.during(path, attempt).await {
                Err(Error::SessionOver {
                    reason: SessionEnd::Expired,
                    ..
                }) if self.options.after_session_loss == AfterSessionLoss::QueueAnew => {}
                result => return result,
            }
        }
    }

    async fn try_acquire(&self) -> Result<Option<Grant>, Error> {
        let path = self.directory.as_str();
        let live = self.session.live(path).await?;
        let attempt = async {
            let attempt = Attempt::begin(self, &live)?;
            if !attempt.could_win().await? {
                return Ok(None);
            }
            let (entry, children) = attempt.enter().await?;
            attempt.take_turn(entry, children).await
        };
        live.during(path, attempt).await
    }

    async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        let path = self.directory.as_str();
        let live = self.session.live(path).await?;
        let look = async {
            let attempt = Attempt::begin(self, &live)?;
            let contenders = attempt.in_order(attempt.list().await?).await?;
            let read = attempt.read_each(&contenders).await?;
            Ok(contenders
                .into_iter()
                .zip(read)
                .filter_map(|(contender, node)| Some((contender, node?)))
                .enumerate()
                .map(|(position, (contender, (data, stat)))| QueueEntry {
                    position,
                    name: contender.name().to_owned(),
                    data,
                    session_id: SessionId(stat.ephemeral_owner),
                    fencing_token: FencingToken::from(stat.czxid),
                })
                .collect())
        };
        live.during(path, look).await
    }
}
