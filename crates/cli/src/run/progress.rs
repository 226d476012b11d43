//! What `zkr` prints while it waits: behind which contender, and for how long.

use std::convert::Infallible;
use std::future::pending;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use zookeeper_recipes_core::{QueueEntry, Recipe};

use crate::failure::say;
use crate::plain_text::counted;
use crate::queue::age_of;

/// A wait that is shorter is not reported.
const FIRST_AFTER: Duration = Duration::from_secs(2);

/// With `--verbose`, the wait is reported again so often.
const AGAIN_EVERY: Duration = Duration::from_secs(60);

/// Reports the wait of this session's contender, on a terminal or if `verbose`.
///
/// A report sends three requests.
pub(super) async fn report(recipe: &dyn Recipe, verbose: bool) -> Infallible {
    if !verbose && !stderr().is_terminal() {
        return pending().await;
    }
    let began = Instant::now();
    sleep(FIRST_AFTER).await;
    loop {
        if let Some(text) = text(recipe).await {
            let waited = age_of(began.elapsed());
            say(&format!("{}: waiting for {waited}: {text}", recipe.path()));
        }
        if !verbose {
            return pending().await;
        }
        sleep(AGAIN_EVERY).await;
    }
}

/// Why this session's contender waits. `None` if it is about to hold, or if the read failed.
async fn text(recipe: &dyn Recipe) -> Option<String> {
    let session = recipe.session();
    if !session.is_connected() {
        return Some("no server answers".to_owned());
    }
    // The wait itself reports the error.
    let contenders = recipe.contenders().await.ok()?;
    let own = session.id()?;
    let place = contenders.iter().position(|it| it.session_id == own);
    let before = &contenders[..place.unwrap_or(contenders.len())];
    let first = before.first()?;
    let number = counted(before.len(), "contender is", "contenders are");
    Some(format!(
        "{} holds, in the queue for {}, token {}; {number} before this one",
        name(first),
        age_of(first.created.elapsed().unwrap_or_default()),
        first.fencing_token,
    ))
}

fn name(entry: &QueueEntry) -> &str {
    entry.owner.as_deref().unwrap_or(&entry.name)
}
