//! The faults of one day of two processes, on a simulated ensemble.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes::common::CreateMode;
use zookeeper_recipes::lock::LockOptions;
use zookeeper_recipes::{
    Acl, AuthId, ConnectOptions, Error, ExclusiveLock, Hold, HoldView, LeaderElection, Permission,
    RwLock, Session,
};
use zookeeper_recipes_simulation::{SimulatedProcess, Simulation, SimulationOptions};

pub(crate) const PATH: &str = "/locks/report";
pub(crate) const REFUSED: &str = "/guarded";
pub(crate) const REFUSED_BELOW: &str = "/guarded/below/it";
pub(crate) const DELETED: &str = "the hold is lost: another client deleted its znode";
pub(crate) const LAPSED: &str =
    "the hold is lost: no answer came in time to show that its session is alive";

const SECOND: Duration = Duration::from_secs(1);

/// What happened, as the processes themselves know it.
pub(crate) struct Day {
    /// The first session of the process that suffers the faults.
    pub(crate) session: String,
    /// Was suspended, and released.
    pub(crate) first: Held,
    /// Was deleted by an operator.
    pub(crate) second: Held,
    /// Was lost when the process was cut off.
    pub(crate) third: Held,
    /// The token of a writer that became a reader.
    pub(crate) writer: i64,
    pub(crate) led: Held,
}

pub(crate) struct Held {
    pub(crate) token: i64,
    pub(crate) node: String,
    pub(crate) waited: Duration,
    pub(crate) held: Duration,
}

impl Held {
    fn new(hold: &HoldView, waited: Duration) -> Held {
        let node = hold.node_path().rsplit('/').next().unwrap_or_default();
        Held {
            token: hold.fencing_token().get(),
            node: node.to_owned(),
            waited,
            held: Duration::ZERO,
        }
    }
}

async fn open(process: &SimulatedProcess) -> Session {
    let options = ConnectOptions::new().tick(2 * SECOND);
    let opened = Session::open(process.ensemble(), options).await;
    opened.expect("a session opens")
}

fn report(session: &Session) -> ExclusiveLock {
    let options = LockOptions::new().name("report");
    ExclusiveLock::with_options(session, PATH, options).expect("a good path")
}

pub(crate) async fn bad_day() -> Day {
    let simulation = Simulation::new(SimulationOptions {
        session_timeout: 30 * SECOND,
        ..SimulationOptions::default()
    });
    let unlucky = simulation.process("unlucky");
    let one = open(&unlucky).await;
    let session = one.id().expect("it was just opened").to_string();
    let two = open(&simulation.process("other")).await;
    let (lock, other) = (report(&one), report(&two));

    let began = Instant::now();
    let hold = lock.acquire().await.expect("free");
    let acquired = Instant::now();
    let mut first = Held::new(&hold.view(), acquired - began);
    let late = other.acquire_timeout(2 * SECOND).await;
    assert!(late.is_err_and(|error| error.is_timeout()));
    assert!(other.try_acquire().await.expect("it is asked").is_none());
    refused(&simulation, &two).await;
    // A reconnect, and a silence that is noticed and does not cost the lease.
    unlucky.disconnect();
    sleep(5 * SECOND).await;
    until_renewed(&hold).await;
    // The next probe is sent half a second after the silence begins.
    sleep(SECOND * 5 / 2).await;
    unlucky.partition(10 * SECOND);
    sleep(30 * SECOND).await;
    assert!(hold.is_held());
    hold.release().await.expect("it is held again");
    first.held = acquired.elapsed();

    let hold = lock.acquire().await.expect("free");
    let second = Held::new(&hold.view(), Duration::ZERO);
    assert!(timeout(SECOND, other.acquire()).await.is_err());
    // By then the holder watches its znode.
    sleep(10 * SECOND).await;
    let deleted = simulation.administrator().delete(hold.node_path());
    deleted.expect("it exists");
    hold.lost().await;
    drop(hold);

    let writer = downgraded(&two).await;
    let led = led(&one).await;

    let hold = lock.acquire().await.expect("free");
    let third = Held::new(&hold.view(), Duration::ZERO);
    sleep(SECOND).await;
    unlucky.partition(60 * SECOND);
    hold.lost().await;
    let released = hold.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })));
    sleep(120 * SECOND).await;
    assert!(one.is_connected());
    drop((lock, other));
    one.close().await;
    two.close().await;
    Day {
        session,
        first,
        second,
        third,
        writer,
        led,
    }
}

/// Two attempts where nothing may be created.
/// Waits until a probe renews the lease. The next probe comes three seconds later.
async fn until_renewed(hold: &Hold) {
    let mut left = hold.remaining();
    loop {
        sleep(SECOND / 100).await;
        if hold.remaining() > left {
            return;
        }
        left = hold.remaining();
    }
}

async fn refused(simulation: &Simulation, session: &Session) {
    let readable = [Acl::new(Permission::READ, AuthId::anyone())];
    let administrator = simulation.administrator();
    let made = administrator.create_with_acl(REFUSED, b"", CreateMode::Persistent, &readable);
    made.expect("it is not there");
    for path in [REFUSED, REFUSED_BELOW] {
        let lock = ExclusiveLock::new(session, path).expect("a good path");
        let refused = lock.acquire().await;
        assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    }
}

async fn downgraded(session: &Session) -> i64 {
    let lock = RwLock::new(session, "/rw").expect("a good path");
    let writing = lock.write().acquire().await.expect("free");
    let reading = writing.downgrade().await.expect("it is held");
    let token = reading.fencing_token().get();
    reading.release().await.expect("it is held");
    token
}

async fn led(session: &Session) -> Held {
    let election = LeaderElection::new(session, "/leader", "node-7").expect("a good path");
    let began = Instant::now();
    let leadership = election.acquire().await.expect("nobody leads");
    let acquired = Instant::now();
    let mut led = Held::new(&leadership.view(), acquired - began);
    sleep(5 * SECOND).await;
    leadership.release().await.expect("it leads");
    led.held = acquired.elapsed();
    led
}
