//! The suite, and the helpers of all its checks.

use std::fmt;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::time::Instant;
use zookeeper_client::{Client, Stat};
use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_core::{ConnectOptions, Error, Hold, Recipe, Session};

use super::checked_server::CheckedServer;
use super::promise::{
    BrokenPromise, Kept, OF_THE_SESSION, Outcome, PATIENCE, SESSION_TIMEOUT, text,
};
use crate::four_letter::{self, FourLetterWord, Monitor};

type Open<'a> =
    dyn Fn(String, ConnectOptions) -> BoxFuture<'a, Result<Session, Error>> + Send + Sync + 'a;
pub(super) type Make<'a> = dyn Fn(&Session, &str) -> Box<dyn Recipe> + Send + Sync + 'a;

const ORDER: &str = "first come, first served";
const EXPIRY: &str =
    "when a holder's session expires, it learns of it, and all waiters get through";

const NO_EXPIRY: &str = "the servers do not let the check end a session";

/// The promises, in the order in which they are checked.
const PROMISES: [&str; 11] = [
    "never more hold than may, and all get through",
    ORDER,
    "a failed try leaves no trace",
    "a deadline is kept",
    "dropped at any await, an acquisition leaves nothing",
    "foreign children are ignored",
    "a holder learns that its znode was deleted",
    "a guarded write is done while its hold is held, and not after",
    "a hold is lost with its session before the next one holds",
    EXPIRY,
    "a waiter that leaves learns why, lets no other in, and keeps no other waiting",
];

/// The promises of one recipe, checked on a [server](CheckedServer).
///
/// By default these are the promises of an exclusive lock that keeps order. The other methods
/// select the promises of other recipes.
pub struct Conformance<'a> {
    pub(super) server: &'a dyn CheckedServer,
    pub(super) make: Box<Make<'a>>,
    pub(super) block: Option<Box<Make<'a>>>,
    pub(super) holders: Option<usize>,
    pub(super) ordered: bool,
    pub(super) directory: String,
    open: Option<Box<Open<'a>>>,
}

