//! Uncontended recipes, each beside the requests that it sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zookeeper_recipes_core::{Acl, AuthId, NodePath, Permission, Session};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;

use crate::raw::{Raw, Reads};
use crate::testbed::Testbed;
use crate::work::{Work, turn};

const GOOD_PATH: &str = "a path of our own making";

/// The recipes, in groups that send the same requests.
///
/// The first two works of each group are these requests alone: by `zookeeper-client` itself, and
/// through the interface that the recipes use.
pub fn comparisons(testbed: &Testbed) -> Vec<Vec<Work>> {
    let session = &testbed.session();
    let path = || testbed.directory();
    let server = testbed.runtime().block_on(async {
        let path = NodePath::new(&path()).expect(GOOD_PATH);
        session.server(&path).await.expect("the session is open")
    });
    let acl = vec![Acl::new(Permission::ALL, AuthId::anyone())];
    let senders = [
        ("client", Raw::Client(testbed.client())),
        ("session", Raw::Session(server, acl)),
    ];
    let directory = |data: &str| -> Arc<str> {
        let directory = path();
        testbed.make(&directory, data.as_bytes());
        directory.into()
    };
    let group = |requests: &str, data: &str, reads: Reads, recipes: Vec<Work>| {
        let raw = senders.iter().map(|(by, raw)| {
            let given = (raw.clone(), directory(data));
            Work::new(
                format!("{requests}: by {by}"),
                given,
                move |(raw, directory)| async move { raw.turn(&directory, reads).await },
            )
        });
        raw.chain(recipes).collect()
    };
    let semaphore = Semaphore::new(session, path(), 5).expect(GOOD_PATH);
    let semaphore = Work::of_recipe("semaphore", semaphore);
    let single = SingleNodeLock::new(session, path()).expect(GOOD_PATH);
    let singles = senders.iter().map(|(by, raw)| {
        Work::new(
            format!("create, delete: by {by}"),
            (raw.clone(), path()),
            |(raw, path)| async move { raw.single_node(&path).await },
        )
    });
    vec![
        group(
            "create + list, delete",
            "",
            Reads::Queue,
            made_anew(session, directory(""), path()),
        ),
        group(
            "sequential create, delete",
            "",
            Reads::Nothing,
            queues(testbed, session),
        ),
        group("create + get, delete", "5", Reads::Data, vec![semaphore]),
        singles
            .chain([Work::of_recipe("single-node lock", single)])
            .collect(),
    ]
}

/// Locks that are made for one turn: at the same path, and at a new one each time.
fn made_anew(session: &Session, directory: Arc<str>, new: String) -> Vec<Work> {
    let again = Work::new(
        "exclusive lock, made anew each time".to_owned(),
        (session.clone(), directory),
        |(session, directory)| async move {
            turn(&ExclusiveLock::new(&session, &*directory).expect(GOOD_PATH)).await;
        },
    );
    let first_use = Work::new(
        "exclusive lock, first use of a path".to_owned(),
        (session.clone(), new, Arc::<AtomicU64>::default()),
        |(session, directory, used)| async move {
            let path = format!("{directory}/{}", used.fetch_add(1, Ordering::Relaxed));
            turn(&ExclusiveLock::new(&session, path).expect(GOOD_PATH)).await;
        },
    );
    vec![again, first_use]
}

/// The recipes that only create and delete.
fn queues(testbed: &Testbed, session: &Session) -> Vec<Work> {
    let lock = ExclusiveLock::new(session, testbed.directory()).expect(GOOD_PATH);
    let read = RwLock::new(session, testbed.directory()).expect(GOOD_PATH);
    let write = RwLock::new(session, testbed.directory()).expect(GOOD_PATH);
    let election = LeaderElection::new(session, testbed.directory(), "node-7").expect(GOOD_PATH);
    vec![
        Work::of_recipe("exclusive lock", lock),
        Work::of_recipe("read lock", read.read().clone()),
        Work::of_recipe("write lock", write.write().clone()),
        Work::of_recipe("leadership", election),
    ]
}
