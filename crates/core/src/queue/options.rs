//! What can be chosen about a queue.

use crate::queue::directory::Directories;
use crate::rule::WaitStrategy;
use crate::server::acl::open_acl;
use crate::server::ensemble::Acl;

/// What can be chosen about a [`Queue`](crate::Queue).
#[derive(Clone, Debug)]
#[must_use]
pub struct QueueOptions {
    pub(super) strategy: WaitStrategy,
    pub(super) data: Vec<u8>,
    pub(super) acl: Vec<Acl>,
    pub(super) directories: Directories,
    pub(super) after_session_loss: AfterSessionLoss,
    pub(super) marks_release: bool,
    pub(super) local: Option<u32>,
}

/// What an attempt does when the session ends that it was waiting in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AfterSessionLoss {
    /// It fails with [`Error::SessionOver`](crate::Error::SessionOver).
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

    /// What the contender's znode says of its owner, for [`Recipe::contenders`](crate::Recipe::contenders) and for people.
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
