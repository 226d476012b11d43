//! `zkr who`: who holds and who waits, at one moment.

use clap::Args;
use zookeeper_recipes_core::{Error, NodePath, Session};
use zookeeper_recipes_overview::{QueueKind, QueueStatus};

use crate::addresses::Addresses;
use crate::connecting::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
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
/// Of a semaphore of kazoo, zkr shows the leases, and the waiters, which queue at a path beside it.
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
        let shown = connection.within(async |session| self.show(session, connection, &path).await);
        print(&shown.await?)?;
        Ok(Exit::Done)
    }

    async fn show(
        &self,
        session: &Session,
        connection: &Connection,
        path: &NodePath,
    ) -> Result<String, Failure> {
        let queue = look(session, path, self.most()).await?;
        let zkr = connection.command(true);
        if queue.is_empty() && !queue.foreign().is_empty() {
            // They may be members, or have queues below them.
            let below = Look::below(session, connection, &self.path).await?;
            let here = match below.overview.queues() {
                [] => &queue,
                [here] if here.path() == path.as_str() => here,
                _ => return Ok(self.above(&queue, &below)),
            };
            let waiters = match here.kind() {
                QueueKind::KazooSemaphore => {
                    let waiters = NodePath::new(&format!("{path}-__lock__"))?;
                    Some(look(session, &waiters, self.most()).await?)
                }
                _ => None,
            };
            return Ok(self.shown(here, waiters.as_ref(), &below.addresses, &zkr));
        }
        let addresses = match queue.is_empty() {
            true => Addresses::default(),
            false => Addresses::ask(session, connection).await?,
        };
        Ok(self.shown(&queue, None, &addresses, &zkr))
    }

    /// How many contenders are shown.
    fn most(&self) -> usize {
        match self.all || self.json {
            true => usize::MAX,
            false => SCREEN,
        }
    }

    /// A queue, and the one beside it in which contenders wait to be in the first one.
    fn shown(
        &self,
        queue: &QueueStatus,
        waiters: Option<&QueueStatus>,
        addresses: &Addresses,
        zkr: &str,
    ) -> String {
        if self.json {
            let json = |queue| json_of(queue, &Row::of(queue, addresses));
            let mut object = json(queue);
            if let Some(waiters) = waiters {
                object["waiters"] = json(waiters);
            }
            return json_text(&format!("{object:#}\n"));
        }
        let advice = "; --all shows them";
        let text = |queue| Picture::new(queue, addresses, self.most(), zkr).text(advice);
        let mut shown = text(queue);
        if let Some(waiters) = waiters {
            shown +=
                "waiters queue beside it, and the first one there is the next to get a lease:\n";
            shown += &text(waiters);
        }
        if addresses.is_empty() && !queue.is_empty() {
            shown += "note: ADDRESS is missing, because no server allows the word cons: see \
                      4lw.commands.whitelist\n";
        }
        shown
    }

    /// The queues at a path that has no contender in order, and below it.
    fn above(&self, queue: &QueueStatus, below: &Look) -> String {
        let (summaries, now) = (Summary::of_all(&below.overview), now());
        if !self.json {
            let headline = match below.overview.queue(&self.path) {
                Some(_) => "the queues here and below are",
                None => "no contender is here, and below are",
            };
            return format!("{}: {headline}\n{}", self.path, below.text(&summaries, now));
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
    read.map_err(|error| Error::at(path.as_str(), server.id, error))
}
