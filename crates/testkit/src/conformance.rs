//! What every recipe promises, as a test that any recipe can take.
//!
//! A recipe of one's own passes in a few lines, as each of ours does:
//!
//! ```
//! use std::borrow::Cow;
//! use zookeeper_recipes_core::{InvalidInput, Queue, QueueView, Rule, Verdict};
//! use zookeeper_recipes_testkit::conformance::Conformance;
//! use zookeeper_recipes_testkit::{Server, ServerOptions};
//!
//! /// Holds when nobody is before it.
//! #[derive(Debug)]
//! struct First;
//!
//! impl Rule for First {
//!     fn label(&self) -> Cow<'_, str> {
//!         "turn-".into()
//!     }
//!
//!     fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
//!         Ok(view.place().checked_sub(1).map_or(Verdict::Hold, Verdict::wait_on))
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::start(ServerOptions::new()).await?;
//! let made = |session: &_, path: &str| Box::new(Queue::new(session, path, First).unwrap()) as _;
//! Conformance::new(&server, made).check().await?;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_core::{
    ConnectOptions, Error, FencingToken, Hold, LossReason, Recipe, Session,
};

use crate::Server;

/// What the name of a znode ends with that is the session's, and no contender's.
const OF_THE_SESSION: &str = "-session-lock-2147483647";

/// How long anything may take that the recipe, and not the server's clock, decides.
const PATIENCE: Duration = Duration::from_secs(20);
const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
/// More than any acquisition has awaits.
const MOST_POLLS: usize = 40;

type Make<'a> = dyn Fn(&Session, &str) -> Box<dyn Recipe> + Send + Sync + 'a;

/// The promises that a recipe is held to, on a real server.
///
/// By default those of an exclusive lock that keeps order; what a recipe promises otherwise is
/// said by the other methods.
pub struct Conformance<'a> {
    server: &'a Server,
    make: Box<Make<'a>>,
    block: Option<Box<Make<'a>>>,
    holders: Option<usize>,
    ordered: bool,
}

/// A promise that was not kept, and how that showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPromise {
    /// The promise.
    pub promise: &'static str,
    /// What was seen instead.
    pub seen: String,
}

impl fmt::Display for BrokenPromise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.promise, self.seen)
    }
}

impl std::error::Error for BrokenPromise {}

/// What one promise came to: an account of what was seen where it was not kept.
type Kept<T = ()> = Result<T, String>;

