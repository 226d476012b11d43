//! Several recipes as one.

use std::time::Duration;

use futures_util::future::{FutureExt, select_all};
use tokio::time::Instant;
use zookeeper_recipes_core::{Error, Hold, InvalidInput, LossReason, Recipe};

/// Several recipes that are held together, or none of them.
///
/// The recipes are acquired one after the other, in an order that is the same in each process. So
/// two processes that want the same recipes do not deadlock. During the wait for a recipe, the
/// earlier ones are held. One deadline bounds all of them. If one recipe fails, the holds of the
/// others are released. The costs are the sum of the recipes' costs.
///
/// A task that holds one of the recipes must not acquire all of them: it deadlocks, as with
/// [`Queue`](crate::common::Queue#not-reentrant).
///
/// # The order
///
/// Two recipes are compared by their *whole paths*: the chroot of the session and the path below
/// it. Only recipes with the same whole path are compared by the
/// [servers](crate::common::ensemble::EnsembleFacts::servers) of their ensembles.
///
/// A process knows an ensemble only by the hosts of its connect string. So if two recipes have the
/// same whole path in two ensembles, give each process the same list of hosts. Two connect strings
/// without a common `host:port` are taken for two ensembles: one lock under two such names is not
/// found, and the second acquisition waits for the first one until the deadline. All sessions over
/// clients of the user (crate `zookeeper-recipes-adapter`) are taken for sessions of one ensemble.
///
/// ```
/// # use zookeeper_recipes::ExclusiveLock;
/// use std::time::Duration;
/// use zookeeper_recipes::{AllOf, Recipe, Session};
///
/// # fn lock(session: &Session, path: &str) -> Box<dyn Recipe> {
/// #     Box::new(ExclusiveLock::new(session, path).unwrap())
/// # }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
/// let both = AllOf::new([lock(&session, "/accounts/7"), lock(&session, "/accounts/3")])?;
/// let holds = both.acquire_timeout(Duration::from_secs(5)).await?;
/// assert!(holds.is_held());
/// holds.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AllOf {
    /// The recipes, in the order of their ranks.
    recipes: Vec<Box<dyn Recipe>>,
}

/// Decides when a recipe is acquired: recipes are ordered by their ranks.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    whole_path: String,
    /// The servers of its ensemble, sorted.
    servers: Vec<String>,
}

impl Rank {
    fn of(recipe: &dyn Recipe) -> Rank {
        let ensemble = recipe.session().ensemble();
        let chroot = ensemble.facts().chroot.trim_end_matches('/');
        let mut servers = ensemble.facts().servers.clone();
        servers.sort_unstable();
        Rank {
            whole_path: format!("{chroot}{}", recipe.path()),
            servers,
        }
    }

    /// True if both recipes are in one ensemble, because a server is a member of one ensemble only.
    fn shares_a_server(&self, other: &Rank) -> bool {
        self.servers
            .iter()
            .any(|server| other.servers.contains(server))
    }
}

impl AllOf {
    /// Several recipes as one. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if there is no recipe, or if two recipes have the same whole path in one
    /// ensemble. One of the two would wait for the other.
    pub fn new(recipes: impl IntoIterator<Item = Box<dyn Recipe>>) -> Result<AllOf, InvalidInput> {
        let with_rank = |recipe: Box<dyn Recipe>| (Rank::of(&*recipe), recipe);
        let mut recipes: Vec<_> = recipes.into_iter().map(with_rank).collect();
        if recipes.is_empty() {
            let problem = "must contain at least one recipe";
            return Err(InvalidInput::new("recipes", "[]", problem));
        }
        recipes.sort_by(|(left, _), (right, _)| left.cmp(right));
        for (index, (rank, _)) in recipes.iter().enumerate() {
            let before = recipes[..index].iter().rev().map(|(other, _)| other);
            let mut of_path = before.take_while(|other| other.whole_path == rank.whole_path);
            if of_path.any(|other| rank.shares_a_server(other)) {
                let problem = "is given twice, so one recipe would wait for the other";
                return Err(InvalidInput::new("path", &rank.whole_path, problem));
            }
        }
        let recipes = recipes.into_iter().map(|(_, recipe)| recipe).collect();
        Ok(AllOf { recipes })
    }

