//! `zkr watch`: who holds and who waits, live.

use std::time::Duration;

use clap::Args;
use crossterm::event::{Event, EventStream};
use futures_util::future::{BoxFuture, FutureExt, select_all};
use futures_util::stream::StreamExt;
use tokio::sync::watch;
use zookeeper_recipes_assignment::{AssignmentOperator, AssignmentStatus};
use zookeeper_recipes_core::ensemble::{ServerSession, Watch as ServerWatch, WatchEvent};
use zookeeper_recipes_core::{Error, NodePath, Refusal, ServerError, Session};
use zookeeper_recipes_overview::QueueStatus;

use crate::connecting::{Connection, close};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Reader, print};
use crate::plain_text::json_text;
use crate::queue::{Picture, Row, json_of, now};
use crate::screen::{AGES, Screen, ended_by_signal, ends_it};
use crate::verbs::assignment::{self, overview};

/// The pause after a look that no server answered.
const PAUSE: Duration = Duration::from_millis(500);

/// Show who holds and who waits, live.
///
/// zkr sets watches instead of polling, and redraws when the queue changes. For a partition
/// assignment it draws a bar per worker. Press `q` to quit.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The directory of a lock, a semaphore or an election, or the path of an assignment.
    path: String,

    /// Print the queue or the assignment at each change as one JSON object per line, for scripts.
    #[arg(long)]
    json: bool,
}

enum Watched {
    Queue,
    Assignment(watch::Receiver<AssignmentStatus>),
}

/// The lines for people. Some have ages.
type Lines = Box<dyn Fn() -> Vec<String>>;

struct Shown<'w> {
    json: String,
    lines: Lines,
    /// Resolves at the next change. False if there is none any more.
    changed: BoxFuture<'w, bool>,
}

impl Watch {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let path = NodePath::new(&self.path)?;
        let mut screen = match self.json {
            true => None,
            false => Some(Screen::new()?),
        };
        let session = connection.open().await?;
        let watched = async {
            let mut watched = Watched::at(&session, &path).await?;
            match &mut screen {
                None => watched.follow(&session, &path).await,
                Some(screen) => {
                    screen.enter()?;
                    watched.draw(&session, &path, screen).await
                }
            }
        };
        let watched = watched.await;
        drop(screen);
        close(session).await;
        watched
    }
}

impl Watched {
    /// The assignment at this path, or the queue if no assignment is there now.
    async fn at(session: &Session, path: &NodePath) -> Result<Watched, Failure> {
        let operator = AssignmentOperator::new(session, path)?;
        let status = operator.watch_status().await?;
        let is_there = !status.borrow().partitions.is_empty();
        Ok(match is_there {
            true => Watched::Assignment(status),
            false => Watched::Queue,
        })
    }

    async fn look(
        &mut self,
        session: &Session,
        path: &NodePath,
        rows: usize,
    ) -> Result<Shown<'_>, Error> {
        match self {
            Watched::Queue => {
                let (queue, changed) = look(session, path, rows).await?;
                let rows = Row::of(&queue);
                let json = json_of(&queue, &rows).to_string();
                let picture = Picture::new(path.as_str(), &queue, rows);
                let lines = move || {
                    let more = (picture.more > 0).then(|| format!("and {} more", picture.more));
                    picture.lines(now()).into_iter().chain(more).collect()
                };
                Ok(Shown {
                    json,
                    lines: Box::new(lines),
                    changed: changed.map(|()| true).boxed(),
                })
            }
            Watched::Assignment(status) => {
                let (json, mut lines) = {
                    let status = status.borrow_and_update();
                    (
                        assignment::json_of(&status).to_string(),
                        overview(path.as_str(), &status),
                    )
                };
                let more = lines.len().saturating_sub(rows);
                if more > 0 {
                    lines.truncate(rows);
                    lines.push(format!("and {more} more"));
                }
                Ok(Shown {
                    json,
                    lines: Box::new(move || lines.clone()),
                    changed: async { status.changed().await.is_ok() }.boxed(),
                })
            }
        }
    }

    /// Prints each change, until a signal comes or nobody reads.
    async fn follow(&mut self, session: &Session, path: &NodePath) -> Result<Exit, Failure> {
        let mut ends = std::pin::pin!(ended_by_signal());
        loop {
            let changed = match self.look(session, path, usize::MAX).await {
                Ok(shown) => {
                    if print(&json_text(&format!("{}\n", shown.json)))? == Reader::Gone {
                        return Ok(Exit::Done);
                    }
                    shown.changed
                }
                Err(error) => pause(error)?,
            };
            tokio::select! {
                biased;
                signal = &mut ends => return Ok(Exit::Signal(signal)),
                is_there = changed => if !is_there {
                    return Ok(Exit::Done);
                },
            }
        }
    }

    /// Draws each change, until the user ends it.
    async fn draw(
        &mut self,
        session: &Session,
        path: &NodePath,
        screen: &mut Screen,
    ) -> Result<Exit, Failure> {
        let mut keys = EventStream::new();
        let mut ends = std::pin::pin!(ended_by_signal());
        let mut lines: Option<Lines> = None;
        loop {
            let mut trouble = String::new();
            let mut changed = match self.look(session, path, screen.rows()).await {
                Ok(shown) => {
                    lines = Some(shown.lines);
                    shown.changed
                }
                Err(error) => {
                    trouble = format!("this may be old: {error}");
                    pause(error)?
                }
            };
            loop {
                let state = match trouble.is_empty() && !session.is_connected() {
                    true => "no server answers, so this may be old",
                    false => &trouble,
                };
                if let Some(lines) = &lines {
                    screen.draw(&lines(), &format!("q ends  {state}"))?;
                }
                tokio::select! {
                    biased;
                    is_there = &mut changed => match is_there {
                        true => break,
                        false => return Ok(Exit::Done),
                    },
                    signal = &mut ends => return Ok(Exit::Signal(signal)),
                    key = keys.next() => match key {
                        Some(Ok(Event::Key(key))) if ends_it(key) => return Ok(Exit::Done),
                        // Another size has other rows.
                        Some(Ok(Event::Resize(..))) => break,
                        Some(Ok(_)) => {}
                        Some(Err(_)) | None => return Ok(Exit::Done),
                    },
                    () = tokio::time::sleep(AGES) => {}
                }
            }
        }
    }
}

/// The pause after a look that no server answered. Other errors end the verb.
fn pause<'w>(error: Error) -> Result<BoxFuture<'w, bool>, Failure> {
    match error {
        Error::Refused { .. } | Error::NoSession { .. } => Err(error.into()),
        _ => Ok(tokio::time::sleep(PAUSE).map(|()| true).boxed()),
    }
}

/// Reads the queue, and returns what resolves when it changes.
async fn look(
    session: &Session,
    path: &NodePath,
    rows: usize,
) -> Result<(QueueStatus, BoxFuture<'static, ()>), Error> {
    let server = session.server(path).await?;
    let at = |error| Error::at(path.as_str(), server.id(), error);
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
