//! The faults of one day of two processes, on a simulated ensemble.

use crate::*;

const PATH: &str = "/locks/report";
const REFUSED: &str = "/guarded";
const REFUSED_BELOW: &str = "/guarded/below/it";
pub(crate) const LAPSED: &str =
    "the hold is lost: no answer came in time to show that its session is alive";

const SECOND: Duration = Duration::from_secs(1);

async fn open(process: &SimulatedProcess) -> Session {
    let options = ConnectOptions::new().owner("service").tick(2 * SECOND);
    let opened = Session::open(process.ensemble(), options).await;
    opened.expect("a session opens")
}

fn report(session: &Session) -> ExclusiveLock {
    let options = LockOptions::new().name("report");
    ExclusiveLock::with_options(session, PATH, options).expect("a good path")
}

pub(crate) async fn bad_day() {
    let simulation = Simulation::with(|it| it.session_timeout = 30 * SECOND);
    let unlucky = simulation.process("unlucky");
    let one = open(&unlucky).await;
    let two = open(&simulation.process("other")).await;
    let (lock, other) = (report(&one), report(&two));

    let hold = lock.acquire().await.expect("free");
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

    let hold = lock.acquire().await.expect("free");
    assert!(timeout(SECOND, other.acquire()).await.is_err());
    // By then the holder watches its znode.
    sleep(10 * SECOND).await;
    let deleted = simulation.administrator().delete(hold.node_path());
    deleted.expect("it exists");
    hold.lost().await;
    drop(hold);

    downgraded(&two).await;
    led(&one).await;

    let hold = lock.acquire().await.expect("free");
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
}

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

/// Two attempts where nothing may be created.
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

async fn downgraded(session: &Session) {
    let lock = RwLock::new(session, "/rw").expect("a good path");
    let writing = lock.write().acquire().await.expect("free");
    let reading = writing.downgrade().await.expect("it is held");
    reading.release().await.expect("it is held");
}

async fn led(session: &Session) {
    let election = LeaderElection::new(session, "/leader", "node-7").expect("a good path");
    let leadership = election.acquire().await.expect("nobody leads");
    sleep(5 * SECOND).await;
    leadership.release().await.expect("it leads");
}
