//! The costs that the documentation of each recipe promises, counted on a simulated ensemble.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use zookeeper_recipes::common::CreateMode;
use zookeeper_recipes::{
    ConnectOptions, ExclusiveLock, LeaderElection, Locks, Recipe, RwLock, Semaphore, Session,
    SingleNodeLock,
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
    let before = testbed.requests();
    let waiting = tokio::spawn(async move { other.acquire().await.map(|hold| (other, hold)) });
    settle().await;
    assert_eq!(testbed.requests() - before, 3 + 2);
    assert_eq!(testbed.watches(), 1 + 2);

    let before = testbed.requests();
    hold.release().await.expect("it is held");
    let (other, next) = waiting.await.expect("no panic").expect("it is its turn");
    assert_eq!(testbed.requests() - before, 1);
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
    let (before, watches) = (testbed.requests(), testbed.watches());
    let waiting = tokio::spawn(async move { other.acquire().await });
    settle().await;
    assert_eq!(testbed.requests() - before, 2);
    assert_eq!(testbed.watches() - watches, 1);
    hold.release().await.expect("it is held");
    let next = waiting.await.expect("no panic").expect("it is its turn");
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
    let (before, watches) = (testbed.requests(), testbed.watches());
    let waiting = tokio::spawn(async move { writer.acquire().await });
    settle().await;
    assert_eq!(testbed.requests() - before, 3 + 2);
    assert_eq!(testbed.watches() - watches, 2);
    assert_eq!(testbed.cost(lock.read().try_acquire()).await.1, (1, 1));
    let before = testbed.requests();
    hold.release().await.expect("it is held");
    let writing = waiting.await.expect("no panic").expect("it is its turn");
    assert_eq!(testbed.requests() - before, 1);

    // A reader that waits for a writer, which marks its release.
    let reader = lock.read().clone();
    let before = testbed.requests();
    let waiting = tokio::spawn(async move { reader.acquire().await });
    settle().await;
    assert_eq!(testbed.requests() - before, 2 + 2);
    let before = testbed.requests();
    writing.release().await.expect("it is held");
    let reading = waiting.await.expect("no panic").expect("it is its turn");
    assert_eq!(testbed.requests() - before, 1);
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
    let (before, watches) = (testbed.requests(), testbed.watches());
    let waiting = tokio::spawn(async move { other.acquire_many(3).await });
    settle().await;
    assert_eq!(testbed.requests() - before, 3 + 3);
    assert_eq!(testbed.watches() - watches, 3);
    // Two are free, and wanted.
    assert_eq!(testbed.cost(semaphore.available_permits()).await.0, 0);
    let before = testbed.requests();
    hold.release().await.expect("it is held");
    let next = waiting.await.expect("no panic").expect("it is its turn");
    assert_eq!(testbed.requests() - before, 1 + 2);
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
    let (before, watches) = (testbed.requests(), testbed.watches());
    let waiting = tokio::spawn(async move { other.acquire().await });
    settle().await;
    // Candidates behind the leader cost the watching task nothing.
    assert_eq!(testbed.requests() - before, 2 + 2);
    assert_eq!(testbed.watches() - watches, 2);
    let before = testbed.requests();
    leadership.release().await.expect("it leads");
    let next = waiting.await.expect("no panic").expect("it is its turn");
    settle().await;
    // The release, the list and the read of the candidate, and those and one more of the watching
    // task.
    assert_eq!(testbed.requests() - before, 1 + 2 + 3);
    let id = leader.borrow().leader().map(|leader| leader.id.clone());
    assert_eq!(id.as_deref(), Some("two"));
    next.release().await.expect("it leads");
}

/// A value that expects to be alone finds that another contender came in between.
async fn coming_back_costs(data: &[u8], expected: Cost, recipe: fn(&Session) -> Box<dyn Recipe>) {
    let testbed = Testbed::new(data);
    let sessions = [testbed.session("one").await, testbed.session("two").await];
    let [ours, theirs] = sessions.each_ref().map(recipe);
    for holder in [&ours, &ours, &ours, &theirs] {
        let hold = holder.acquire().await.expect("it is free");
        hold.release().await.expect("it is held");
    }
    let (hold, cost) = testbed.cost(ours.acquire()).await;
    assert_eq!(cost, expected, "{ours:?}");
    hold.release().await.expect("it is held");
}

#[tokio::test(start_paused = true)]
async fn coming_back_after_another_contender_costs_what_it_says() {
    coming_back_costs(b"", (2, 2), |session| {
        Box::new(ExclusiveLock::new(session, PATH).expect("a good path"))
    })
    .await;
    coming_back_costs(b"", (2, 2), |session| {
        let lock = RwLock::new(session, PATH).expect("a good path");
        Box::new(lock.read().clone())
    })
    .await;
    coming_back_costs(b"5", (4, 2), |session| {
        Box::new(Semaphore::new(session, PATH, 5).expect("a good path"))
    })
    .await;
    coming_back_costs(b"", (2, 2), |session| {
        Box::new(LeaderElection::new(session, PATH, "id").expect("a good path"))
    })
    .await;
}

/// What the first acquisition at a path costs more than one in a directory that exists.
async fn first_use_costs_more(known: Cost, new: fn(&Session, &str) -> Box<dyn Recipe>) {
    for (path, missing_parents) in [("/recipe/a", 0), ("/recipe/b/c", 1), ("/recipe/d/e/f", 2)] {
        let testbed = Testbed::new(b"");
        let session = testbed.session("one").await;
        // The first acquisition of a session sends a transaction.
        let other = ExclusiveLock::new(&session, PATH).expect("a good path");
        let hold = other.acquire().await.expect("it is free");
        hold.release().await.expect("it is held");
        let recipe = new(&session, path);
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
            let beside = new(&session, &format!("{path}{suffix}"));
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
    first_use_costs_more((2, 1), |session, path| {
        Box::new(ExclusiveLock::new(session, path).expect("a good path"))
    })
    .await;
    first_use_costs_more((2, 1), |session, path| {
        let (parent, name) = path.rsplit_once('/').expect("it has a parent");
        let locks = Locks::new(session, parent).expect("a good path");
        Box::new(locks.lock(name).expect("a good name"))
    })
    .await;
    first_use_costs_more((2, 1), |session, path| {
        let lock = RwLock::new(session, path).expect("a good path");
        Box::new(lock.write().clone())
    })
    .await;
    first_use_costs_more((3, 1), |session, path| {
        Box::new(Semaphore::new(session, path, 5).expect("a good path"))
    })
    .await;
    first_use_costs_more((2, 1), |session, path| {
        Box::new(LeaderElection::new(session, path, "id").expect("a good path"))
    })
    .await;
}