impl<'a> Conformance<'a> {
    /// The recipes that `make` makes for a session and a path, on this server, which nobody else
    /// uses meanwhile.
    pub fn new(
        server: &'a Server,
        make: impl Fn(&Session, &str) -> Box<dyn Recipe> + Send + Sync + 'a,
    ) -> Conformance<'a> {
        let make = Box::new(make);
        Conformance {
            server,
            make,
            block: None,
            holders: Some(1),
            ordered: true,
        }
    }

    /// How many may hold at a time; one unless set.
    #[must_use]
    pub fn holders(mut self, most: usize) -> Conformance<'a> {
        self.holders = Some(most);
        self
    }

    /// Any number may hold at a time, but none while `block` holds at the same path: readers, for
    /// which `block` makes the writer.
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

    /// Holds the recipe to all its promises.
    ///
    /// Takes about ten seconds.
    ///
    /// # Errors
    ///
    /// The first promise that was not kept.
    pub async fn check(self) -> Result<(), BrokenPromise> {
        type Check<'c, 'a> = futures_util::future::BoxFuture<'c, Kept>;
        let promises: [(&'static str, Check<'_, 'a>); 9] = [
            (
                "never more hold than may, and all get through",
                Box::pin(self.exclusion()),
            ),
            ("first come, first served", Box::pin(self.order())),
            ("a failed try leaves no trace", Box::pin(self.tries())),
            ("a deadline is kept", Box::pin(self.deadline())),
            (
                "dropped at any await, an acquisition leaves nothing",
                Box::pin(self.cancelling()),
            ),
            (
                "foreign children are ignored",
                Box::pin(self.foreign_children()),
            ),
            (
                "a holder is told when its znode is deleted",
                Box::pin(self.deletion()),
            ),
            (
                "a hold is lost with its session before the next one holds",
                Box::pin(self.holder_loss()),
            ),
            (
                "a waiter whose session is lost is told, and forgotten",
                Box::pin(self.waiter_loss()),
            ),
        ];
        for (promise, check) in promises {
            check
                .await
                .map_err(|seen| BrokenPromise { promise, seen })?;
        }
        Ok(())
    }

    async fn session(&self) -> Kept<Session> {
        let options = ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
        Session::connect_with(&self.server.connect_string(), options)
            .await
            .map_err(text)
    }

    async fn administrator(&self) -> Kept<Client> {
        Client::connect(&self.server.connect_string())
            .await
            .map_err(text)
    }

    /// Holds so much at `path` that nobody else can.
    async fn fill(&self, session: &Session, path: &str) -> Kept<Vec<Hold>> {
        let block = self.block.as_ref().unwrap_or(&self.make);
        let mut holds = Vec::new();
        for _ in 0..self.holders.unwrap_or(1) {
            let acquired = block(session, path).acquire_timeout(PATIENCE).await;
            holds.push(acquired.map_err(|error| format!("it is free, but: {error}"))?);
        }
        Ok(holds)
    }

    async fn exclusion(&self) -> Kept {
        const PATH: &str = "/conformance/exclusion";
        let contenders = self.holders.unwrap_or(4).min(8) + 4;
        let inside = Arc::new(Inside::default());
        let mut tasks = JoinSet::new();
        let blockers = self.block.iter().map(|block| (block, true));
        let makes = std::iter::repeat_n((&self.make, false), contenders).chain(blockers);
        for (make, blocks) in makes {
            let session = self.session().await?;
            let recipe = make(&session, PATH);
            let inside = inside.clone();
            tasks.spawn(async move {
                for _ in 0..3 {
                    let hold = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
                    inside.enter(blocks, &hold)?;
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    if !hold.is_held() {
                        return Err(format!("not held any more: {:?}", hold.state()));
                    }
                    inside.leave(blocks);
                    hold.release().await.map_err(text)?;
                }
                session.close().await;
                Ok(())
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.map_err(text)??;
        }
        inside.within(self.holders, contenders)?;
        self.nothing_left(PATH).await
    }

    async fn order(&self) -> Kept {
        const PATH: &str = "/conformance/order";
        if !self.ordered {
            return Ok(());
        }
        // Who gets in together, and where one is before the others whom they must not pass.
        let (groups, blocker): (&[&[usize]], _) = match &self.block {
            None => (&[&[0], &[1], &[2], &[3], &[4]], None),
            Some(block) => (&[&[0, 1], &[2], &[3, 4]], Some((2, block))),
        };
        let session = self.session().await?;
        let mut holding = self.fill(&session, PATH).await?;
        let (entered, mut granted) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for number in 0..5 {
            let session = self.session().await?;
            let recipe = match blocker {
                Some((blocker, block)) if blocker == number => block(&session, PATH),
                _ => (self.make)(&session, PATH),
            };
            let entered = entered.clone();
            tasks.spawn(async move {
                let hold = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
                entered.send((number, hold)).map_err(text)
            });
            let queued = holding.len() + number + 1;
            self.queue_length(&*(self.make)(&session, PATH), queued)
                .await?;
        }
        drop(entered);
        let mut newest = None;
        for group in groups {
            // Where so many hold at a time, one goes and one comes: the one that came last goes,
            // since whoever watches too few watches those that came first.
            let staying = self.holders.map_or(0, |_| holding.len() - 1);
            for hold in holding.split_off(staying) {
                hold.release().await.map_err(text)?;
            }
            let mut came = Vec::new();
            for _ in *group {
                match tokio::time::timeout(PATIENCE, granted.recv()).await {
                    Ok(Some(grant)) => came.push(grant),
                    Ok(None) | Err(_) => {
                        return Err(format!("{group:?} could hold, and only {came:?} do"));
                    }
                }
            }
            came.sort_by_key(|(number, _)| *number);
            if !came.iter().map(|(number, _)| number).eq(*group) {
                return Err(format!(
                    "it was the turn of {group:?}, and in came {came:?}"
                ));
            }
            for (_, hold) in came {
                if newest.replace(hold.fencing_token()) >= Some(hold.fencing_token()) {
                    return Err(format!("an older fencing token than before: {hold:?}"));
                }
                holding.push(hold);
            }
        }
        while let Some(task) = tasks.join_next().await {
            task.map_err(text)??;
        }
        drop(holding);
        self.nothing_left(PATH).await
    }

    async fn tries(&self) -> Kept {
        const PATH: &str = "/conformance/tries";
        let (ours, theirs) = (self.session().await?, self.session().await?);
        let recipe = (self.make)(&theirs, PATH);
        let holds = self.fill(&ours, PATH).await?;
        let before = self.names(PATH).await?;
        if recipe.try_acquire().await.map_err(text)?.is_some() {
            return Err("a try succeeded where there was no room".to_owned());
        }
        if self.names(PATH).await? != before {
            return Err("a failed try has written".to_owned());
        }
        for hold in holds {
            hold.release().await.map_err(text)?;
        }
        match recipe.try_acquire().await.map_err(text)? {
            Some(hold) => hold.release().await.map_err(text)?,
            None => return Err("a try failed where there was room".to_owned()),
        }
        self.nothing_left(PATH).await
    }

    async fn deadline(&self) -> Kept {
        const PATH: &str = "/conformance/deadline";
        let (ours, theirs) = (self.session().await?, self.session().await?);
        let holds = self.fill(&ours, PATH).await?;
        let recipe = (self.make)(&theirs, PATH);
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
        self.nothing_left(PATH).await
    }

    async fn cancelling(&self) -> Kept {
        let (ours, theirs) = (self.session().await?, self.session().await?);
        for polls in 1..=MOST_POLLS {
            let path = format!("/conformance/cancelled-{polls}/free");
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
        let path = "/conformance/cancelled/taken";
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

    async fn foreign_children(&self) -> Kept {
        const PATH: &str = "/conformance/foreign";
        let session = self.session().await?;
        let recipe = (self.make)(&session, PATH);
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
                .create(&format!("{PATH}/{name}"), b"", &options)
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
                .delete(&format!("{PATH}/{name}"), None)
                .await
                .map_err(text)?;
        }
        self.nothing_left(PATH).await
    }

    async fn deletion(&self) -> Kept {
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

    async fn holder_loss(&self) -> Kept {
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

    async fn waiter_loss(&self) -> Kept {
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

    async fn names(&self, path: &str) -> Kept<Vec<String>> {
        match self.administrator().await?.list_children(path).await {
            Err(zookeeper_client::Error::NoNode) => Ok(Vec::new()),
            names => names.map_err(text),
        }
    }

    /// Waits until so many hold or wait.
    async fn queue_length(&self, recipe: &dyn Recipe, length: usize) -> Kept {
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

    /// Waits until nobody is in the queue any more and the server has no watch left.
    async fn nothing_left(&self, path: &str) -> Kept {
        let started = Instant::now();
        loop {
            let names = self.names(path).await?;
            let watches = self.server.monitor().await.map_err(text)?.watches;
            let ephemerals = self.server.ephemerals().await.map_err(text)?;
            // A session may keep a znode of its own as long as it lives.
            let is_left = |path: &&String| !path.ends_with(OF_THE_SESSION);
            let ephemerals: Vec<_> = ephemerals.values().flatten().filter(is_left).collect();
            if names.is_empty() && watches == 0 && ephemerals.is_empty() {
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                return Err(format!(
                    "left behind: {names:?}, ephemeral znodes {ephemerals:?}, {watches} watches"
                ));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Who holds, as those who hold have noted.
#[derive(Default)]
struct Inside(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    holders: usize,
    blockers: usize,
    most: usize,
    tokens: Vec<FencingToken>,
}

impl Inside {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, blocks: bool, hold: &Hold) -> Kept {
        let mut seen = self.lock();
        if seen.blockers > 0 || (blocks && seen.holders > 0) {
            return Err("held beside what must be held alone".to_owned());
        }
        if blocks {
            seen.blockers += 1;
            return Ok(());
        }
        seen.holders += 1;
        seen.most = seen.most.max(seen.holders);
        seen.tokens.push(hold.fencing_token());
        Ok(())
    }

    /// Whether as many held at a time as may, of so many who wanted to.
    fn within(&self, holders: Option<usize>, contenders: usize) -> Kept {
        let Seen { most, tokens, .. } = &*self.lock();
        let may = holders.unwrap_or(contenders);
        if *most > may {
            return Err(format!("{most} held at a time, where {may} may"));
        }
        if *most < may.min(2) {
            return Err(format!(
                "never more than {most} held at a time, where {may} may"
            ));
        }
        if holders == Some(1) && !tokens.is_sorted_by(|earlier, later| earlier < later) {
            return Err(format!("the fencing tokens do not grow: {tokens:?}"));
        }
        Ok(())
    }

    fn leave(&self, blocks: bool) {
        let mut seen = self.lock();
        match blocks {
            true => seen.blockers -= 1,
            false => seen.holders -= 1,
        }
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

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Polls a future so many times and drops it then; `None` where it was not finished by then.
async fn polled<T>(work: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut work = pin!(work);
    let mut polls = 0;
    std::future::poll_fn(|context| {
        polls += 1;
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if polls == times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