impl<'a> Conformance<'a> {
    /// Checks the recipe that `make` creates for a session and a path, on this server.
    ///
    /// No other client may use the server during the check.
    pub fn new(
        server: &'a dyn CheckedServer,
        make: impl Fn(&Session, &str) -> Box<dyn Recipe> + Send + Sync + 'a,
    ) -> Conformance<'a> {
        let make = Box::new(make);
        Conformance {
            server,
            make,
            block: None,
            holders: Some(1),
            ordered: true,
            directory: "/conformance".to_owned(),
            open: None,
        }
    }

    /// Opens each session by a call of `open` with the server's address.
    ///
    /// By default this is [`Session::connect_with`].
    #[must_use]
    pub fn sessions<F>(
        mut self,
        open: impl Fn(String, ConnectOptions) -> F + Send + Sync + 'a,
    ) -> Conformance<'a>
    where
        F: Future<Output = Result<Session, Error>> + Send + 'a,
    {
        self.open = Some(Box::new(move |address, options| {
            open(address, options).boxed()
        }));
        self
    }

    /// How many contenders may hold together. The default is one.
    #[must_use]
    pub fn holders(mut self, most: usize) -> Conformance<'a> {
        self.holders = Some(most);
        self
    }

    /// Any number may hold together, but none while `block` holds at the same path.
    ///
    /// For readers, `block` creates the writer.
    #[must_use]
    pub fn shared(
        mut self,
        block: impl Fn(&Session, &str) -> Box<dyn Recipe> + Send + Sync + 'a,
    ) -> Conformance<'a> {
        self.holders = None;
        self.block = Some(Box::new(block));
        self
    }

    /// The recipe promises no order.
    #[must_use]
    pub fn unordered(mut self) -> Conformance<'a> {
        self.ordered = false;
        self
    }

    /// Checks the recipe at paths below this one, which is not the root. By default `/conformance`.
    ///
    /// The znodes whose paths end with `-stored` and `-absent` in place of a child must not exist.
    #[must_use]
    pub fn directory(mut self, directory: &str) -> Conformance<'a> {
        self.directory = directory.to_owned();
        self
    }

    /// Checks these promises of the recipe, in about twenty seconds:
    ///
    /// * never more hold than may, and all get through;
    /// * first come, first served, unless the recipe is [unordered](Self::unordered);
    /// * a failed try leaves no trace;
    /// * a deadline is kept;
    /// * an acquisition that is dropped at any await leaves nothing;
    /// * foreign children are ignored;
    /// * a holder learns that its znode was deleted;
    /// * a guarded write is done while its hold is held, and not after;
    /// * a hold is lost with its session before the next one holds;
    /// * when a holder's session expires, it learns of it, and all waiters get through;
    /// * a waiter that leaves learns why, lets no other in, and keeps no other waiting.
    ///
    /// The suite does not check how many waiters a release wakes:
    /// [`Laws::wakes`](crate::laws::Laws::wakes) does.
    ///
    /// # Errors
    ///
    /// The first broken promise.
    pub async fn check(self) -> Result<(), BrokenPromise> {
        for (promise, check) in PROMISES.into_iter().zip(self.checks()) {
            if self.obstacle(promise).is_some() {
                continue;
            }
            let kept = check.await;
            kept.map_err(|seen| BrokenPromise { promise, seen })?;
        }
        Ok(())
    }

    /// Checks all promises of [`check`](Self::check), also after one is broken.
    ///
    /// Reports the outcome of each promise when it is known.
    pub async fn check_each(self, mut report: impl FnMut(&'static str, &Outcome) + Send) {
        for (promise, check) in PROMISES.into_iter().zip(self.checks()) {
            let outcome = match self.obstacle(promise) {
                Some(obstacle) => Outcome::Skipped(obstacle),
                None => match check.await {
                    Ok(()) => Outcome::Kept,
                    Err(seen) => Outcome::Broken(seen),
                },
            };
            report(promise, &outcome);
        }
        // The last promise is checked without this part of it.
        if !self.server.expires_sessions() {
            report(
                "a waiter whose session expires learns of it",
                &Outcome::Skipped(NO_EXPIRY),
            );
        }
    }

    /// The checks of all promises, in order.
    fn checks(&self) -> [BoxFuture<'_, Kept>; 11] {
        [
            Box::pin(self.exclusion()),
            Box::pin(self.order()),
            Box::pin(self.tries()),
            Box::pin(self.deadline()),
            Box::pin(self.cancelling()),
            Box::pin(self.foreign_children()),
            Box::pin(self.deletion()),
            Box::pin(self.guarded_writes()),
            Box::pin(self.holder_loss()),
            Box::pin(self.holder_expiry()),
            Box::pin(self.leaving()),
        ]
    }

    /// Why a promise is not checked.
    fn obstacle(&self, promise: &str) -> Option<&'static str> {
        match promise {
            ORDER if !self.ordered => Some("the recipe promises no order"),
            EXPIRY if !self.server.expires_sessions() => Some(NO_EXPIRY),
            _ => None,
        }
    }

    /// The path of a recipe for one check.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    pub(super) async fn session(&self) -> Kept<Session> {
        let options = ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
        let address = self.server.connect_string();
        match &self.open {
            Some(open) => open(address, options).await,
            None => Session::connect_with(&address, options).await,
        }
        .map_err(text)
    }

    pub(super) async fn administrator(&self) -> Kept<Client> {
        Client::connect(&self.server.connect_string())
            .await
            .map_err(text)
    }

    /// Ends a session as if it had expired.
    pub(super) async fn expire(&self, session: SessionId) -> Kept {
        self.server.expire(session).await
    }

    /// Holds so much at `path` that no other contender can hold.
    pub(super) async fn fill(&self, session: &Session, path: &str) -> Kept<Vec<Hold>> {
        let block = self.block.as_ref().unwrap_or(&self.make);
        let mut holds = Vec::new();
        for _ in 0..self.holders.unwrap_or(1) {
            let acquired = block(session, path).acquire_timeout(PATIENCE).await;
            holds.push(acquired.map_err(|error| format!("it is free, but: {error}"))?);
        }
        Ok(holds)
    }

    pub(super) async fn names(&self, path: &str) -> Kept<Vec<String>> {
        match self.administrator().await?.list_children(path).await {
            Err(zookeeper_client::Error::NoNode) => Ok(Vec::new()),
            names => names.map_err(text),
        }
    }

    /// The metadata of a znode, which shows each change of it and of its children.
    pub(super) async fn stat(&self, path: &str) -> Kept<Option<Stat>> {
        let client = self.administrator().await?;
        client.check_stat(path).await.map_err(text)
    }

    /// Waits until this many contenders hold or wait.
    pub(super) async fn queue_length(&self, recipe: &dyn Recipe, length: usize) -> Kept {
        // A recipe without a queue shows only its holder.
        let length = if self.ordered { length } else { length.min(1) };
        let started = Instant::now();
        loop {
            let contenders = recipe.contenders().await.map_err(text)?;
            if contenders.len() == length {
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                return Err(format!("{length} should hold or wait, not {contenders:?}"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the queue is empty and the server has no watch.
    pub(super) async fn nothing_left(&self, path: &str) -> Kept {
        let started = Instant::now();
        while let Some(left) = self.left(path).await? {
            if started.elapsed() > PATIENCE {
                return Err(format!("left behind: {left}"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// What is left of a recipe at this path, and at our own server of all.
    async fn left(&self, path: &str) -> Kept<Option<String>> {
        let names = self.names(path).await?;
        if !self.server.is_ours() {
            return Ok((!names.is_empty()).then(|| format!("{names:?}")));
        }
        let address = self.server.connect_string();
        let watches = Monitor::read(&address).await.map_err(text)?.watches;
        let dump = four_letter::ask(&address, FourLetterWord::Dump).await;
        let ephemerals = four_letter::parse_ephemerals(&dump.map_err(text)?);
        // A session over `zookeeper-client` keeps a znode of its own as long as it lives.
        let is_left = |path: &&String| !path.starts_with(OF_THE_SESSION);
        let ephemerals: Vec<_> = ephemerals.values().flatten().filter(is_left).collect();
        let nothing = names.is_empty() && watches == 0 && ephemerals.is_empty();
        let left = || format!("{names:?}, ephemeral znodes {ephemerals:?}, {watches} watches");
        Ok((!nothing).then(left))
    }
}

impl fmt::Debug for Conformance<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Conformance")
            .field("holders", &self.holders)
            .field("ordered", &self.ordered)
            .finish_non_exhaustive()
    }
}
