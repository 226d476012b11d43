//! How a session deletes znodes whose names nobody else uses, until the outcome is known.
//!
//! The number of requests limits what a session can do in a second. If few znodes are deleted at
//! once, each deletion is a request of its own and is sent without delay. One transaction sends
//! further deletions together. It is applied as a whole or not at all, so each deletion of a
//! transaction that was refused is sent alone.

use std::collections::VecDeque;
use std::iter::zip;
use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};

use crate::live::live_session::LiveSession;
use crate::retry::Backoff;
use crate::server::ensemble::{Operation, ServerSession};
use crate::server::error::{Refusal, ServerError};
use crate::sync::{Mutex, lock};

/// While this many deletions that were sent alone have no answer, further deletions are gathered.
const MAX_SINGLE: usize = 16;
/// The most transactions without an answer.
const MAX_TRANSACTIONS: usize = 4;
/// The most deletions in one transaction.
const MAX_TOGETHER: usize = 64;
/// The sum of the path lengths at which a transaction takes no further path.
///
/// This is far below what a server accepts (`jute.maxbuffer`, by default 1 MiB).
const MAX_BYTES: usize = 64 * 1024;

/// The deletions of one session.
pub(crate) struct Deletions {
    single: Semaphore,
    gathered: Mutex<Gathered>,
}

impl Default for Deletions {
    fn default() -> Deletions {
        Deletions {
            single: Semaphore::new(MAX_SINGLE),
            gathered: Mutex::default(),
        }
    }
}

/// The deletions that are gathered and not sent, and the number of tasks that send them.
#[derive(Default)]
struct Gathered {
    waiting: VecDeque<Deletion>,
    senders: usize,
}

struct Deletion {
    path: Arc<str>,
    answer: oneshot::Sender<Result<(), ServerError>>,
}

/// What a deletion has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeleteOutcome {
    /// The znode is deleted. It may be an earlier request of this process that deleted it.
    Deleted,
    /// Another client had deleted the znode.
    WasGone,
}

impl Deletions {
    /// Deletes a znode whose name nobody else uses, whatever the version of its data.
    ///
    /// The method repeats the deletion until the server answers or the session ends. It succeeds if
    /// the znode is not there. It sends one request, or a share of one, and one more after a
    /// transaction that was refused. A `marked` deletion says that it is a [release](delete_marked).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the deletion may or may not have been sent. It delays no other
    /// deletion.
    pub(crate) async fn delete(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        path: &str,
        mut marked: bool,
    ) -> Result<DeleteOutcome, ServerError> {
        let server = &*live.server()?;
        let mut backoff = Backoff::default();
        let mut not_there = DeleteOutcome::WasGone;
        loop {
            let deleted = match marked {
                true => delete_marked(server, path).await,
                false => self.send(live, server, path).await,
            };
            match deleted {
                Ok(()) => return Ok(DeleteOutcome::Deleted),
                Err(error) if error.is(Refusal::NoNode) => return Ok(not_there),
                Err(error) if error.may_pass() => {
                    not_there = DeleteOutcome::Deleted;
                    backoff.wait().await;
                }
                // A session that may not write to the znode may still delete it.
                Err(ServerError::Refused(_)) if marked => marked = false,
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a deletion, alone or with others.
    async fn send(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        server: &ServerSession,
        path: &str,
    ) -> Result<(), ServerError> {
        if let Ok(_single) = self.single.try_acquire() {
            return server.delete(path).await;
        }
        let answer = self.gather(live, path.into()).await;
        answer.unwrap_or_else(|_| Err(ServerError::outcome_unknown("the session ends")))
    }

    /// Lets a task of the session send the deletion together with others.
    fn gather(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        path: Arc<str>,
    ) -> oneshot::Receiver<Result<(), ServerError>> {
        let (answer, answered) = oneshot::channel();
        let mut gathered = lock(&self.gathered);
        gathered.waiting.push_back(Deletion { path, answer });
        let may_start = gathered.senders < MAX_TRANSACTIONS;
        gathered.senders += usize::from(may_start);
        drop(gathered);
        if may_start {
            // The caller cannot send for the others, because nothing guarantees that a caller is
            // polled.
            live.in_background(self.clone().send_gathered(live.clone()));
        }
        answered
    }

    /// Sends the gathered deletions until none is left.
    ///
    /// The task ends before that only with the session, and with the session each caller ends.
    async fn send_gathered(self: Arc<Self>, live: Arc<LiveSession>) {
        // Without a `ServerSession` the session is over, and the server deletes its znodes.
        while let Ok(server) = live.server() {
            let deletions = self.next(live.chroot().len());
            if deletions.is_empty() {
                return;
            }
            send_batch(&server, deletions).await;
        }
    }

    /// Takes the oldest deletions, as many as one transaction may contain. If none is left, the
    /// sender does not count any more.
    ///
    /// The client puts the chroot before each path.
    fn next(&self, chroot: usize) -> Vec<Deletion> {
        let mut gathered = lock(&self.gathered);
        let mut deletions = Vec::new();
        let mut bytes = 0;
        while deletions.len() < MAX_TOGETHER && bytes < MAX_BYTES {
            let Some(deletion) = gathered.waiting.pop_front() else {
                break;
            };
            if !deletion.answer.is_closed() {
                bytes += chroot + deletion.path.len();
                deletions.push(deletion);
            }
        }
        gathered.senders -= usize::from(deletions.is_empty());
        deletions
    }
}

/// Deletes a holder's znode, and marks the deletion as a release: one request.
///
/// The transaction writes to the znode first. A watch on the znode reports the write, and not the
/// deletion. [`docs::handoff`](crate::docs::handoff) says what a mark saves, and why a waiter can
/// believe it.
async fn delete_marked(server: &ServerSession, path: &str) -> Result<(), ServerError> {
    let operations = vec![Operation::set_data(path, []), Operation::delete(path)];
    let released = server.transact(operations).await;
    released.map(drop).map_err(|failure| failure.error)
}

/// Sends deletions in one transaction. If the server refuses it, sends each alone.
async fn send_batch(server: &ServerSession, deletions: Vec<Deletion>) {
    // A caller that was dropped meanwhile receives no answer.
    if deletions.len() > 1 {
        let operations = deletions.iter().map(|it| Operation::delete(&*it.path));
        let done = server.transact(operations.collect::<Vec<_>>()).await;
        let done = done.map(drop).map_err(|failure| failure.error);
        if !matches!(done, Err(ServerError::Refused(_))) {
            for deletion in deletions {
                let _ = deletion.answer.send(done.clone());
            }
            return;
        }
    }
    let replies: Vec<_> = deletions.iter().map(|it| server.delete(&it.path)).collect();
    for (deletion, reply) in zip(deletions, replies) {
        let _ = deletion.answer.send(reply.await);
    }
}

#[cfg(test)]
#[path = "../../tests/unit/deletion.rs"]
mod tests;
