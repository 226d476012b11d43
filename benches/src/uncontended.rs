//! Acquiring and releasing what nobody else wants, and the requests that this sends.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_recipes_core::{NodePath, Recipe};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;

use crate::raw::{RawClient, RawSession};
use crate::testbed::Testbed;

/// Something that can be done any number of times, one after the other.
pub struct Work {
    /// What is done.
    pub name: &'static str,
    run: Box<dyn Fn(u64) -> BoxFuture<'static, Duration>>,
}

impl Work {
    fn new<F, Done>(name: &'static str, once: F) -> Work
    where
        F: Fn() -> Done + Clone + Send + Sync + 'static,
        Done: Future<Output = ()> + Send,
    {
        let run = move |times| {
            let once = once.clone();
            async move {
                let began = Instant::now();
                for _ in 0..times {
                    once().await;
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

    fn of_recipe(name: &'static str, recipe: impl Recipe + 'static) -> Work {
        let recipe = Arc::new(recipe);
        Work::new(name, move || {
            let recipe = recipe.clone();
            async move { turn(&*recipe).await }
        })
    }

    /// How long it takes to do it so many times.
    pub fn measure(&self, testbed: &Testbed, times: u64) -> Duration {
        testbed.run((self.run)(times))
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Work").field(&self.name).finish()
    }
}

async fn turn(recipe: &impl Recipe) {
    let hold = recipe.acquire().await.expect("nobody else wants it");
    hold.release().await.expect("it has been held until now");
}

/// The recipes that send the same requests, and these requests alone; all over one connection.
#[derive(Debug)]
pub struct Comparison {
    /// The requests, sent by `zookeeper-client` itself.
    pub by_client: Work,
    /// The requests, sent through the seam that the recipes use.
    pub by_session: Work,
    /// The recipes.
    pub recipes: Vec<Work>,
}

impl Comparison {
    /// All the recipes there are.
    pub fn all(testbed: &Testbed) -> Vec<Comparison> {
        let client = testbed.client();
        let session = testbed.session_over(&client);
        let directory = || testbed.directory();
        let path = NodePath::new(&directory()).expect(GOOD_PATH);
        let server = testbed.runtime().block_on(session.server(&path));
        let by_client = RawClient::new(&client);
        let by_session = RawSession::new(server.expect("the session is open"));
        let made = |data: &'static str| -> Arc<str> {
            let directory = directory();
            let make = by_client.make(&directory, data.as_bytes());
            testbed.runtime().block_on(make);
            directory.into()
        };

        let of_newcomers = Comparison {
            by_client: {
                let (raw, directory) = (by_client.clone(), made(""));
                Work::new("create + list, delete: by client", move || {
                    let (raw, directory) = (raw.clone(), directory.clone());
                    async move { raw.newcomer(&directory).await }
                })
            },
            by_session: {
                let (raw, directory) = (by_session.clone(), made(""));
                Work::new("create + list, delete: by session", move || {
                    let (raw, directory) = (raw.clone(), directory.clone());
                    async move { raw.newcomer(&directory).await }
                })
            },
            recipes: vec![{
                let (session, directory) = (session.clone(), made(""));
                Work::new("exclusive lock, made anew each time", move || {
                    let lock = ExclusiveLock::new(&session, &*directory).expect(GOOD_PATH);
                    async move { turn(&lock).await }
                })
            }],
        };
        let shared = RwLock::new(&session, directory()).expect(GOOD_PATH);
        let of_queues = Comparison {
            by_client: {
                let (raw, directory) = (by_client.clone(), made(""));
                Work::new("sequential create, delete: by client", move || {
                    let (raw, directory) = (raw.clone(), directory.clone());
                    async move { raw.again(&directory).await }
                })
            },
            by_session: {
                let (raw, directory) = (by_session.clone(), made(""));
                Work::new("sequential create, delete: by session", move || {
                    let (raw, directory) = (raw.clone(), directory.clone());
                    async move { raw.again(&directory).await }
                })
            },
            recipes: vec![
                Work::of_recipe(
                    "exclusive lock",
                    ExclusiveLock::new(&session, directory()).expect(GOOD_PATH),
                ),
                Work::of_recipe("read lock", shared.read().clone()),
                Work::of_recipe("write lock", {
                    let shared = RwLock::new(&session, directory()).expect(GOOD_PATH);
                    shared.write().clone()
                }),
                Work::of_recipe(
                    "leadership",
                    LeaderElection::new(&session, directory(), "node-7").expect(GOOD_PATH),
                ),
            ],
        };
        let of_semaphores = Comparison {
            by_client: {
                let (raw, directory) = (by_client.clone(), made("5"));
                Work::new("create + get, delete: by client", move || {
                    let (raw, directory) = (raw.clone(), directory.clone());
                    async move { raw.semaphore_again(&directory).await }
                })
            },
            by_session: {
                let (raw, directory) = (by_session.clone(), made("5"));
                Work::new("create + get, delete: by session", move || {
                    let (raw, directory) = (raw.clone(), directory.clone());
                    async move { raw.semaphore_again(&directory).await }
                })
            },
            recipes: vec![Work::of_recipe(
                "semaphore",
                Semaphore::new(&session, directory(), 5).expect(GOOD_PATH),
            )],
        };
        let of_single_nodes = Comparison {
            by_client: {
                let (raw, path): (_, Arc<str>) = (by_client.clone(), directory().into());
                Work::new("create, delete: by client", move || {
                    let (raw, path) = (raw.clone(), path.clone());
                    async move { raw.single_node(&path).await }
                })
            },
            by_session: {
                let (raw, path): (_, Arc<str>) = (by_session.clone(), directory().into());
                Work::new("create, delete: by session", move || {
                    let (raw, path) = (raw.clone(), path.clone());
                    async move { raw.single_node(&path).await }
                })
            },
            recipes: vec![Work::of_recipe(
                "single-node lock",
                SingleNodeLock::new(&session, directory()).expect(GOOD_PATH),
            )],
        };
        vec![of_newcomers, of_queues, of_semaphores, of_single_nodes]
    }

    /// The requests both ways, and the recipes.
    pub fn works(&self) -> impl Iterator<Item = &Work> {
        [&self.by_client, &self.by_session]
            .into_iter()
            .chain(&self.recipes)
    }
}

const GOOD_PATH: &str = "a path of our own making";