    /// Waits until all are held.
    ///
    /// # Errors
    ///
    /// The first error of a recipe. [`Error::Lost`] if a hold is lost during the wait for the
    /// others.
    ///
    /// # Cancel safety
    ///
    /// After an error, or if the future is dropped, the holds are released in the background.
    pub async fn acquire(&self) -> Result<AllHold, Error> {
        self.acquire_until(None).await
    }

    /// As [`acquire`](Self::acquire), for at most `timeout` in all: [`Error::DeadlineElapsed`] has the
    /// path of the recipe that was not held in time.
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<AllHold, Error> {
        self.acquire_until(Some(timeout)).await
    }

    async fn acquire_until(&self, timeout: Option<Duration>) -> Result<AllHold, Error> {
        let started = Instant::now();
        let mut held = AllHold { holds: Vec::new() };
        for recipe in &self.recipes {
            let acquire = async {
                let Some(timeout) = timeout else {
                    return recipe.acquire().await;
                };
                let left = timeout.saturating_sub(started.elapsed());
                match recipe.acquire_timeout(left).await {
                    Err(Error::DeadlineElapsed { path, .. }) => {
                        Err(Error::DeadlineElapsed { path, timeout })
                    }
                    result => result,
                }
            };
            let hold = tokio::select! {
                biased;
                lost = held.lost() => Err(lost_error(lost)),
                hold = acquire => hold,
            };
            // The earlier holds are released in the background, because a wait for their release
            // could last past the deadline.
            held.holds.push(hold?);
        }
        Ok(held)
    }

    /// Holds all recipes if they are free; otherwise `None`, with none held.
    ///
    /// # Errors
    ///
    /// The first error of a recipe. [`Error::Lost`] if a hold is lost meanwhile.
    ///
    /// # Cancel safety
    ///
    /// After an error, or if the future is dropped, no recipe is held.
    pub async fn try_acquire(&self) -> Result<Option<AllHold>, Error> {
        let mut held = AllHold { holds: Vec::new() };
        for recipe in &self.recipes {
            let tried = recipe.try_acquire().await;
            let Ok(Some(hold)) = tried else {
                // A release that fails is repeated in the background. The recipe's error counts.
                let released = held.release().await;
                return tried.and(released.map(|()| None));
            };
            held.holds.push(hold);
        }
        if !held.is_held() {
            return Err(lost_error(held.lost().await));
        }
        Ok(Some(held))
    }

    /// The recipes, in the order in which they are acquired.
    pub fn recipes(&self) -> impl Iterator<Item = &dyn Recipe> {
        self.recipes.iter().map(|recipe| &**recipe)
    }
}

fn lost_error((hold, reason): (&Hold, LossReason)) -> Error {
    Error::Lost {
        path: hold.node_path().to_owned(),
        session: hold.session_id(),
        reason,
    }
}

/// The holds of several recipes that are held together.
///
/// If it is dropped, the holds are released in the background, the last acquired first.
#[must_use = "if unused, the holds are released at once"]
#[derive(Debug)]
pub struct AllHold {
    holds: Vec<Hold>,
}

impl AllHold {
    /// The holds, in the order in which they were acquired.
    pub fn holds(&self) -> &[Hold] {
        &self.holds
    }

    /// True if [all are held](crate::HoldView::is_held).
    pub fn is_held(&self) -> bool {
        self.holds.iter().all(|hold| hold.is_held())
    }

    /// The shortest of the times for which each is [certainly held](crate::HoldView::remaining).
    pub fn remaining(&self) -> Duration {
        let remaining = self.holds.iter().map(|hold| hold.remaining());
        remaining.min().unwrap_or_default()
    }

    /// Resolves when one of the holds is lost, with this hold and the reason: see [`Hold::lost`].
    pub async fn lost(&self) -> (&Hold, LossReason) {
        if self.holds.is_empty() {
            return std::future::pending().await;
        }
        let lost = self.holds.iter().map(|hold| hold.lost().boxed());
        let (reason, index, _) = select_all(lost).await;
        (&self.holds[index], reason)
    }

    /// Releases all, the last acquired first, and waits for the server's answers.
    ///
    /// # Errors
    ///
    /// The first error of a [release](Hold::release). The other holds are released, too.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the remaining holds are released in the background.
    pub async fn release(mut self) -> Result<(), Error> {
        let mut result = Ok(());
        while let Some(hold) = self.holds.pop() {
            let released = hold.release().await;
            result = result.and(released);
        }
        result
    }
}

impl Drop for AllHold {
    fn drop(&mut self) {
        while self.holds.pop().is_some() {}
    }
}
