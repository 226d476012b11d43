//! Waiters that leave before their turn, each with another waiter behind it.

use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::task::{JoinError, JoinHandle};
use zookeeper_recipes_core::{Error, Hold, Recipe, Session, SessionEnd};

use super::promise::{Kept, PATIENCE, text};
use super::suite::Conformance;

/// Long enough for two contenders to queue.
const DEADLINE: Duration = Duration::from_secs(2);

/// How long no contender may be let in.
const A_WHILE: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
enum Leaves {
    WhenDropped,
    AtItsDeadline,
    WithItsSession,
    WithItsZnode,
}

impl Leaves {
    /// True if this is how an attempt ends that leaves in this way.
    fn is_end(self, outcome: &Result<Result<Hold, Error>, JoinError>, znode: &str) -> bool {
        match (self, outcome) {
            (Leaves::WhenDropped, Err(error)) => error.is_cancelled(),
            (Leaves::AtItsDeadline, Ok(Err(Error::DeadlineElapsed { .. }))) => true,
            (Leaves::WithItsSession, Ok(Err(Error::SessionOver { reason, .. }))) => {
                *reason == SessionEnd::Expired
            }
            (Leaves::WithItsZnode, Ok(Err(Error::ContenderDeleted { path, .. }))) => path == znode,
            _ => false,
        }
    }
}

impl Conformance<'_> {
    pub(super) async fn leaving(&self) -> Kept {
        let mut ways = vec![Leaves::WhenDropped, Leaves::AtItsDeadline];
        if self.server.expires_sessions() {
            ways.push(Leaves::WithItsSession);
        }
        // A waiter without a queue has no znode.
        if self.ordered {
            ways.push(Leaves::WithItsZnode);
        }
        // Side by side, each way at a path of its own.
        let all = ways.iter().map(async |leaves| {
            let path = self.path(&format!("leaving/{leaves:?}"));
            let left = self.waiter_leaves(*leaves, &path).await;
            left.map(|()| path)
                .map_err(|seen| format!("{leaves:?}: {seen}"))
        });
        let paths: Vec<String> = try_join_all(all).await?;
        for path in paths {
            self.nothing_left(&path).await?;
        }
        Ok(())
    }

    async fn waiter_leaves(&self, leaves: Leaves, path: &str) -> Kept {
        let (ours, theirs) = (self.session().await?, self.session().await?);
        let observer = (self.make)(&ours, path);
        let holds = self.fill(&ours, path).await?;
        let leaver = self.leaver(&theirs, path).await?;
        let leaver = tokio::spawn(async move {
            match leaves {
                Leaves::AtItsDeadline => leaver.acquire_timeout(DEADLINE).await,
                _ => leaver.acquire().await,
            }
        });
        self.queue_length(&*observer, holds.len() + 1).await?;
        let queue = observer.contenders().await.map_err(text)?;
        let znode = queue.last().map(|entry| format!("{path}/{}", entry.name));
        let znode = znode.unwrap_or_default();
        let last = (self.make)(&ours, path);
        let mut last = tokio::spawn(async move { last.acquire_timeout(2 * PATIENCE).await });
        self.queue_length(&*observer, holds.len() + 2).await?;

        match leaves {
            Leaves::WhenDropped => leaver.abort(),
            Leaves::AtItsDeadline => {}
            Leaves::WithItsSession => {
                let id = theirs.id().ok_or("the session is gone")?;
                self.expire(id).await?;
            }
            Leaves::WithItsZnode => {
                let client = self.administrator().await?;
                client.delete(&znode, None).await.map_err(text)?;
            }
        }
        let outcome = leaver.await;
        if !leaves.is_end(&outcome, &znode) {
            return Err(format!("it got {outcome:?}"));
        }
        self.queue_length(&*observer, holds.len() + 1).await?;
        self.is_next(holds, &mut last).await?;
        // Its session continues, or it has a new one.
        let again = (self.make)(&theirs, path).acquire_timeout(PATIENCE).await;
        again.map_err(text)?.release().await.map_err(text)
    }

    /// A recipe that waits for the holds at this path, and that the last waiter waits for too, if
    /// one of its kind waits for another.
    async fn leaver(&self, session: &Session, path: &str) -> Kept<Box<dyn Recipe>> {
        if let Some(block) = &self.block {
            let block = block(session, path);
            match block.try_acquire().await.map_err(text)? {
                None => return Ok(block),
                Some(hold) => hold.release().await.map_err(text)?,
            }
        }
        Ok((self.make)(session, path))
    }

    /// The last waiter holds after these holds, and not beside them.
    async fn is_next(&self, holds: Vec<Hold>, last: &mut JoinHandle<Result<Hold, Error>>) -> Kept {
        if let Ok(early) = tokio::time::timeout(A_WHILE, &mut *last).await {
            return Err(format!("the next one was let in: {early:?}"));
        }
        for hold in holds {
            if !hold.is_held() {
                return Err(format!("the waiter's loss became the holder's: {hold:?}"));
            }
            hold.release().await.map_err(text)?;
        }
        let hold = last.await.map_err(text)?;
        let hold = hold.map_err(|error| format!("the next one was forgotten: {error}"))?;
        hold.release().await.map_err(text)
    }
}
