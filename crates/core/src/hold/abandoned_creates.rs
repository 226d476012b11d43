//! The creates whose attempts were dropped before the replies came.

use std::sync::Arc;

use tokio::sync::watch;

use crate::live::live_session::LiveSession;

/// Counts the creates of a session whose attempts were dropped before the replies came.
///
/// The server chooses the end of a contender's name, and the reply to the create names the znode.
/// So a task of the session keeps the reply, and deletes the znode that the reply names. Nobody has
/// to look for it. The directory is listed only if the outcome of a create is unknown.
///
/// While a connection stalls, attempts with deadlines follow one another. If each of them sent its
/// create, the server would create them all at once after the stall, and each list would name them
/// all. So an attempt sends nothing before the abandoned creates are answered.
#[derive(Default)]
pub(crate) struct AbandonedCreates(watch::Sender<Counts>);

#[derive(Clone, Copy, Default)]
struct Counts {
    abandoned: u64,
    answered: u64,
}

impl AbandonedCreates {
    /// Waits until the creates abandoned by now are answered, and the session has a connection.
    ///
    /// The method does not wait for creates that are abandoned later. So an attempt waits for at
    /// most one round trip, though others are dropped all the time.
    pub(crate) async fn until_answered(&self, live: &LiveSession) {
        let Counts {
            abandoned: by_now,
            answered,
        } = *self.0.borrow();
        if answered < by_now {
            let mut counts = self.0.subscribe();
            // This value keeps the sender, so there is no error.
            let _ = counts.wait_for(|counts| counts.answered >= by_now).await;
        }
        live.until_connected().await;
    }
}

/// An abandoned create without a reply. If it is dropped, no reply is awaited any more.
pub(crate) struct AbandonedCreate(Arc<AbandonedCreates>);

impl AbandonedCreate {
    pub(crate) fn new(abandoned: &Arc<AbandonedCreates>) -> AbandonedCreate {
        abandoned.0.send_modify(|counts| counts.abandoned += 1);
        AbandonedCreate(abandoned.clone())
    }
}

impl Drop for AbandonedCreate {
    fn drop(&mut self) {
        self.0.0.send_modify(|counts| counts.answered += 1);
    }
}

#[cfg(test)]
#[path = "../../tests/unit/abandoned_creates.rs"]
mod tests;
