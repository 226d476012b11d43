//! `zkr watch` of an assignment of partitions: a bar for each worker, live.

use crossterm::event::{Event, EventStream};
use futures_util::stream::StreamExt;
use tokio::sync::watch;
use zookeeper_recipes_assignment::AssignmentStatus;
use zookeeper_recipes_core::{NodePath, Session};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Reader, print};
use crate::plain_text::json_text;
use crate::screen::{AGES, Screen, ended_by_signal, ends_it};
use crate::verbs::assignment::{json_of, overview};

/// Prints the state at each change, until a signal comes or nobody reads.
pub(crate) async fn follow(
    status: &mut watch::Receiver<AssignmentStatus>,
) -> Result<Exit, Failure> {
    let mut ends = std::pin::pin!(ended_by_signal());
    loop {
        let line = format!("{}\n", json_of(&status.borrow_and_update()));
        if print(&json_text(&line))? == Reader::Gone {
            return Ok(Exit::Done);
        }
        tokio::select! {
            biased;
            signal = &mut ends => return Ok(Exit::Signal(signal)),
            changed = status.changed() => if changed.is_err() {
                return Ok(Exit::Done);
            },
        }
    }
}

/// Draws the bars until the user ends it.
pub(crate) async fn watch(
    session: &Session,
    path: &NodePath,
    status: &mut watch::Receiver<AssignmentStatus>,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let mut keys = EventStream::new();
    let mut ends = std::pin::pin!(ended_by_signal());
    loop {
        let mut lines = overview(path.as_str(), &status.borrow_and_update());
        let (all, rows) = (lines.len(), screen.rows());
        if all > rows {
            lines.truncate(rows);
            lines.push(format!("and {} more", all - rows));
        }
        let trouble = match session.is_connected() {
            true => "",
            false => "no server answers, so this may be old",
        };
        screen.draw(&lines, &format!("q ends  {trouble}"))?;
        tokio::select! {
            biased;
            signal = &mut ends => return Ok(Exit::Signal(signal)),
            key = keys.next() => match key {
                Some(Ok(Event::Key(key))) if ends_it(key) => return Ok(Exit::Done),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Ok(Exit::Done),
            },
            changed = status.changed() => if changed.is_err() {
                return Ok(Exit::Done);
            },
            // The connection may be lost, or be there again.
            () = tokio::time::sleep(AGES) => {}
        }
    }
}
