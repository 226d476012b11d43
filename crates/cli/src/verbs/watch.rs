//! `zkr watch`: who holds and who waits, live.

use std::time::Duration;

use clap::Args;
use crossterm::event::{Event, EventStream};
use futures_util::future::{BoxFuture, FutureExt, select_all};
use futures_util::stream::StreamExt;
use tokio::sync::watch;
use zookeeper_recipes_assignment::{AssignmentOperator, AssignmentStatus};
use zookeeper_recipes_core::ensemble::{ServerSession, Watch as ServerWatch};
use zookeeper_recipes_core::{Error, NodePath, Refusal, ServerError, Session};

use crate::connecting::{Connection, close};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Reader, print};
use crate::plain_text::json_text;
use crate::queue::{Picture, Row, Snapshot, now};
use crate::screen::{AGES, Screen, ended_by_signal, ends_it};
use crate::verbs::watch_assignment;

/// The pause after a look that no server answered.
const PAUSE: Duration = Duration::from_millis(500);

/// Show who holds and who waits, live.
///
/// zkr watches the queue, does not poll, and draws the queue anew when it changes. Of an assignment
/// of partitions it draws a bar for each worker. `q` ends it.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The directory of a lock, a semaphore or an election, or the path of an assignment.
    path: String,

    /// Print the queue or the assignment at each change as a JSON object in a line, for programs.
    #[arg(long)]
    json: bool,
}

/// What is drawn, and what ends it.
struct View {
    picture: Picture,
    /// Says what is wrong. Empty if nothing is.
    trouble: String,
}

impl Watch {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let path = NodePath::new(&self.path)?;
        if self.json {
            let session = connection.open().await?;
            let followed = match assignment_at(&session, &path).await? {
                Some(mut status) => watch_assignment::follow(&mut status).await,
                None => follow(&session, &path).await,
            };
            close(session).await;
            return followed;
        }
        let mut screen = Screen::new()?;
        let session = connection.open().await?;
        let watched = async {
            let status = assignment_at(&session, &path).await?;
            screen.enter()?;
            match status {
                Some(mut status) => {
                    watch_assignment::watch(&session, &path, &mut status, &mut screen).await
                }
                None => watch(&session, &path, &mut screen).await,
            }
        };
        let watched = watched.await;
        drop(screen);
        close(session).await;
        watched
    }
}

/// The state of the assignment at this path. `None` if none is there now.
async fn assignment_at(
    session: &Session,
    path: &NodePath,
) -> Result<Option<watch::Receiver<AssignmentStatus>>, Failure> {
    let status = AssignmentOperator::new(session, path)?
        .watch_status()
        .await?;
    let is_there = !status.borrow().partitions.is_empty();
    Ok(is_there.then_some(status))
}

/// Prints the queue at each change, until a signal comes or nobody reads.
async fn follow(session: &Session, path: &NodePath) -> Result<Exit, Failure> {
    let mut ends = std::pin::pin!(ended_by_signal());
    loop {
        let changed: BoxFuture<'_, ()> = match look(session, path, usize::MAX).await {
            Ok((snapshot, rows, changed)) => {
                let line = json_text(&format!("{}\n", snapshot.json(&rows)));
                if print(&line)? == Reader::Gone {
                    return Ok(Exit::Done);
                }
                changed
            }
            Err(error @ (Error::Refused { .. } | Error::NoSession { .. })) => {
                return Err(error.into());
            }
            Err(_) => tokio::time::sleep(PAUSE).boxed(),
        };
        tokio::select! {
            biased;
            signal = &mut ends => return Ok(Exit::Signal(signal)),
            () = changed => {}
        }
    }
}

/// Draws the queue until the user ends it.
async fn watch(session: &Session, path: &NodePath, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut keys = EventStream::new();
    let mut ends = std::pin::pin!(ended_by_signal());
    let mut view = None;
    loop {
        let changed: BoxFuture<'_, ()> = match look(session, path, screen.rows()).await {
            Ok((snapshot, rows, changed)) => {
                let picture = Picture::new(path.as_str(), &snapshot, rows);
                let trouble = String::new();
                view = Some(View { picture, trouble });
                changed
            }
            Err(error @ (Error::Refused { .. } | Error::NoSession { .. })) => {
                return Err(error.into());
            }
            Err(error) => {
                if let Some(view) = &mut view {
                    view.trouble = format!("this may be old: {error}");
                }
                tokio::time::sleep(PAUSE).boxed()
            }
        };
        let mut changed = changed.fuse();
        loop {
            if let Some(view) = &mut view {
                draw(screen, session, view)?;
            }
            tokio::select! {
                biased;
                () = &mut changed => break,
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

fn draw(screen: &mut Screen, session: &Session, view: &View) -> Result<(), Failure> {
    let mut lines = view.picture.lines(now());
    if view.picture.more > 0 {
        lines.push(format!("and {} more", view.picture.more));
    }
    let state = if view.trouble.is_empty() && !session.is_connected() {
        "no server answers, so this may be old"
    } else {
        &view.trouble
    };
    screen.draw(&lines, &format!("q ends  {state}"))
}

/// Reads the queue, and returns what resolves when it changes.
async fn look(
    session: &Session,
    path: &NodePath,
    rows: usize,
) -> Result<(Snapshot, Vec<Row>, BoxFuture<'static, ()>), Error> {
    let server = session.server(path).await?;
    let at = |error| Error::at(path.as_str(), server.id(), error);
    let (snapshot, rows, watches) = read(&*server, path, rows).await.map_err(at)?;
    let changed = select_all(watches).map(|_| ()).boxed();
    Ok((snapshot, rows, changed))
}

/// Takes a snapshot with watches on the contenders and on the number of permits.
async fn read(
    server: &dyn ServerSession,
    path: &NodePath,
    most: usize,
) -> Result<(Snapshot, Vec<Row>, Vec<ServerWatch>), ServerError> {
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
    let snapshot = Snapshot::of(server, path, names, data).await?;
    let rows = snapshot.rows(server, most).await?;
    Ok((snapshot, rows, watches))
}

/// A watch that has seen the creation already.
fn created() -> ServerWatch {
    std::future::ready(zookeeper_recipes_core::ensemble::Event::Created).boxed()
}
