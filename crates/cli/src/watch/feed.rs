//! What keeps the content of `zkr watch` up to date.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, select_all};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use zookeeper_recipes_assignment::{AssignmentOperator, AssignmentStatus};
use zookeeper_recipes_core::ensemble::{ServerSession, Watch as ServerWatch, WatchEvent};
use zookeeper_recipes_core::{Error, NodePath, Refusal, ServerError, Session};
use zookeeper_recipes_overview::{LiveOverview, Overview, QueueStatus};

use super::view::Content;
use crate::failure::Failure;

/// The pause after a look that no server answered.
const PAUSE: Duration = Duration::from_millis(500);

/// What the last look has shown, and what became of the looks since.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) content: Content,
    /// When the last look ended, if one look follows the other. `None` if a change is reported.
    pub(crate) looked_at: Option<Instant>,
    /// Why the last look has failed.
    pub(crate) error: Option<String>,
}

/// Where the content comes from.
#[derive(Debug)]
pub(crate) enum Source {
    Queues(watch::Receiver<LiveOverview>),
    Queue(NodePath),
    Assignment(watch::Receiver<AssignmentStatus>),
}

impl Seen {
    fn new(content: Content) -> Seen {
        Seen {
            content,
            looked_at: None,
            error: None,
        }
    }
}

impl Source {
    /// The assignment at this path, or the queue. The queues below it if the path has no contender,
    /// and other znodes.
    pub(crate) async fn at(
        session: &Session,
        path: &str,
        interval: Duration,
    ) -> Result<Source, Failure> {
        if path != "/" {
            let path = NodePath::new(path)?;
            let status = AssignmentOperator::new(session, &path)?
                .watch_status()
                .await?;
            if !status.borrow().partitions.is_empty() {
                return Ok(Source::Assignment(status));
            }
            let server = session.server(&path).await?;
            let queue = QueueStatus::read(&server, &path, 0).await;
            let queue = queue.map_err(|error| Error::at(path.as_str(), server.id, error))?;
            if !queue.is_empty() || queue.foreign().is_empty() {
                return Ok(Source::Queue(path));
            }
        }
        let live = Overview::watch(session, path, interval).await?;
        Ok(Source::Queues(live))
    }

    /// Reports each change, until there is none any more. Of a queue, it reads as many rows as the
    /// caller wants.
    pub(crate) async fn follow(
        self,
        session: &Session,
        rows: watch::Receiver<usize>,
        seen: &watch::Sender<Option<Seen>>,
    ) -> Result<(), Failure> {
        match self {
            Source::Queues(live) => follow_queues(live, seen).await,
            Source::Queue(path) => follow_queue(session, &path, rows, seen).await,
            Source::Assignment(mut status) => loop {
                let content = Content::Assignment(Arc::new(status.borrow_and_update().clone()));
                seen.send_replace(Some(Seen::new(content)));
                if status.changed().await.is_err() {
                    return Ok(());
                }
            },
        }
    }
}

async fn follow_queues(
    mut live: watch::Receiver<LiveOverview>,
    seen: &watch::Sender<Option<Seen>>,
) -> Result<(), Failure> {
    loop {
        let now = live.borrow_and_update().clone();
        let error = now.error.map(passing).transpose()?;
        seen.send_replace(Some(Seen {
            content: Content::Queues(now.overview),
            looked_at: Some(now.looked_at),
            error,
        }));
        if live.changed().await.is_err() {
            return Ok(());
        }
    }
}

async fn follow_queue(
    session: &Session,
    path: &NodePath,
    mut rows: watch::Receiver<usize>,
    seen: &watch::Sender<Option<Seen>>,
) -> Result<(), Failure> {
    loop {
        let most = *rows.borrow_and_update();
        let changed = match look(session, path, most).await {
            Ok((queue, changed)) => {
                seen.send_replace(Some(Seen::new(Content::Queue(Arc::new(queue)))));
                changed
            }
            Err(error) => {
                let error = passing(error)?;
                seen.send_modify(|seen| {
                    if let Some(seen) = seen {
                        seen.error = Some(error);
                    }
                });
                sleep(PAUSE).boxed()
            }
        };
        tokio::select! {
            () = changed => {}
            Ok(()) = rows.changed() => {}
        }
    }
}

/// An error that a later look may not have, as text. Others end the verb.
fn passing(error: Error) -> Result<String, Failure> {
    match error {
        Error::Refused { .. } | Error::NoSession { .. } => Err(error.into()),
        error => Ok(error.to_string()),
    }
}

/// Reads the queue, and returns what resolves when it changes.
async fn look(
    session: &Session,
    path: &NodePath,
    rows: usize,
) -> Result<(QueueStatus, BoxFuture<'static, ()>), Error> {
    let server = session.server(path).await?;
    let at = |error| Error::at(path.as_str(), server.id, error);
    let (queue, watches) = read(&server, path, rows).await.map_err(at)?;
    let changed = select_all(watches).map(|_| ()).boxed();
    Ok((queue, changed))
}

/// Reads the queue with watches on the contenders and on the number of permits.
async fn read(
    server: &ServerSession,
    path: &NodePath,
    most: usize,
) -> Result<(QueueStatus, Vec<ServerWatch>), ServerError> {
    let (names, data) = (
        server.list_and_watch(path.as_str()),
        server.get_and_watch(path.as_str()),
    );
    let (names, data) = (names.await, data.await);
    let mut watches = Vec::new();
    let names = names.map(|(names, watch)| {
        watches.push(watch);
        names
    });
    let data = data.map(|(data, stat, watch)| {
        watches.push(watch);
        (data, stat)
    });
    if matches!(&names, Err(error) if error.is(Refusal::NoNode)) {
        // If the directory was created since the list, the watch is on a change after that.
        let (stat, watch) = server.exists_and_watch(path.as_str()).await?;
        watches.push(if stat.is_some() { created() } else { watch });
    }
    let queue = QueueStatus::of(server, path, names, data, most).await?;
    Ok((queue, watches))
}

/// A watch that has seen the creation already.
fn created() -> ServerWatch {
    std::future::ready(WatchEvent::Unwatched).boxed()
}
