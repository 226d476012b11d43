//! Keeps what is served up to date.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use zookeeper_recipes_overview::LiveOverview;

use super::snapshot::{Showing, Snapshot};
use crate::addresses::{AddressBook, Addresses};
use crate::failure::Failure;

/// The shortest pause between two snapshots: people read no more of them.
const PAUSE: Duration = Duration::from_millis(250);

/// What the last look has shown, with the addresses of the clients.
pub(crate) async fn snapshot(
    live: &mut watch::Receiver<LiveOverview>,
    book: &mut AddressBook<'_>,
    showing: Showing,
    before: Option<Arc<Snapshot>>,
) -> Result<Arc<Snapshot>, Failure> {
    let last = live.borrow_and_update().clone();
    let overview = last.overview.clone();
    let are_complete = |known: &Addresses| {
        let sessions = overview.sessions();
        sessions.iter().all(|it| known.has(it.session_id.0))
    };
    let addresses = match overview.queues().is_empty() {
        true => Addresses::default(),
        false => book.refreshed(are_complete).await?,
    };
    // It takes a while for many queues, in which others are answered.
    let build = move || Snapshot::new(last, addresses, showing, before.as_deref());
    let built = spawn_blocking(build).await;
    let built = built.map_err(|error| Failure::internal("cannot show a look", error))?;
    Ok(Arc::new(built))
}

/// Sends what each look has shown. Returns when the session is closed.
pub(crate) async fn follow(
    mut live: watch::Receiver<LiveOverview>,
    mut book: AddressBook<'_>,
    showing: Showing,
    sender: watch::Sender<Arc<Snapshot>>,
) -> Result<(), Failure> {
    loop {
        if live.changed().await.is_err() {
            return Ok(());
        }
        let before = Some(Arc::clone(&sender.borrow()));
        let next = snapshot(&mut live, &mut book, showing.clone(), before).await?;
        sender.send_replace(next);
        sleep(PAUSE).await;
    }
}
