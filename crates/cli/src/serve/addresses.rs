//! The addresses of the clients, which the servers are asked for now and then.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_overview::{Overview, SessionStatus};

use crate::connecting::Connection;
use crate::failure::Failure;
use crate::four_letter::Servers;

/// The pause between two questions, if sessions without an address were found.
const PAUSE: Duration = Duration::from_secs(10);

/// The pause if there are none, or if the servers report no addresses.
const LONG_PAUSE: Duration = Duration::from_secs(60);

/// The address of each session's client, as the servers have reported it.
pub(crate) struct Addresses<'s> {
    session: &'s Session,
    connection: &'s Connection,
    known: Arc<HashMap<i64, String>>,
    asked_at: Option<Instant>,
    /// The last overview of whose sessions each address is known.
    complete: Option<Arc<Overview>>,
}

impl<'s> Addresses<'s> {
    pub(crate) fn new(session: &'s Session, connection: &'s Connection) -> Addresses<'s> {
        Addresses {
            session,
            connection,
            known: Arc::default(),
            asked_at: None,
            complete: None,
        }
    }

    /// The addresses for this overview. An older one is good enough for a while.
    pub(crate) async fn of(
        &mut self,
        overview: &Arc<Overview>,
    ) -> Result<Arc<HashMap<i64, String>>, Failure> {
        let asked_at = self.asked_at;
        let is_recent = |pause| asked_at.is_some_and(|at| at.elapsed() < pause);
        // The sessions of many queues are counted only if that decides.
        if !overview.queues().is_empty()
            && !is_recent(PAUSE)
            && (!is_recent(LONG_PAUSE) || self.misses_one_of(overview))
        {
            let servers = Servers::of(self.session, self.connection).await?;
            self.known = Arc::new(servers.addresses().await);
            self.asked_at = Some(Instant::now());
            self.complete = None;
        }
        Ok(Arc::clone(&self.known))
    }

    /// True if the servers report addresses, but not that of each session.
    fn misses_one_of(&mut self, overview: &Arc<Overview>) -> bool {
        let complete = self.complete.as_ref();
        if self.known.is_empty() || complete.is_some_and(|it| Arc::ptr_eq(it, overview)) {
            return false;
        }
        let is_known = |it: &SessionStatus| self.known.contains_key(&it.session_id.0);
        let is_complete = overview.sessions().iter().all(is_known);
        self.complete = is_complete.then(|| Arc::clone(overview));
        !is_complete
    }
}
