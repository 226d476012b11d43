//! Attempts that fail or end early, and foreign children in the queue.

use std::time::Duration;

use tokio::time::Instant;
use zookeeper_client::{Acls, CreateMode};
use zookeeper_recipes_core::Error;

use super::promise::{Kept, MAX_POLLS, PATIENCE, polled, text};
use super::suite::Conformance;

impl Conformance<'_> {
    pub(super) async fn tries(&self) -> Kept {
        let path = &self.path("tries");
        let (ours, theirs) = (self.session().await?, self.session().await?);
        let recipe = (self.make)(&theirs, path);
        let holds = self.fill(&ours, path).await?;
        let before = self.stat(path).await?;
        if recipe.try_acquire().await.map_err(text)?.is_some() {
            return Err("a try succeeded where there was no room".to_owned());
        }
        if self.stat(path).await? != before {
            return Err("a failed try has written".to_owned());
        }
        for hold in holds {
            hold.release().await.map_err(text)?;
        }
        match recipe.try_acquire().await.map_err(text)? {
            Some(hold) => hold.release().await.map_err(text)?,
            None => return Err("a try failed where there was room".to_owned()),
        }
        self.nothing_left(path).await
    }

    pub(super) async fn deadline(&self) -> Kept {
        let path = &self.path("deadline");
        let (ours, theirs) = (self.session().await?, self.session().await?);
        let holds = self.fill(&ours, path).await?;
        let recipe = (self.make)(&theirs, path);
        let started = Instant::now();
        match recipe.acquire_timeout(Duration::from_millis(300)).await {
            Err(Error::DeadlineElapsed { .. }) => {}
            other => return Err(format!("with no room, and 300 ms: {other:?}")),
        }
        if started.elapsed() > PATIENCE / 2 {
            return Err(format!("300 ms took {:?}", started.elapsed()));
        }
        self.queue_length(&*recipe, holds.len()).await?;
        drop(holds);
        self.nothing_left(path).await
    }

    pub(super) async fn cancelling(&self) -> Kept {
        let (ours, theirs) = (self.session().await?, self.session().await?);
        for polls in 1..=MAX_POLLS {
            let path = self.path(&format!("cancelled-{polls}/free"));
            let recipe = (self.make)(&ours, &path);
            let acquired = polled(recipe.acquire(), polls).await;
            let finished = acquired.is_some();
            drop(acquired);
            self.queue_length(&*recipe, 0).await?;
            let again = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
            again.release().await.map_err(text)?;
            self.nothing_left(&path).await?;
            if finished {
                break;
            }
        }
        let path = &self.path("cancelled/taken");
        let holds = self.fill(&ours, path).await?;
        let recipe = (self.make)(&theirs, path);
        for polls in 1..=8 {
            let waiting = polled(recipe.acquire(), polls);
            // A waiter whose requests are all answered is not polled any more: cut off by time.
            if let Ok(Some(_)) = tokio::time::timeout(Duration::from_millis(200), waiting).await {
                return Err("acquired where there was no room".to_owned());
            }
            self.queue_length(&*recipe, holds.len()).await?;
        }
        drop(holds);
        let again = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
        again.release().await.map_err(text)?;
        self.nothing_left(path).await
    }

    pub(super) async fn foreign_children(&self) -> Kept {
        let path = &self.path("foreign");
        let session = self.session().await?;
        let recipe = (self.make)(&session, path);
        let hold = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
        let directory = hold.node_path() != recipe.path().as_str();
        hold.release().await.map_err(text)?;
        if !directory {
            return Ok(());
        }
        let client = self.administrator().await?;
        let foreign = [
            "0",
            "config",
            "lock-",
            "lock-0000000000",
            "\u{2615}",
            "_c_-0000000000",
        ];
        for name in foreign {
            let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
            client
                .create(&format!("{path}/{name}"), b"", &options)
                .await
                .map_err(text)?;
        }
        let hold = recipe
            .acquire_timeout(PATIENCE)
            .await
            .map_err(|error| format!("with foreign children in the directory: {error}"))?;
        let contenders = recipe.contenders().await.map_err(text)?;
        if contenders.len() != 1 {
            return Err(format!(
                "foreign children counted as contenders: {contenders:?}"
            ));
        }
        hold.release().await.map_err(text)?;
        for name in foreign {
            client
                .delete(&format!("{path}/{name}"), None)
                .await
                .map_err(text)?;
        }
        self.nothing_left(path).await
    }
}
