//! The end of a session.

use futures_util::stream;
use tokio::time::sleep_until;

use super::*;
use crate::live::scripted::*;

/// A connection gives up after the session timeout, by its own timer, and says that it is closed.
#[tokio::test(start_paused = true)]
async fn close_is_not_confirmed_by_a_connection_that_gives_up() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let log = Log::up_to(Level::WARN);
    let _listening = tracing::subscriber::set_default(log.clone());
    let millisecond = Duration::from_millis(1);
    for (ends_after, is_confirmed) in [
        (TIMEOUT - millisecond, true),
        (TIMEOUT, false),
        (TIMEOUT + millisecond, false),
    ] {
        let ends_at = Instant::now() + ends_after;
        let state = async move {
            sleep_until(ends_at).await;
            ConnectionState::Ended(SessionEnd::Closed)
        };
        let mut states = stream::once(state).boxed();
        let before = log.lines().len();
        confirmed(&live, live.now(), &mut states).await;
        let warned = log.lines().len() > before;
        assert_eq!(warned, !is_confirmed, "{ends_after:?}");
    }
}
