//! Every loss is marked before the ensemble makes it one.

use zookeeper_recipes_core::SessionId;

use crate::findings::Findings;
use crate::state::State;

/// A znode has been deleted: no contender reports any more that it is held.
///
/// This is the moment before which a holder must know; the next one's grant comes later.
pub(crate) fn at_deletion(
    state: &State,
    path: &str,
    by: Option<SessionId>,
    by_session_end: bool,
) -> Findings {
    state
        .history
        .held()
        .filter(|(_, held)| held.hold.node_path() == path && state.history.is_certain(&held.hold))
        .map(|(_, held)| {
            let session = held.hold.session_id();
            let (promise, how) = if by_session_end {
                let promise = "a loss is marked before the session can have expired";
                (promise, "ended with its session".to_owned())
            } else if by == Some(session) {
                let promise = "what is held is not deleted by its own session";
                (promise, "was deleted by its own session".to_owned())
            } else {
                let promise = "what is held is not deleted by another";
                (promise, format!("was deleted by {by:?}"))
            };
            let text = format!(
                "{path} {how} while {} says {:?}, for another {:?}",
                held.who,
                held.hold.state(),
                held.hold.remaining(),
            );
            (promise, text)
        })
        .collect()
}
