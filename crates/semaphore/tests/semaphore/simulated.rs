//! What only a simulated ensemble can be made to do: to be slow with one request and not another.

use std::time::Duration;

use zookeeper_recipes_core::{CreateMode, Session};
use zookeeper_recipes_semaphore::{Hold, Semaphore};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation, SimulationOptions};
use zookeeper_recipes_suite::simulated_session;

const PATH: &str = "/limits/exports";

const SECOND: Duration = Duration::from_secs(1);

/// A waiter's first `slow` request (or the one after) is under way while one of two holders goes
/// and the number is lowered, so that there is still no room for it.
async fn lowered_number_counts(first_number: i32, slow: RequestKind, nth: u64) {
    let simulation = Simulation::default();
    let administrator = simulation.administrator();
    let made = administrator
        .create("/limits", b"", CreateMode::Persistent)
        .and_then(|_| administrator.create(PATH, b"5", CreateMode::Persistent))
        .and_then(|_| administrator.set_create_counter(PATH, first_number));
    made.expect("an empty tree takes it");

    let holding = simulated_session(&simulation, "holding").await;
    let semaphore = Semaphore::new(&holding, PATH, 5).expect("a good path");
    let large = semaphore.acquire_many(4).await.expect("all are free");
    let small = semaphore.acquire_many(1).await.expect("one is free");

    let waiting = simulated_session(&simulation, "waiting").await;
    let waiter = Semaphore::new(&waiting, PATH, 5).expect("a good path");
    // From here on the waiter goes by the recorded number, however it changes.
    let available_permits = waiter.available_permits().await.expect("the numbers agree");
    assert_eq!(available_permits, 0);
    let late = Fault::new(FaultKind::RequestLate(SECOND)).of_process("waiting");
    simulation.faults().inject(late.on(slow).nth(nth));
    let acquiring = tokio::spawn(async move { waiter.acquire_many(2).await });
    while simulation.faults().waiting() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    large.release().await.expect("it is released");
    semaphore.resize(2).await.expect("it is resized");

    tokio::time::sleep(10 * SECOND).await;
    assert!(!acquiring.is_finished(), "held three of two");
    small.release().await.expect("it is released");
    let hold = acquiring.await.expect("no panic");
    let hold = hold.expect("there is room now");
    hold.release().await.expect("it is released");
}

#[tokio::test(start_paused = true)]
async fn number_that_is_lowered_while_equals_are_ordered_counts() {
    lowered_number_counts(i32::MAX, RequestKind::GetEach, 1).await;
}

/// A semaphore whose permits this session holds, one by one.
async fn all_held(session: &Session, permits: u32) -> (Semaphore, Vec<Hold>) {
    let semaphore = Semaphore::new(session, PATH, permits).expect("a good path");
    let mut held = Vec::new();
    for _ in 0..permits {
        held.push(semaphore.acquire_many(1).await.expect("one is free"));
    }
    (semaphore, held)
}

