//! Uncontended recipes, each beside the requests that it sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_core::{Recipe, Session};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;

use crate::overhead::{Work, turn};
use crate::testbed::Testbed;

/// A name as long as a contender's.
pub(crate) const CONTENDER: &str = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-";

/// Data as long as the identity that the owner of a single node writes.
const IDENTITY: &[u8] = b"_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-";

const GOOD_PATH: &str = "a path of our own making";
const ANSWERED: &str = "the server does what it is asked";

/// What a contender reads together with its create.
#[derive(Clone, Copy)]
enum Reads {
    /// Nothing: it comes back to an empty queue.
    Nothing,
    /// The queue, as a newcomer does.
    Queue,
    /// The data of the directory, as a contender for permits does.
    Data,
}

/// The recipes, in groups that send the same requests.
///
/// The first work of each group is these requests alone, by `zookeeper-client`.
pub fn comparisons(testbed: &Testbed) -> Vec<Vec<Work<'_>>> {
    let session = &testbed.session();
    let client = testbed.client();
    let path = || testbed.directory();
    let requests = |name: &str, data: &str, reads: Reads| {
        let (client, directory) = (client.clone(), path());
        testbed.make(&directory, data.as_bytes());
        Work::in_tasks(testbed, name, move || {
            let (client, directory) = (client.clone(), directory.clone());
            async move { queue(&client, &directory, reads).await }
        })
    };
    let single_node = {
        let (client, path) = (client.clone(), path());
        Work::in_tasks(testbed, "create, delete", move || {
            let (client, path) = (client.clone(), path.clone());
            async move { single_node(&client, &path).await }
        })
    };
    let lock = ExclusiveLock::new(session, path()).expect(GOOD_PATH);
    let read = RwLock::new(session, path()).expect(GOOD_PATH);
    let write = RwLock::new(session, path()).expect(GOOD_PATH);
    let election = LeaderElection::new(session, path(), "node-7").expect(GOOD_PATH);
    let semaphore = Semaphore::new(session, path(), 5).expect(GOOD_PATH);
    let single = SingleNodeLock::new(session, path()).expect(GOOD_PATH);
    let mut newcomers = vec![requests("create + list, delete", "", Reads::Queue)];
    newcomers.extend(made_anew(testbed, session));
    vec![
        newcomers,
        vec![
            requests("sequential create, delete", "", Reads::Nothing),
            recipe(testbed, "exclusive lock", lock),
            recipe(testbed, "read lock", read.read().clone()),
            recipe(testbed, "write lock", write.write().clone()),
            recipe(testbed, "leadership", election),
        ],
        vec![
            requests("create + get, delete", "5", Reads::Data),
            recipe(testbed, "semaphore", semaphore),
        ],
        vec![single_node, recipe(testbed, "single-node lock", single)],
    ]
}

/// Acquires and releases a recipe that no other contender wants.
fn recipe<'a>(testbed: &'a Testbed, name: &str, recipe: impl Recipe + 'static) -> Work<'a> {
    let recipe = Arc::new(recipe);
    Work::in_tasks(testbed, name, move || {
        let recipe = recipe.clone();
        async move { turn(&*recipe).await }
    })
}

/// Locks that are made for one turn: at the same path, and at a new one each time.
fn made_anew<'a>(testbed: &'a Testbed, session: &Session) -> [Work<'a>; 2] {
    let (same, new) = (testbed.directory(), testbed.directory());
    testbed.make(&same, b"");
    let of = session.clone();
    let once = move |path: String| {
        let lock = ExclusiveLock::new(&of, path).expect(GOOD_PATH);
        async move { turn(&lock).await }
    };
    let used = Arc::<AtomicU64>::default();
    let again = once.clone();
    let again = move || again(same.clone());
    let first_use = move || once(format!("{new}/{}", used.fetch_add(1, Ordering::Relaxed)));
    [
        Work::in_tasks(testbed, "exclusive lock, made anew each time", again),
        Work::in_tasks(testbed, "exclusive lock, first use of a path", first_use),
    ]
}

/// Creates a contender in a queue and reads, together; then deletes the contender.
async fn queue(client: &Client, directory: &str, reads: Reads) {
    let path = format!("{directory}/{CONTENDER}");
    let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let create = client.create(&path, b"", &options);
    let read = async {
        match reads {
            Reads::Nothing => {}
            Reads::Queue => drop(client.list_children(directory).await.expect(ANSWERED)),
            Reads::Data => drop(client.get_data(directory).await.expect(ANSWERED)),
        }
    };
    let (created, ()) = tokio::join!(create, read);
    let path = format!("{path}{}", created.expect(ANSWERED).1);
    client.delete(&path, None).await.expect(ANSWERED);
}

/// Creates the znode of a lock without a queue, then deletes it.
async fn single_node(client: &Client, path: &str) {
    let options = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    let created = client.create(path, IDENTITY, &options).await;
    created.expect(ANSWERED);
    client.delete(path, None).await.expect(ANSWERED);
}
