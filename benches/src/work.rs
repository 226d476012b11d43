//! Work that is measured by doing it again and again.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_recipes_core::Recipe;

use crate::testbed::Testbed;

/// Work that can be done any number of times, one after the other.
pub struct Work {
    /// The name of the work.
    pub name: String,
    run: Box<dyn Fn(u64) -> BoxFuture<'static, Duration>>,
}

impl Work {
    /// Work that does `once` with a clone of `given`, each time.
    pub(crate) fn new<G, F, Done>(name: String, given: G, once: F) -> Work
    where
        G: Clone + Send + Sync + 'static,
        F: Fn(G) -> Done + Clone + Send + Sync + 'static,
        Done: Future<Output = ()> + Send,
    {
        let run = move |times| {
            let (given, once) = (given.clone(), once.clone());
            async move {
                let began = Instant::now();
                for _ in 0..times {
                    once(given.clone()).await;
                }
                began.elapsed()
            }
            .boxed()
        };
        Work {
            name,
            run: Box::new(run),
        }
    }

    /// Acquires and releases a recipe that no other contender wants.
    pub(crate) fn of_recipe(name: &str, recipe: impl Recipe + 'static) -> Work {
        Work::new(
            name.to_owned(),
            Arc::new(recipe),
            |recipe: Arc<_>| async move {
                turn(&*recipe).await;
            },
        )
    }

    /// How long it takes to do it `times` times.
    pub fn measure(&self, testbed: &Testbed, times: u64) -> Duration {
        testbed.run((self.run)(times))
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Work").field(&self.name).finish()
    }
}

/// One acquisition and its release.
pub async fn turn(recipe: &impl Recipe) {
    let hold = recipe.acquire().await.expect("no other contender wants it");
    hold.release().await.expect("it has been held until now");
}
