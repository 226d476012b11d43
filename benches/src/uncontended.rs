//! Uncontended recipes, each beside the requests that it sends.

use std::sync::Arc;

use zookeeper_recipes_core::{NodePath, Session};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;

use crate::raw::{RawClient, RawSession};
use crate::testbed::Testbed;
use crate::work::{Work, turn};

const GOOD_PATH: &str = "a path of our own making";

/// The recipes that send the same requests, and these requests alone.
#[derive(Debug)]
pub struct Comparison {
    /// The requests, sent by `zookeeper-client` itself.
    pub by_client: Work,
    /// The requests, sent through the interface that the recipes use.
    pub by_session: Work,
    /// The recipes.
    pub recipes: Vec<Work>,
}

impl Comparison {
    /// The comparisons of all recipes.
    pub fn all(testbed: &Testbed) -> Vec<Comparison> {
        let ground = Ground::new(testbed);
        vec![
            ground.newcomers(),
            ground.queues(),
            ground.semaphores(),
            ground.single_nodes(),
        ]
    }

    /// The requests both ways, and the recipes.
    pub fn works(&self) -> impl Iterator<Item = &Work> {
        [&self.by_client, &self.by_session]
            .into_iter()
            .chain(&self.recipes)
    }
}

/// The three that send: the client, the interface of a session, and the recipes over it.
struct Ground<'t> {
    testbed: &'t Testbed,
    client: RawClient,
    server: RawSession,
    session: Session,
}

impl Ground<'_> {
    fn new(testbed: &Testbed) -> Ground<'_> {
        let client = testbed.client();
        let session = testbed.session();
        let path = NodePath::new(&testbed.directory()).expect(GOOD_PATH);
        let server = testbed.runtime().block_on(session.server(&path));
        Ground {
            testbed,
            client: RawClient::new(&client),
            server: RawSession::new(server.expect("the session is open")),
            session,
        }
    }

    /// A new path.
    fn path(&self) -> Arc<str> {
        self.testbed.directory().into()
    }

    /// A new directory, which exists and has this data.
    fn directory(&self, data: &str) -> Arc<str> {
        let directory = self.path();
        let make = self.client.make(&directory, data.as_bytes());
        self.testbed.runtime().block_on(make);
        directory
    }

    fn newcomers(&self) -> Comparison {
        Comparison {
            by_client: Work::new(
                "create + list, delete: by client",
                (self.client.clone(), self.directory("")),
                |(raw, directory)| async move { raw.newcomer(&directory).await },
            ),
            by_session: Work::new(
                "create + list, delete: by session",
                (self.server.clone(), self.directory("")),
                |(raw, directory)| async move { raw.newcomer(&directory).await },
            ),
            recipes: vec![Work::new(
                "exclusive lock, made anew each time",
                (self.session.clone(), self.directory("")),
                |(session, directory)| async move {
                    turn(&ExclusiveLock::new(&session, &*directory).expect(GOOD_PATH)).await;
                },
            )],
        }
    }

    fn queues(&self) -> Comparison {
        let session = &self.session;
        let lock = ExclusiveLock::new(session, self.path()).expect(GOOD_PATH);
        let read = RwLock::new(session, self.path()).expect(GOOD_PATH);
        let write = RwLock::new(session, self.path()).expect(GOOD_PATH);
        let election = LeaderElection::new(session, self.path(), "node-7").expect(GOOD_PATH);
        Comparison {
            by_client: Work::new(
                "sequential create, delete: by client",
                (self.client.clone(), self.directory("")),
                |(raw, directory)| async move { raw.again(&directory).await },
            ),
            by_session: Work::new(
                "sequential create, delete: by session",
                (self.server.clone(), self.directory("")),
                |(raw, directory)| async move { raw.again(&directory).await },
            ),
            recipes: vec![
                Work::of_recipe("exclusive lock", lock),
                Work::of_recipe("read lock", read.read().clone()),
                Work::of_recipe("write lock", write.write().clone()),
                Work::of_recipe("leadership", election),
            ],
        }
    }

    fn semaphores(&self) -> Comparison {
        let semaphore = Semaphore::new(&self.session, self.path(), 5).expect(GOOD_PATH);
        Comparison {
            by_client: Work::new(
                "create + get, delete: by client",
                (self.client.clone(), self.directory("5")),
                |(raw, directory)| async move { raw.semaphore_again(&directory).await },
            ),
            by_session: Work::new(
                "create + get, delete: by session",
                (self.server.clone(), self.directory("5")),
                |(raw, directory)| async move { raw.semaphore_again(&directory).await },
            ),
            recipes: vec![Work::of_recipe("semaphore", semaphore)],
        }
    }

    fn single_nodes(&self) -> Comparison {
        let lock = SingleNodeLock::new(&self.session, self.path()).expect(GOOD_PATH);
        Comparison {
            by_client: Work::new(
                "create, delete: by client",
                (self.client.clone(), self.path()),
                |(raw, path)| async move { raw.single_node(&path).await },
            ),
            by_session: Work::new(
                "create, delete: by session",
                (self.server.clone(), self.path()),
                |(raw, path)| async move { raw.single_node(&path).await },
            ),
            recipes: vec![Work::of_recipe("single-node lock", lock)],
        }
    }
}
