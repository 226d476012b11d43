//! Deletions of one session, sent together when there are many.
//!
//! A server takes up the requests of one connection one by one, however little each of them asks
//! for, so that what a session can do in a second is counted in requests. As long as few znodes
//! are deleted at once, each deletion is a request of its own, and sent without delay. Those beyond
//! gather, and what has gathered goes in one transaction.
//!
//! A transaction is done as a whole or not at all, so that one that fails says nothing of any
//! single deletion in it: each goes alone then.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::{Semaphore, oneshot};

use crate::server::ensemble::{Operation, ServerSession};
use crate::server::error::ServerError;
use crate::session::live::{Attachment, LiveSession};
use crate::sync::lock;

/// How many deletions are under way alone before others gather.
const MOST_ALONE: usize = 16;
/// How many transactions are under way at once.
const MOST_TRANSACTIONS: usize = 4;
/// How many deletions go in one transaction.
const MOST_TOGETHER: usize = 64;
/// How long the paths in one transaction are together, the last of them left out: far below what a
/// server accepts (`jute.maxbuffer`, by default 1 MiB).
const MOST_BYTES: usize = 64 * 1024;

/// The deletions of one session that are under way.
pub(crate) struct Deletions {
    room: Semaphore,
    gathered: Mutex<Gathered>,
}

impl Attachment for Deletions {
    fn attach(_live: &LiveSession) -> Deletions {
        Deletions {
            room: Semaphore::new(MOST_ALONE),
            gathered: Mutex::default(),
        }
    }
}

/// What has not been sent yet, and how many are about to.
#[derive(Default)]
struct Gathered {
    waiting: VecDeque<Deletion>,
    senders: usize,
}

struct Deletion {
    path: Arc<str>,
    /// Dropped without an answer, it goes alone.
    answer: oneshot::Sender<Result<(), ServerError>>,
}

/// Deletes a znode whose name nobody else uses, whatever the version of its data.
///
/// One request, or a share of one; after a transaction that failed, one more. Comes to what
/// [`ServerSession::delete`] comes to, except that a znode which is not there may have been deleted
/// by the first of the two.
///
/// # Cancel safety
///
/// Dropped half-way, it may or may not have been sent. It holds up none of the others.
pub(crate) async fn delete(
    live: &Arc<LiveSession>,
    server: &dyn ServerSession,
    path: &Arc<str>,
) -> Result<(), ServerError> {
    let deletions = live.attached::<Deletions>();
    if let Ok(_room) = deletions.room.try_acquire() {
        return server.delete(path).await;
    }
    match gather(live, deletions, path.clone()).await {
        Ok(answer) => answer,
        Err(_) => server.delete(path).await,
    }
}

fn gather(
    live: &Arc<LiveSession>,
    deletions: Arc<Deletions>,
    path: Arc<str>,
) -> oneshot::Receiver<Result<(), ServerError>> {
    let (answer, answered) = oneshot::channel();
    let mut gathered = lock(&deletions.gathered);
    gathered.waiting.push_back(Deletion { path, answer });
    let has_room = gathered.senders < MOST_TRANSACTIONS;
    if has_room {
        gathered.senders += 1;
    }
    drop(gathered);
    if has_room {
        let sender = Sender(deletions.clone());
        // A caller might send for the others, but nobody knows whether a caller is polled.
        live.in_background(sender.run(live.clone()));
    }
    answered
}

/// One that sends what has gathered, until there is nothing left. It is counted among the senders
/// until it is dropped.
struct Sender(Arc<Deletions>);

impl Sender {
    async fn run(self, live: Arc<LiveSession>) {
        // Without a server side the session is over, and the server has let go by itself.
        let Ok(server) = live.server() else { return };
        loop {
            let deletions = self.next();
            if deletions.is_empty() {
                return;
            }
            send(&*server, deletions).await;
        }
    }

    /// Takes as many as go in one transaction, in the order of their coming.
    fn next(&self) -> Vec<Deletion> {
        let mut gathered = lock(&self.0.gathered);
        let mut deletions = Vec::new();
        let mut bytes = 0;
        while let Some(deletion) = gathered.waiting.pop_front() {
            if deletion.answer.is_closed() {
                continue;
            }
            bytes += deletion.path.len();
            deletions.push(deletion);
            if deletions.len() == MOST_TOGETHER || bytes >= MOST_BYTES {
                break;
            }
        }
        deletions
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut gathered = lock(&self.0.gathered);
        gathered.senders -= 1;
        // The session is over, or its runtime shuts down: nobody will send for them any more.
        let left = match gathered.senders {
            0 => std::mem::take(&mut gathered.waiting),
            _ => VecDeque::new(),
        };
        drop(gathered);
        drop(left);
    }
}

async fn send(server: &dyn ServerSession, deletions: Vec<Deletion>) {
    let answer = match &*deletions {
        [deletion] => server.delete(&deletion.path).await,
        _ => {
            let operations: Vec<Operation> = deletions
                .iter()
                .map(|deletion| Operation::Delete {
                    path: deletion.path.to_string(),
                    version: None,
                })
                .collect();
            match server.transact(&operations).await {
                Ok(_) => Ok(()),
                Err(failure) if matches!(failure.error, ServerError::SessionOver(_)) => {
                    Err(failure.error)
                }
                Err(_) => return,
            }
        }
    };
    for deletion in deletions {
        // Whoever has been dropped meanwhile wants no answer.
        let _ = deletion.answer.send(answer.clone());
    }
}