#[tokio::test(start_paused = true)]
async fn release_wakes_at_most_as_many_waiters_as_there_are_permits() {
    const PERMITS: u32 = 5;
    let simulation = Simulation::default();
    let holding = simulated_session(&simulation, "holding").await;
    let (_semaphore, mut held) = all_held(&holding, PERMITS).await;
    let processes: Vec<String> = (0..30).map(|number| format!("waiting {number}")).collect();
    let mut waiting = Vec::new();
    for process in &processes {
        let session = simulated_session(&simulation, process).await;
        let waiter = Semaphore::new(&session, PATH, PERMITS).expect("a good path");
        waiting.push(tokio::spawn(async move { waiter.acquire_many(1).await }));
        tokio::time::sleep(SECOND / 10).await;
    }
    // The newest holder, the oldest, and the newest again.
    for (place, woken_at_least) in [(4, 5), (0, 1), (2, 2)] {
        tokio::time::sleep(10 * SECOND).await;
        let before = simulation.counters();
        let hold = held.remove(place);
        hold.release().await.expect("it is released");
        tokio::time::sleep(SECOND).await;
        let after = simulation.counters();
        let is_woken =
            |process: &&String| after.notifications_to(process) > before.notifications_to(process);
        let woken = processes.iter().filter(is_woken).count();
        let expected = woken_at_least..=PERMITS as usize;
        assert!(expected.contains(&woken), "{place}: {woken} are woken");
    }
    waiting.retain(|waiting| waiting.is_finished());
    assert_eq!(waiting.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn number_that_is_raised_is_noticed_where_there_is_no_room_to_watch() {
    const PERMITS: u32 = 1_500;
    let simulation = Simulation::default();
    let holding = simulated_session(&simulation, "holding").await;
    let (semaphore, _held) = all_held(&holding, PERMITS).await;
    let session = simulated_session(&simulation, "waiting").await;
    let waiter = Semaphore::new(&session, PATH, PERMITS).expect("a good path");
    let waiting = tokio::spawn(async move { waiter.acquire_many(1).await });
    tokio::time::sleep(10 * SECOND).await;
    semaphore.resize(PERMITS + 1).await.expect("it is resized");
    let interval = session_timeout() / 6;
    let hold = tokio::time::timeout(interval + SECOND / 10, waiting).await;
    let hold = hold.expect("in time").expect("no panic").expect("a permit");
    assert!(hold.is_held());
}

/// It may be a holder from before the number was lowered. A weight with a leading zero is none.
#[tokio::test(start_paused = true)]
async fn holder_that_is_heavier_than_the_number_leaves_no_permit_until_it_goes() {
    let simulation = Simulation::default();
    let administrator = simulation.administrator();
    let session = simulated_session(&simulation, "one").await;
    let semaphore = Semaphore::new(&session, PATH, 5).expect("a good path");
    semaphore.resize(5).await.expect("it is recorded");
    let mode = CreateMode::PersistentSequential;
    let [_, heavy] = ["permit-01-", "permit-4294967295-"].map(|label| {
        let name = format!("{PATH}/_c_0123456789abcdef0123456789abcdef-{label}");
        administrator.create(&name, b"", mode).expect("it is new")
    });
    assert_eq!(semaphore.available_permits().await.expect("read"), 0);
    administrator.delete(&heavy).expect("it exists");
    assert_eq!(semaphore.available_permits().await.expect("read"), 5);
}

fn session_timeout() -> Duration {
    SimulationOptions::default().session_timeout
}

/// A session of this process at a server that does not lead, and that server.
async fn at_a_follower(
    simulation: &Simulation,
    process: &str,
    other_than: usize,
) -> (Session, usize) {
    let administrator = simulation.administrator();
    loop {
        let session = simulated_session(simulation, process).await;
        let server = administrator.server_of(session.id().expect("it is open"));
        let server = server.expect("it is connected");
        if server != administrator.leader() && server != other_than {
            return (session, server);
        }
    }
}

/// To the follower the number is still the one that it shall be.
#[tokio::test(start_paused = true)]
async fn resize_at_a_follower_that_lags_takes_back_what_it_has_not_seen() {
    let simulation = Simulation::with(|it| it.servers = 3);
    let (session, lagging) = at_a_follower(&simulation, "one", usize::MAX).await;
    let one = Semaphore::new(&session, PATH, 5).expect("a good path");
    let (session, _) = at_a_follower(&simulation, "other", lagging).await;
    let other = Semaphore::new(&session, PATH, 5).expect("a good path");
    let lag = |by| simulation.faults().lag(lagging, by);
    let mut lags = false;
    // A read behind a probe of its session sees what the probe has waited for: then once more.
    for _ in 0..3 {
        lag(Duration::ZERO);
        one.resize(5).await.expect("it is recorded");
        assert_eq!(one.recorded().await.expect("it is read"), Some(5));
        lag(SECOND);
        other.resize(2).await.expect("it is resized");
        lags = one.recorded().await.expect("it is read") == Some(5);
        if lags {
            break;
        }
    }
    assert!(lags);
    one.resize(5).await.expect("it is resized");
    assert_eq!(other.recorded().await.expect("it is read"), Some(5));
}

/// The waiter watches as many contenders as the restored number asks for.
#[tokio::test(start_paused = true)]
async fn waiter_goes_by_the_number_that_a_backup_has_restored() {
    let simulation = Simulation::with(|it| {
        it.servers = 3;
        it.session_timeout = 60 * SECOND;
    });
    let holding = simulated_session(&simulation, "holding").await;
    let (semaphore, mut held) = all_held(&holding, 2).await;
    let waiting = simulated_session(&simulation, "waiting").await;
    let waiter = Semaphore::new(&waiting, PATH, 2).expect("a good path");
    let waits = tokio::spawn(async move { waiter.acquire_many(1).await });
    tokio::time::sleep(SECOND).await;
    let backup = simulation.faults().back_up();
    semaphore.resize(1).await.expect("it is resized");
    tokio::time::sleep(SECOND).await;
    simulation.faults().restore(&backup, SECOND / 2);
    tokio::time::sleep(SECOND).await;
    // The servers admit the clients once they have committed something in the new epoch.
    let administrator = simulation.administrator();
    let created = administrator.create("/later", b"", CreateMode::Persistent);
    created.expect("a leader");
    for session in [&holding, &waiting] {
        session.wait_connected().await.expect("it is open");
    }
    tokio::time::sleep(10 * SECOND).await;
    let first = held.remove(0);
    first.release().await.expect("it is held");
    let hold = tokio::time::timeout(SECOND, waits).await;
    let hold = hold.expect("in time").expect("no panic").expect("a permit");
    assert!(hold.is_held() && held[0].is_held());
}
