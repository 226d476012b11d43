//! The sessions, and the locks that they hold all the time.

use anyhow::Context;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use zookeeper_recipes_core::{ConnectOptions, Hold, Session};
use zookeeper_recipes_lock::ExclusiveLock;

use crate::plan::{Plan, SESSION_TIMEOUT};

/// How many sessions are opened, or get their locks, at a time.
const AT_A_TIME: usize = 20;

/// Many sessions, each with holds.
pub(crate) struct Fleet {
    pub(crate) sessions: Vec<Session>,
    holds: Vec<Hold>,
}

impl Fleet {
    /// Opens the sessions, and acquires the locks of each.
    pub(crate) async fn open(connect_string: &str, plan: Plan) -> anyhow::Result<Fleet> {
        let options = ConnectOptions::new()
            .session_timeout(SESSION_TIMEOUT)
            .connection_timeout(3 * SESSION_TIMEOUT);
        let open = |_| Session::connect_with(connect_string, options.clone());
        let opening = stream::iter(0..plan.sessions).map(open);
        let sessions = opening.buffer_unordered(AT_A_TIME).try_collect();
        let sessions: Vec<Session> = sessions.await.context("cannot open the sessions")?;
        let each = sessions.iter().enumerate();
        let locks = each.map(|(number, session)| async move {
            let mut holds = Vec::with_capacity(plan.locks);
            for lock in 0..plan.locks {
                let lock = ExclusiveLock::new(session, format!("/held/{number}/{lock}"))?;
                holds.push(lock.acquire().await?);
            }
            anyhow::Ok(holds)
        });
        let held = stream::iter(locks).buffer_unordered(AT_A_TIME);
        let holds: Vec<Vec<Hold>> = held.try_collect().await?;
        let holds = holds.into_iter().flatten().collect();
        Ok(Fleet { sessions, holds })
    }

    pub(crate) fn held(&self) -> usize {
        self.holds.iter().filter(|hold| hold.is_held()).count()
    }

    /// Closes the sessions, with all that they hold.
    pub(crate) async fn close(self) {
        drop(self.holds);
        let closing = self.sessions.into_iter().map(Session::close);
        let closing = stream::iter(closing).buffer_unordered(AT_A_TIME);
        closing.collect::<()>().await;
    }
}
