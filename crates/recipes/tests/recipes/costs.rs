//! The costs that the documentation of each recipe promises, counted on a simulated ensemble.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use zookeeper_recipes::common::CreateMode;
use zookeeper_recipes::{
    ConnectOptions, Error, ExclusiveLock, LeaderElection, Locks, Recipe, RwLock, Semaphore,
    Session, SingleNodeLock,
};
use zookeeper_recipes_simulation::{RequestKind, Simulation, SimulationOptions};

const PATH: &str = "/recipe";
const ONE_WAY: Duration = Duration::from_millis(10);
/// Long enough for a holder to mark its release, and to watch its own znode.
const LONG: Duration = Duration::from_secs(5);

/// Requests and round trips.
type Cost = (u64, u128);

struct Testbed {
    simulation: Simulation,
}

impl Testbed {
    fn new(data: &[u8]) -> Testbed {
        let simulation = Simulation::new(SimulationOptions {
            network_delay: ONE_WAY..=ONE_WAY,
            commit_delay: Duration::ZERO..=Duration::ZERO,
            ..SimulationOptions::default()
        });
        let made = simulation
            .administrator()
            .create(PATH, data, CreateMode::Persistent);
        made.expect("an empty tree takes it");
        // This is a directory that has seen a thousand contenders.
        let counted = simulation.administrator().set_create_counter(PATH, 1_000);
        counted.expect("it is there");
        Testbed { simulation }
    }

    async fn session(&self, process: &str) -> Session {
        let opened = Session::open(self.simulation.ensemble(process), ConnectOptions::new());
        opened.await.expect("a session opens")
    }

    /// What recipes have sent: not the probes and pings of the sessions.
    fn requests(&self) -> u64 {
        let counters = self.simulation.counters();
        let kinds = [
            RequestKind::Create,
            RequestKind::Delete,
            RequestKind::List,
            RequestKind::Get,
            RequestKind::Exists,
            RequestKind::Transact,
            RequestKind::GetEach,
        ];
        kinds.into_iter().map(|kind| counters.requests(kind)).sum()
    }

    async fn cost<T, E: std::fmt::Debug>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> (T, Cost) {
        let (requests, began) = (self.requests(), Instant::now());
        let outcome = call.await.expect("no fault is injected");
        let round_trips = began.elapsed().as_millis() / (2 * ONE_WAY).as_millis();
        (outcome, (self.requests() - requests, round_trips))
    }

    fn watches(&self) -> usize {
        self.simulation.counters().watches()
    }

    /// Has a contender wait. Returns what it has sent until then, and its watches.
    async fn wait<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> (JoinHandle<T>, (u64, usize)) {
        let (requests, watches) = (self.requests(), self.watches());
        let waiting = tokio::spawn(async move { call.await.expect("it is its turn") });
        settle().await;
        let cost = (self.requests() - requests, self.watches() - watches);
        (waiting, cost)
    }

    /// Has the one that waits hold after this release, at the cost of so many requests of its own.
    async fn hand_on<T>(
        &self,
        release: impl Future<Output = Result<(), Error>>,
        waiting: JoinHandle<T>,
    ) -> (T, u64) {
        let before = self.requests();
        release.await.expect("it is held");
        let next = waiting.await.expect("no panic");
        (next, self.requests() - before - 1)
    }
}

/// Waits until the work in the background is done.
async fn settle() {
    sleep(LONG).await;
}

