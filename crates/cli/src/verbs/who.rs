//! `zkr who`: who holds and who waits, at one moment.

use std::collections::HashMap;

use clap::Args;
use zookeeper_recipes_core::{Error, NodePath, Session};
use zookeeper_recipes_overview::QueueStatus;

use crate::connecting::{Connection, close};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::four_letter::Servers;
use crate::look::Look;
use crate::output::print;
use crate::plain_text::json_text;
use crate::queue::{Picture, Row, Summary, json_of, now};

/// How many contenders fit on a screen.
const SCREEN: usize = 20;

/// Show who holds and who waits, in queue order.
///
/// The table shows the contenders of zookeeper-recipes, Curator, kazoo and go-zookeeper. zkr lists
/// the queue once, and reads only the contenders that it shows. It warns about znodes that are not
/// contenders, and about contenders of different recipes.
///
/// AGE is the age of a contender's znode, which is the time since it queued. No znode records when a
/// hold began, so a holder's AGE includes its wait. Nor does a znode record which of the older
/// contenders hold after a semaphore was resized: zkr then shows "holds or waits".
///
/// If no contender is at the path, and queues are below it, zkr lists them as `zkr locks` does.
#[derive(Debug, Args)]
pub(crate) struct Who {
    /// The directory of a lock, a semaphore or an election, or a directory above several.
    path: String,

    /// Show all contenders, not only the first ones.
    #[arg(long)]
    all: bool,

    /// Print all contenders as one JSON object, for scripts.
    #[arg(long)]
    json: bool,
}

impl Who {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let path = NodePath::new(&self.path)?;
        let session = connection.open().await?;
        let shown = self.show(&session, connection, &path).await;
        close(session).await;
        print(&shown?)?;
        Ok(Exit::Done)
    }

    async fn show(
        &self,
        session: &Session,
        connection: &Connection,
        path: &NodePath,
    ) -> Result<String, Failure> {
        let most = if self.all || self.json {
            usize::MAX
        } else {
            SCREEN
        };
        let queue = look(session, path, most).await?;
        // The znodes that are no contenders may have queues below them.
        if queue.is_empty() && !queue.foreign().is_empty() {
            let below = Look::below(session, connection, &self.path).await?;
            if !below.overview.queues().is_empty() {
                return Ok(self.above(&queue, &below));
            }
        }
        let addresses = match queue.contenders().next() {
            Some(_) => Servers::of(session, connection).await?.addresses().await,
            None => HashMap::new(),
        };
        let rows = Row::with_addresses(&queue, |session| addresses.get(&session.0).cloned());
        Ok(match self.json {
            true => json_text(&format!("{:#}\n", json_of(&queue, &rows))),
            false => Picture::new(&self.path, &queue, rows).text("; --all shows them"),
        })
    }

    /// The queues below a path without a contender.
    fn above(&self, queue: &QueueStatus, below: &Look) -> String {
        let (summaries, now) = (Summary::of_all(&below.overview), now());
        if !self.json {
            let headline = format!("{}: no contender is here, and below are\n", self.path);
            return headline + &below.text(&summaries, now);
        }
        let mut object = json_of(queue, &[]);
        object["queues"] = below.json(&summaries, now)["queues"].take();
        json_text(&format!("{object:#}\n"))
    }
}

/// Reads a queue, and its first contenders.
pub(super) async fn look(
    session: &Session,
    path: &NodePath,
    most: usize,
) -> Result<QueueStatus, Error> {
    let server = session.server(path).await?;
    let read = QueueStatus::read(&server, path, most).await;
    read.map_err(|error| Error::at(path.as_str(), server.id(), error))
}
