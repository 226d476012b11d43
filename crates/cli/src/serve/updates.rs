//! Keeps what is served up to date.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use zookeeper_recipes_overview::LiveOverview;

use super::addresses::Addresses;
use super::snapshot::Snapshot;
use crate::failure::Failure;

/// The shortest pause between two snapshots: people read no more of them.
const PAUSE: Duration = Duration::from_millis(250);

/// What the last look has shown, with the addresses of the clients.
pub(crate) async fn snapshot(
    live: &mut watch::Receiver<LiveOverview>,
    addresses: &mut Addresses<'_>,
    is_redacted: bool,
    before: Option<Arc<Snapshot>>,
) -> Result<Arc<Snapshot>, Failure> {
    let last = live.borrow_and_update().clone();
    let addresses = addresses.of(&last.overview).await?;
    // It takes a while for many queues, in which others are answered.
    let build = move || Snapshot::new(last, addresses, is_redacted, before.as_deref());
    let built = spawn_blocking(build).await;
    let built = built.map_err(|error| Failure::internal("cannot show a look", error))?;
    Ok(Arc::new(built))
}

/// Sends what each look has shown. Returns when the session is closed.
pub(crate) async fn follow(
    mut live: watch::Receiver<LiveOverview>,
    mut addresses: Addresses<'_>,
    is_redacted: bool,
    sender: watch::Sender<Arc<Snapshot>>,
) -> Result<(), Failure> {
    loop {
        if live.changed().await.is_err() {
            return Ok(());
        }
        let before = Some(Arc::clone(&sender.borrow()));
        let next = snapshot(&mut live, &mut addresses, is_redacted, before).await?;
        sender.send_replace(next);
        sleep(PAUSE).await;
    }
}
