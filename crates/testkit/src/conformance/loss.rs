//! Holds that lose their znode or their session.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use zookeeper_client::{Acls, CreateMode};
use zookeeper_recipes_core::{Error, Hold, HoldState, LossReason, SessionEnd};

use super::promise::{Kept, PATIENCE, SESSION_TIMEOUT, text};
use super::suite::Conformance;

impl Conformance<'_> {
    pub(super) async fn deletion(&self) -> Kept {
        let path = &self.path("deleted");
        let (ours, theirs) = (self.session().await?, self.session().await?);
        let recipe = (self.make)(&ours, path);
        let hold = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
        self.learns_of_deletion(hold).await?;
        // And then a hold that was waited for.
        let holds = self.fill(&ours, path).await?;
        let waiting = (self.make)(&theirs, path);
        let waiter = tokio::spawn(async move { waiting.acquire_timeout(2 * PATIENCE).await });
        self.queue_length(&*recipe, holds.len() + 1).await?;
        let lost = holds.into_iter().map(|hold| self.learns_of_deletion(hold));
        try_join_all(lost).await?;
        let hold = waiter.await.map_err(text)?.map_err(text)?;
        self.learns_of_deletion(hold).await?;
        self.nothing_left(path).await
    }

    async fn learns_of_deletion(&self, hold: Hold) -> Kept {
        const DELETED: LossReason = LossReason::Deleted;
        let client = self.administrator().await?;
        client.delete(hold.node_path(), None).await.map_err(text)?;
        match tokio::time::timeout(PATIENCE, hold.lost()).await {
            Ok(DELETED) if hold.state() == HoldState::Lost(DELETED) => {}
            other => return Err(format!("its znode was deleted by hand: {other:?}")),
        }
        match hold.release().await {
            Err(Error::Lost { .. }) => Ok(()),
            other => Err(format!("a lost hold was released: {other:?}")),
        }
    }

    pub(super) async fn guarded_writes(&self) -> Kept {
        let path = &self.path("guarded");
        let (stored, absent) = (
            &format!("{}-stored", self.directory),
            &format!("{}-absent", self.directory),
        );
        let session = self.session().await?;
        let client = self.administrator().await?;
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        client.create(stored, b"", &options).await.map_err(text)?;
        let recipe = (self.make)(&session, path);
        let hold = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
        let write = hold.transaction().set_data(stored, b"fresh");
        match write.commit().await {
            // A recipe whose holders share a path has no guarded writes, and says so.
            Err(Error::InvalidInput(_)) => {
                hold.release().await.map_err(text)?;
                client.delete(stored, Some(0)).await.map_err(text)?;
                return self.nothing_left(path).await;
            }
            written => written.map_err(text)?,
        };
        let write = hold.transaction().set_data(absent, b"");
        match write.commit().await {
            Err(Error::Refused { path, .. }) if path == *absent => {}
            other => return Err(format!("nothing is at {absent} to be written: {other:?}")),
        }
        client.delete(hold.node_path(), None).await.map_err(text)?;
        hold.lost().await;
        let write = hold.transaction().set_data(stored, b"stale");
        match write.commit().await {
            Err(Error::Lost { .. }) => {}
            other => return Err(format!("written by a lost holder: {other:?}")),
        }
        let (data, stat) = client.get_data(stored).await.map_err(text)?;
        if data != b"fresh" || stat.version != 1 {
            return Err(format!("stored, in the end: {data:?}, {stat:?}"));
        }
        client.delete(stored, None).await.map_err(text)?;
        drop(hold);
        self.nothing_left(path).await
    }

    pub(super) async fn holder_loss(&self) -> Kept {
        let path = &self.path("holder-loss");
        let (ours, theirs) = (self.session().await?, self.session().await?);
        let holds = self.fill(&ours, path).await?;
        let waiting = (self.make)(&theirs, path);
        let waiter = tokio::spawn(async move { waiting.acquire_timeout(2 * PATIENCE).await });
        self.queue_length(&*(self.make)(&theirs, path), holds.len() + 1)
            .await
            .or_else(|seen| if self.ordered { Err(seen) } else { Ok(()) })?;
        // The server is paused for longer than the session lives.
        self.server.pause()?;
        let timeout = ours.timeout().unwrap_or(SESSION_TIMEOUT);
        let lapsing = join_all(holds.iter().map(|hold| lapse(hold, timeout)));
        let lost = tokio::time::timeout(timeout, lapsing).await;
        self.server.resume()?;
        let Ok(lost) = lost else {
            return Err(format!("silence for {timeout:?}, and it is held still"));
        };
        lost.into_iter().collect::<Kept>()?;
        match waiter.await.map_err(text)? {
            Ok(hold) => hold.release().await.map_err(text)?,
            // The waiter's own session may have been lost in the silence.
            Err(Error::SessionOver { .. }) => {}
            Err(error) => return Err(format!("the waiter was forgotten: {error}")),
        }
        let again = (self.make)(&theirs, path)
            .acquire_timeout(2 * PATIENCE)
            .await
            .map_err(text)?;
        if let Some(hold) = holds.iter().find(|hold| hold.is_held()) {
            return Err(format!("lost, and held again: {hold:?}"));
        }
        drop(holds);
        again.release().await.map_err(text)?;
        self.nothing_left(path).await
    }

    pub(super) async fn holder_expiry(&self) -> Kept {
        let path = &self.path("holder-expiry");
        let (ours, theirs) = (self.session().await?, self.session().await?);
        let recipe = (self.make)(&ours, path);
        let holds = self.fill(&ours, path).await?;
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let waiting = (self.make)(&theirs, path);
                tokio::spawn(async move {
                    let hold = waiting.acquire_timeout(2 * PATIENCE).await?;
                    hold.release().await
                })
            })
            .collect();
        self.queue_length(&*recipe, holds.len() + 2).await?;
        let expired = ours.id().ok_or("the session is gone")?;
        self.expire(expired).await?;
        for waiter in waiters {
            let waited = waiter.await.map_err(text)?;
            waited.map_err(|error| format!("the waiter was forgotten: {error}"))?;
        }
        for hold in &holds {
            match tokio::time::timeout(PATIENCE, hold.lost()).await {
                // The servers delete the znodes of the session, and may report this first.
                Ok(
                    LossReason::Session(SessionEnd::Expired)
                    | LossReason::LeaseElapsed
                    | LossReason::Deleted,
                ) if !hold.is_held() => {}
                other => return Err(format!("its session has expired: {other:?}")),
            }
        }
        drop(holds);
        let renewed = async {
            while ours.id().is_none_or(|id| id == expired) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let renewed = tokio::time::timeout(PATIENCE, renewed).await;
        renewed.map_err(|_| "no new session was opened")?;
        let again = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
        if again.session_id() == expired {
            return Err("it holds in a session that has expired".to_owned());
        }
        again.release().await.map_err(text)?;
        self.nothing_left(path).await
    }
}

/// Waits until a hold is lost at the end of its lease, before the session timeout.
///
/// It is suspended first, and held until then.
async fn lapse(hold: &Hold, timeout: Duration) -> Kept {
    let remaining = hold.remaining();
    if remaining.is_zero() || remaining > timeout {
        return Err(format!("held for {remaining:?} at least"));
    }
    while hold.state() == HoldState::Held {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let suspended = (hold.state(), hold.is_held());
    if suspended != (HoldState::Suspended, true) {
        return Err(format!(
            "after a silence it is not suspended: {suspended:?}"
        ));
    }
    let reason = hold.lost().await;
    if reason != LossReason::LeaseElapsed || !hold.remaining().is_zero() {
        return Err(format!("lost for another reason: {reason}, {hold:?}"));
    }
    Ok(())
}
