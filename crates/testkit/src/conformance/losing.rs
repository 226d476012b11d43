//! Holds and waiters that lose their znode or their session.

use zookeeper_recipes_core::{Error, LossReason};

use super::promise::{Kept, PATIENCE, SESSION_TIMEOUT, text};
use super::suite::Conformance;

impl Conformance<'_> {
    pub(super) async fn deletion(&self) -> Kept {
        const PATH: &str = "/conformance/deleted";
        let session = self.session().await?;
        let client = self.administrator().await?;
        let recipe = (self.make)(&session, PATH);
        let hold = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
        client.delete(hold.node_path(), None).await.map_err(text)?;
        match tokio::time::timeout(PATIENCE, hold.lost()).await {
            Ok(LossReason::Deleted) if !hold.is_held() => {}
            other => return Err(format!("its znode was deleted by hand: {other:?}")),
        }
        if !matches!(hold.release().await, Err(Error::Lost { .. })) {
            return Err("a lost hold was released as if it had been held".to_owned());
        }
        self.nothing_left(PATH).await
    }

    pub(super) async fn holder_loss(&self) -> Kept {
        const PATH: &str = "/conformance/holder-loss";
        let (ours, theirs) = (self.session().await?, self.session().await?);
        let holds = self.fill(&ours, PATH).await?;
        let waiting = (self.make)(&theirs, PATH);
        let waiter = tokio::spawn(async move { waiting.acquire_timeout(2 * PATIENCE).await });
        self.queue_length(&*(self.make)(&theirs, PATH), holds.len() + 1)
            .await
            .or_else(|seen| if self.ordered { Err(seen) } else { Ok(()) })?;
        // Asleep for longer than its session lives, as far as the server can tell.
        self.server.pause().map_err(text)?;
        let lost = async {
            for hold in &holds {
                hold.lost().await;
            }
        };
        let told = tokio::time::timeout(SESSION_TIMEOUT, lost).await;
        self.server.resume().map_err(text)?;
        if told.is_err() {
            return Err(format!(
                "silence for {SESSION_TIMEOUT:?}, and it is held still"
            ));
        }
        drop(holds);
        match waiter.await.map_err(text)? {
            Ok(hold) => hold.release().await.map_err(text)?,
            // The waiter's own session may have been lost in the silence.
            Err(Error::SessionOver { .. }) => {}
            Err(error) => return Err(format!("the waiter was forgotten: {error}")),
        }
        let again = (self.make)(&theirs, PATH)
            .acquire_timeout(2 * PATIENCE)
            .await
            .map_err(text)?;
        again.release().await.map_err(text)?;
        self.nothing_left(PATH).await
    }

    pub(super) async fn waiter_loss(&self) -> Kept {
        const PATH: &str = "/conformance/waiter-loss";
        let (ours, theirs) = (self.session().await?, self.session().await?);
        let holds = self.fill(&ours, PATH).await?;
        let waiting = (self.make)(&theirs, PATH);
        let waiter = tokio::spawn(async move { waiting.acquire_timeout(2 * PATIENCE).await });
        if self.ordered {
            self.queue_length(&*(self.make)(&ours, PATH), holds.len() + 1)
                .await?;
        }
        let id = theirs.id().ok_or("the session is gone")?;
        self.server.expire_session(id.0).await.map_err(text)?;
        match waiter.await.map_err(text)? {
            Err(Error::SessionOver { .. }) => {}
            other => return Err(format!("its session was lost: {other:?}")),
        }
        self.queue_length(&*(self.make)(&ours, PATH), holds.len())
            .await?;
        if let Some(hold) = holds.iter().find(|hold| !hold.is_held()) {
            return Err(format!("the waiter's loss became the holder's: {hold:?}"));
        }
        drop(holds);
        let again = (self.make)(&theirs, PATH)
            .acquire_timeout(2 * PATIENCE)
            .await
            .map_err(text)?;
        again.release().await.map_err(text)?;
        self.nothing_left(PATH).await
    }
}
