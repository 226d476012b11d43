//! `zkr who`: who holds and who waits, at one moment.

use clap::Args;
use zookeeper_recipes_core::{Error, NodePath, Session};

use crate::connecting::{Connection, close};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::four_letter::Servers;
use crate::output::print;
use crate::plain_text::json_text;
use crate::queue::{Picture, Row, Snapshot};

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
#[derive(Debug, Args)]
pub(crate) struct Who {
    /// The directory of a lock, a semaphore or an election.
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
        let most = if self.all || self.json {
            usize::MAX
        } else {
            SCREEN
        };
        let looked = look(&session, &path, most).await;
        let servers = Servers::of(&session, connection).await;
        close(session).await;
        let ((snapshot, mut rows), servers) = (looked?, servers?);
        if !rows.is_empty() {
            let addresses = servers.addresses().await;
            for row in &mut rows {
                row.address = addresses.get(&row.session.0).cloned();
            }
        }
        let text = if self.json {
            json_text(&format!("{:#}\n", snapshot.json(&rows)))
        } else {
            Picture::new(&self.path, &snapshot, rows).text("; --all shows them")
        };
        print(&text)?;
        Ok(Exit::Done)
    }
}

/// Takes a snapshot, and reads the first contenders.
pub(super) async fn look(
    session: &Session,
    path: &NodePath,
    most: usize,
) -> Result<(Snapshot, Vec<Row>), Error> {
    let server = session.server(path).await?;
    let at = |error| Error::at(path.as_str(), server.id(), error);
    let snapshot = Snapshot::take(&server, path).await.map_err(at)?;
    let rows = snapshot.rows(&server, most).await.map_err(at)?;
    Ok((snapshot, rows))
}