#[tokio::test(start_paused = true)]
async fn exclusive_lock_costs_what_it_says() {
    let testbed = Testbed::new(b"");
    let session = testbed.session("one").await;
    let lock = ExclusiveLock::new(&session, PATH).expect("a good path");
    for expected in [(3, 2), (2, 1), (1, 1)] {
        let (hold, cost) = testbed.cost(lock.acquire()).await;
        assert_eq!(cost, expected);
        assert_eq!(testbed.watches(), 0);
        assert_eq!(testbed.cost(hold.release()).await.1, (1, 1));
    }
    let (hold, cost) = testbed.cost(lock.try_acquire()).await;
    let hold = hold.expect("it is free");
    assert_eq!(cost, (2, 2));
    assert_eq!(testbed.cost(lock.try_acquire()).await.1, (0, 0));
    assert_eq!(testbed.cost(lock.contenders()).await.1, (2, 2));

    let elsewhere = testbed.session("two").await;
    let other = ExclusiveLock::new(&elsewhere, PATH).expect("a good path");
    assert_eq!(testbed.cost(other.try_acquire()).await.1, (1, 1));
    settle().await;
    // The holder watches its own znode by now.
    assert_eq!(testbed.watches(), 1);
    let waits = async move { other.acquire().await.map(|hold| (other, hold)) };
    let (waiting, cost) = testbed.wait(waits).await;
    assert_eq!(cost, (3 + 2, 2));
    let ((other, next), cost) = testbed.hand_on(hold.release(), waiting).await;
    assert_eq!(cost, 0);
    next.release().await.expect("it is held");
    assert_eq!(testbed.cost(other.contenders()).await.1, (1, 1));
    assert_eq!(testbed.watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn single_node_lock_costs_what_it_says() {
    let testbed = Testbed::new(b"");
    let session = testbed.session("one").await;
    let lock = SingleNodeLock::new(&session, "/recipe/lock").expect("a good path");
    let (hold, cost) = testbed.cost(lock.acquire()).await;
    assert_eq!(cost, (1, 1));
    assert_eq!(testbed.cost(hold.release()).await.1, (1, 1));
    let (hold, cost) = testbed.cost(lock.try_acquire()).await;
    let hold = hold.expect("it is free");
    assert_eq!(cost, (2, 2));
    assert_eq!(testbed.cost(lock.try_acquire()).await.1, (1, 1));
    assert_eq!(testbed.cost(lock.contenders()).await.1, (1, 1));
    settle().await;

    let elsewhere = testbed.session("two").await;
    let other = SingleNodeLock::new(&elsewhere, "/recipe/lock").expect("a good path");
    let waits = async move { other.acquire().await };
    let (waiting, cost) = testbed.wait(waits).await;
    assert_eq!(cost, (2, 1));
    let (next, _) = testbed.hand_on(hold.release(), waiting).await;
    next.release().await.expect("it is held");
}

#[tokio::test(start_paused = true)]
async fn rwlock_costs_what_it_says() {
    let testbed = Testbed::new(b"");
    let session = testbed.session("one").await;
    let lock = RwLock::new(&session, PATH).expect("a good path");
    for expected in [(2, 1), (2, 1), (1, 1)] {
        let (hold, cost) = testbed.cost(lock.read().acquire()).await;
        assert_eq!(cost, expected);
        assert_eq!(testbed.cost(hold.release()).await.1, (1, 1));
    }
    let (hold, cost) = testbed.cost(lock.read().try_acquire()).await;
    let hold = hold.expect("no writer");
    assert_eq!(cost, (2, 2));
    assert_eq!(testbed.cost(lock.write().try_acquire()).await.1, (1, 1));
    assert_eq!(testbed.cost(lock.contenders()).await.1, (2, 2));
    settle().await;

    // A writer that waits for a reader, alone before it.
    let elsewhere = testbed.session("two").await;
    let other = RwLock::new(&elsewhere, PATH).expect("a good path");
    let writer = other.write().clone();
    let (waiting, cost) = testbed.wait(async move { writer.acquire().await }).await;
    assert_eq!(cost, (3 + 2, 2));
    assert_eq!(testbed.cost(lock.read().try_acquire()).await.1, (1, 1));
    let (writing, cost) = testbed.hand_on(hold.release(), waiting).await;
    assert_eq!(cost, 0);

    // A reader that waits for a writer, which marks its release.
    let reader = lock.read().clone();
    let (waiting, (requests, _)) = testbed.wait(async move { reader.acquire().await }).await;
    assert_eq!(requests, 2 + 2);
    let (reading, cost) = testbed.hand_on(writing.release(), waiting).await;
    assert_eq!(cost, 0);
    reading.release().await.expect("it is held");

    let (writing, _) = testbed.cost(other.write().acquire()).await;
    let (reading, cost) = testbed.cost(writing.downgrade()).await;
    assert_eq!(cost, (1, 1));
    reading.release().await.expect("it is held");
}

#[tokio::test(start_paused = true)]
async fn semaphore_costs_what_it_says() {
    let testbed = Testbed::new(b"5");
    let session = testbed.session("one").await;
    let semaphore = Semaphore::new(&session, PATH, 5).expect("a good path");
    for expected in [(3, 1), (3, 1), (2, 1)] {
        let (hold, cost) = testbed.cost(semaphore.acquire_many(5)).await;
        assert_eq!(cost, expected);
        assert_eq!(testbed.cost(hold.release()).await.1, (1, 1));
    }
    let (hold, cost) = testbed.cost(semaphore.try_acquire_many(3)).await;
    let hold = hold.expect("all are free");
    assert_eq!(cost, (4, 2));
    assert_eq!(testbed.cost(semaphore.try_acquire_many(3)).await.1, (2, 1));
    assert_eq!(testbed.cost(semaphore.contenders()).await.1, (3, 2));
    let (available_permits, cost) = testbed.cost(semaphore.available_permits()).await;
    assert_eq!((available_permits, cost), (2, (2, 1)));
    settle().await;

    let elsewhere = testbed.session("two").await;
    let other = Semaphore::new(&elsewhere, PATH, 5).expect("a good path");
    let waits = async move { other.acquire_many(3).await };
    let (waiting, cost) = testbed.wait(waits).await;
    assert_eq!(cost, (3 + 3, 3));
    // Two are free, and wanted.
    assert_eq!(testbed.cost(semaphore.available_permits()).await.0, 0);
    let (next, cost) = testbed.hand_on(hold.release(), waiting).await;
    assert_eq!(cost, 2);
    // The watch on the directory. The session sends the removal once its tasks wait.
    sleep(Duration::from_millis(1)).await;
    let removed = testbed.simulation.counters();
    assert_eq!(removed.requests(RequestKind::RemoveWatch), 1);
    next.release().await.expect("it is held");
    assert_eq!(testbed.cost(semaphore.contenders()).await.1, (2, 1));
    // A `sync` goes with the read.
    assert_eq!(testbed.cost(semaphore.resize(7)).await.1, (2, 2));
}

#[tokio::test(start_paused = true)]
async fn election_costs_what_it_says() {
    let testbed = Testbed::new(b"");
    let session = testbed.session("one").await;
    let election = LeaderElection::new(&session, PATH, "one").expect("a good path");
    assert_eq!(testbed.cost(election.leader()).await.1, (1, 1));
    for expected in [(2, 1), (2, 1), (1, 1)] {
        let (leadership, cost) = testbed.cost(election.acquire()).await;
        assert_eq!(cost, expected);
        assert_eq!(testbed.cost(leadership.release()).await.1, (1, 1));
    }
    let (leadership, cost) = testbed.cost(election.try_acquire()).await;
    let leadership = leadership.expect("nobody leads");
    assert_eq!(cost, (2, 2));
    assert_eq!(testbed.cost(election.try_acquire()).await.1, (1, 1));
    assert_eq!(testbed.cost(election.contenders()).await.1, (2, 2));
    assert_eq!(testbed.cost(election.leader()).await.1, (3, 2));
    settle().await;

    // A `sync` goes before the list and the reads.
    let watching = testbed.session("watching").await;
    let watching = LeaderElection::new(&watching, PATH, "nobody").expect("a good path");
    let watches = testbed.watches();
    let begins = async {
        let mut leader = watching.watch_leader();
        leader.changed().await.map(|()| leader)
    };
    let (leader, cost) = testbed.cost(begins).await;
    assert_eq!(cost, (3, 3));
    assert_eq!(testbed.watches() - watches, 2);
    let elsewhere = testbed.session("two").await;
    let other = LeaderElection::new(&elsewhere, PATH, "two").expect("a good path");
    let waits = async move { other.acquire().await };
    let (waiting, cost) = testbed.wait(waits).await;
    // Candidates behind the leader cost the watching task nothing.
    assert_eq!(cost, (2 + 2, 2));
    let before = testbed.requests();
    leadership.release().await.expect("it leads");
    let next = waiting.await.expect("no panic");
    settle().await;
    // The release, the list and the read of the candidate, and those and one more of the watching
    // task.
    assert_eq!(testbed.requests() - before, 1 + 2 + 3);
    let id = leader.borrow().leader().map(|leader| leader.id.clone());
    assert_eq!(id.as_deref(), Some("two"));
    next.release().await.expect("it leads");
}

/// Makes a recipe at a path.
type Make = fn(&Session, &str) -> Box<dyn Recipe>;

fn exclusive(session: &Session, path: &str) -> Box<dyn Recipe> {
    Box::new(ExclusiveLock::new(session, path).expect("a good path"))
}

fn of_a_pool(session: &Session, path: &str) -> Box<dyn Recipe> {
    let (parent, name) = path.rsplit_once('/').expect("it has a parent");
    let locks = Locks::new(session, parent).expect("a good path");
    Box::new(locks.lock(name).expect("a good name"))
}

fn semaphore(session: &Session, path: &str) -> Box<dyn Recipe> {
    Box::new(Semaphore::new(session, path, 5).expect("a good path"))
}

fn election(session: &Session, path: &str) -> Box<dyn Recipe> {
    Box::new(LeaderElection::new(session, path, "id").expect("a good path"))
}

/// A value that expects to be alone finds that another contender came in between.
#[tokio::test(start_paused = true)]
async fn coming_back_after_another_contender_costs_what_it_says() {
    let reader: Make = |session, path| {
        let lock = RwLock::new(session, path).expect("a good path");
        Box::new(lock.read().clone())
    };
    for (data, expected, make) in [
        ("", (2, 2), exclusive as Make),
        ("", (2, 2), reader),
        ("5", (4, 2), semaphore),
        ("", (2, 2), election),
    ] {
        let testbed = Testbed::new(data.as_bytes());
        let sessions = [testbed.session("one").await, testbed.session("two").await];
        let [ours, theirs] = sessions.each_ref().map(|session| make(session, PATH));
        for holder in [&ours, &ours, &ours, &theirs] {
            let hold = holder.acquire().await.expect("it is free");
            hold.release().await.expect("it is held");
        }
        let (hold, cost) = testbed.cost(ours.acquire()).await;
        assert_eq!(cost, expected, "{ours:?}");
        hold.release().await.expect("it is held");
    }
}

/// What the first acquisition at a path costs more than one in a directory that exists.
async fn first_use_costs_more(known: Cost, make: Make) {
    for (path, missing_parents) in [("/recipe/a", 0), ("/recipe/b/c", 1), ("/recipe/d/e/f", 2)] {
        let testbed = Testbed::new(b"");
        let session = testbed.session("one").await;
        // The first acquisition of a session sends a transaction.
        let other = ExclusiveLock::new(&session, PATH).expect("a good path");
        let hold = other.acquire().await.expect("it is free");
        hold.release().await.expect("it is held");
        let recipe = make(&session, path);
        let (hold, cost) = testbed.cost(recipe.acquire()).await;
        // The first attempt is refused, and made again behind the directory's create. If a parent is
        // missing, this is refused, too, and made again once all of them are created.
        let mut expected = (2 * known.0 + 1, known.1 + 1);
        if missing_parents > 0 {
            expected.0 += known.0 + 2 * missing_parents;
            expected.1 += 1 + u128::from(2 * missing_parents);
        }
        assert_eq!(cost, expected, "{recipe:?}");
        hold.release().await.expect("it is held");
        let (hold, cost) = testbed.cost(recipe.acquire()).await;
        assert_eq!(cost, known, "{recipe:?}");
        hold.release().await.expect("it is held");
        // From now on the session expects the same of the next directory beside the last one.
        let existing = format!("{path}-exists");
        let made = testbed.simulation.administrator();
        let made = made.create(&existing, b"5", CreateMode::Persistent);
        made.expect("there is none");
        let (guessed, not_guessed) = ((known.0 + 1, 1), (2 * known.0 + 1, 2));
        for (suffix, expected) in [
            ("-1", guessed),
            ("-2", guessed),
            ("-exists", guessed),
            ("-3", not_guessed),
            ("-4", guessed),
        ] {
            let beside = make(&session, &format!("{path}{suffix}"));
            let (hold, cost) = testbed.cost(beside.acquire()).await;
            assert_eq!(cost, expected, "{beside:?}");
            hold.release().await.expect("it is held");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn first_acquisition_of_a_session_costs_what_it_says() {
    let testbed = Testbed::new(b"");
    let at = async |process, path| {
        let session = testbed.session(process).await;
        let lock = ExclusiveLock::new(&session, path).expect("a good path");
        let (hold, cost) = testbed.cost(lock.acquire()).await;
        hold.release().await.expect("it is held");
        cost
    };
    assert_eq!(at("one", "/recipe/new").await, (7, 4));
    assert_eq!(at("two", PATH).await, (3, 2));
}

#[tokio::test(start_paused = true)]
async fn first_use_of_a_path_costs_what_it_says() {
    let writer: Make = |session, path| {
        let lock = RwLock::new(session, path).expect("a good path");
        Box::new(lock.write().clone())
    };
    for make in [exclusive, of_a_pool, writer, election] {
        first_use_costs_more((2, 1), make).await;
    }
    first_use_costs_more((3, 1), semaphore).await;
}
