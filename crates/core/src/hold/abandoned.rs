//! Creates whose attempts were dropped before the replies came.
//!
//! The server chooses the end of a contender's name, and the reply to the create names the znode.
//! So a task of the session keeps the reply, and deletes the znode that the reply names. Nobody has
//! to look for it. The directory is listed only if the outcome of a create is unknown.
//!
//! While a connection stalls, attempts with deadlines follow one another. If each of them sent its
//! create, the server would create them all at once after the stall, and each list would name them
//! all. So an attempt sends nothing before the abandoned creates are answered.

use std::sync::Arc;

use tokio::sync::watch;

use crate::hold::own_znode::Owned;
use crate::live::live_session::LiveSession;
use crate::server::ensemble::{Created, Reply};
use crate::server::error::{Refusal, ServerError};

/// Counts the abandoned creates of a session.
#[derive(Default)]
pub(crate) struct Abandoned(watch::Sender<Counts>);

#[derive(Clone, Copy, Default)]
struct Counts {
    abandoned: u64,
    answered: u64,
}

impl Abandoned {
    /// Deletes the znode of a create without a reply, in the background.
    ///
    /// `in_doubt` is true if the outcome of an earlier create of the same znode is unknown.
    pub(crate) fn delete_once_answered(
        self: &Arc<Self>,
        mut owned: Owned,
        reply: Reply<'static, Created>,
        in_doubt: bool,
    ) {
        let unanswered = UnansweredCreate::new(self);
        let live = owned.znode.live().clone();
        live.clone().in_background(async move {
            let reply = reply.await;
            live.heard_of_create(&reply);
            match reply {
                Ok(created) if !in_doubt => {
                    owned.znode = owned.znode.znodes().unique(&created.path);
                }
                Err(error) if !in_doubt && !may_exist(&error) => owned.settle(),
                // The name is not known, so the deletion looks for the znode.
                _ => {}
            }
            // Attempts that wait for the reply list the queue without the znode then.
            drop(owned);
            drop(unanswered);
        });
    }

    /// Waits until the creates abandoned by now are answered, and the session has a connection.
    ///
    /// Does not wait for creates that are abandoned later. So an attempt waits for at most one round
    /// trip, though others are dropped all the time.
    pub(crate) async fn until_answered(&self, live: &LiveSession) {
        let mut counts = self.0.subscribe();
        let by_now = counts.borrow().abandoned;
        // This value keeps the sender, so there is no error.
        let _ = counts.wait_for(|counts| counts.answered >= by_now).await;
        live.until_connected().await;
    }
}

/// True if the znode may exist after a create with this error.
///
/// At the end of the count all znodes of one identity have the same name, so a znode of that name
/// is this one.
pub(crate) fn may_exist(error: &ServerError) -> bool {
    matches!(error, ServerError::OutcomeUnknown(_)) || error.is(Refusal::NodeExists)
}

/// An abandoned create without a reply. If it is dropped, no reply is awaited any more.
struct UnansweredCreate(Arc<Abandoned>);

impl UnansweredCreate {
    fn new(abandoned: &Arc<Abandoned>) -> UnansweredCreate {
        abandoned.0.send_modify(|counts| counts.abandoned += 1);
        UnansweredCreate(abandoned.clone())
    }
}

impl Drop for UnansweredCreate {
    fn drop(&mut self) {
        self.0.0.send_modify(|counts| counts.answered += 1);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use futures_util::future::FutureExt;

    use super::*;
    use crate::live::scripted::Scripted;

    #[tokio::test(start_paused = true)]
    async fn attempt_waits_for_no_create_that_is_abandoned_later() {
        let (live, _) = Scripted::open(Duration::ZERO);
        let abandoned = Arc::default();
        let first = UnansweredCreate::new(&abandoned);
        let mut waiting = pin!(abandoned.until_answered(&live));
        assert!(waiting.as_mut().now_or_never().is_none());
        let _later = UnansweredCreate::new(&abandoned);
        drop(first);
        assert!(waiting.now_or_never().is_some());
    }
}
