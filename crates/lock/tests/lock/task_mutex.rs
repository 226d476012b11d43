//! Tasks of one process that share a hold, on a simulated ensemble.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use zookeeper_recipes_lock::{Error, ExclusiveLock, FencingToken, Locks, TaskGuard, TaskMutex};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::simulated_session;

const PATH: &str = "/locks/a";
const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(3_600);

async fn lock(simulation: &Simulation, process: &str) -> ExclusiveLock {
    let session = simulated_session(simulation, process).await;
    ExclusiveLock::new(&session, PATH).expect("a good path")
}

async fn mutex(simulation: &Simulation, passes: u32, time: Duration) -> TaskMutex {
    TaskMutex::with_limits(lock(simulation, "one").await, passes, time)
}

/// A task that waits, polled once.
fn waiter(
    mutex: &TaskMutex,
) -> impl Future<Output = Result<TaskGuard, Error>> + Send + Unpin + use<> {
    let mutex = mutex.clone();
    let mut waits = Box::pin(async move { mutex.acquire().await });
    assert!((&mut waits).now_or_never().is_none());
    waits
}

async fn held(mutex: &TaskMutex) -> TaskGuard {
    mutex.acquire().await.expect("it is free")
}

fn contenders(simulation: &Simulation) -> usize {
    simulation.administrator().children(PATH).len()
}

/// The order in which this process and another hold, with their tokens: five tasks of this one, and
/// one contender of the other, which comes while the first of the five holds.
async fn order(passes: u32, time: Duration, stays: Duration) -> Vec<(&'static str, FencingToken)> {
    let simulation = Simulation::default();
    let mutex = mutex(&simulation, passes, time).await;
    let theirs = lock(&simulation, "two").await;
    let (turns, mut order) = mpsc::unbounded_channel();
    let first = held(&mutex).await;
    let theirs = tokio::spawn(async move { theirs.acquire().await });
    sleep(SECOND / 4).await;
    let ours: Vec<_> = (0..4).map(|_| waiter(&mutex)).collect();
    let turn = async |guard: TaskGuard| {
        let turn = ("ours", guard.fencing_token());
        turns.send(turn).expect("it is read below");
        sleep(stays).await;
        guard.release().await.expect("it is held");
    };
    let other = async {
        let hold = theirs.await.expect("no panic").expect("its turn");
        let turn = ("theirs", hold.fencing_token());
        turns.send(turn).expect("it is read below");
        hold.release().await.expect("it is held");
    };
    let ours = ours.into_iter();
    let ours = ours.map(async |waits| turn(waits.await.expect("its turn")).await);
    tokio::join!(turn(first), other, futures_util::future::join_all(ours));
    sleep(SECOND).await;
    assert_eq!(contenders(&simulation), 0);
    let mut holds = Vec::new();
    while let Ok(hold) = order.try_recv() {
        holds.push(hold);
    }
    holds
}

fn names(holds: &[(&'static str, FencingToken)]) -> Vec<&'static str> {
    holds.iter().map(|(name, _)| *name).collect()
}

#[tokio::test(start_paused = true)]
async fn other_process_holds_after_as_many_passes_as_are_allowed() {
    let holds = order(2, LONG, SECOND).await;
    assert_eq!(
        names(&holds),
        ["ours", "ours", "ours", "theirs", "ours", "ours"]
    );
    let tokens: Vec<FencingToken> = holds.iter().map(|(_, token)| *token).collect();
    assert!(tokens[0] == tokens[1] && tokens[1] == tokens[2], "one hold");
    assert!(tokens[2] < tokens[3] && tokens[3] < tokens[4], "{tokens:?}");
    assert_eq!(tokens[4], tokens[5], "one hold");
}

#[tokio::test(start_paused = true)]
async fn other_process_holds_once_the_time_is_up() {
    let holds = order(1_000, SECOND * 3 / 2, SECOND).await;
    assert_eq!(names(&holds)[..3], ["ours", "ours", "theirs"]);
    for (passes, time) in [(0, LONG), (1_000, Duration::ZERO)] {
        let holds = order(passes, time, SECOND).await;
        assert_eq!(names(&holds)[..2], ["ours", "theirs"]);
        assert!(holds.is_sorted_by(|one, next| one.1 < next.1), "{holds:?}");
    }
    assert_eq!(
        names(&order(1_000, Duration::MAX, SECOND).await)[4..],
        ["ours", "theirs"]
    );
}

#[tokio::test(start_paused = true)]
async fn tasks_share_a_hold_first_in_first_out_without_a_request() {
    let simulation = Simulation::default();
    let mutex = mutex(&simulation, 100, LONG).await;
    let first = held(&mutex).await;
    let token = first.fencing_token();
    let (second, gives_up, third) = (waiter(&mutex), waiter(&mutex), waiter(&mutex));
    drop(gives_up);
    assert!(mutex.try_acquire().await.expect("an answer").is_none());
    let requests = simulation.counters().requests_of("one");
    first.release().await.expect("it is held");
    let mut third = third;
    assert!(
        (&mut third).now_or_never().is_none(),
        "the second is before"
    );
    let second = second.now_or_never().expect("its turn").expect("held");
    drop(second);
    let third = third.now_or_never().expect("its turn").expect("held");
    assert_eq!(third.fencing_token(), token);
    assert_eq!(simulation.counters().requests_of("one"), requests);
    third.release().await.expect("it is held");
    assert_eq!(contenders(&simulation), 0, "no task waits");
}

#[tokio::test(start_paused = true)]
async fn hold_that_is_kept_for_a_task_that_gives_up_is_released() {
    let simulation = Simulation::default();
    let mutex = mutex(&simulation, 100, LONG).await;
    for others in 0..3 {
        let first = held(&mutex).await;
        let waiters: Vec<_> = (0..=others).map(|_| waiter(&mutex)).collect();
        first.release().await.expect("it is held");
        // The first of them has the hold now, and is not polled.
        drop(waiters);
        sleep(SECOND).await;
        assert_eq!(contenders(&simulation), 0);
    }
    let tried = mutex.try_acquire().await.expect("an answer");
    drop(tried.expect("it is free"));
}

#[tokio::test(start_paused = true)]
async fn attempt_that_is_dropped_at_any_moment_lets_the_next_task_hold() {
    for milliseconds in 0..20 {
        let simulation = Simulation::default();
        let mutex = mutex(&simulation, 100, LONG).await;
        let patience = Duration::from_millis(milliseconds);
        let gives_up = timeout(patience, mutex.acquire());
        let (given_up, next) = tokio::join!(gives_up, mutex.acquire());
        drop((given_up, next.expect("its turn")));
        sleep(SECOND).await;
        assert_eq!(contenders(&simulation), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn task_after_a_lost_hold_acquires_anew() {
    let simulation = Simulation::default();
    let mutex = mutex(&simulation, 100, LONG).await;
    for is_dropped in [true, false] {
        let lost = held(&mutex).await;
        let next = waiter(&mutex);
        sleep(5 * SECOND).await;
        let administrator = simulation.administrator();
        administrator.delete(lost.node_path()).expect("it exists");
        lost.lost().await;
        let token = lost.fencing_token();
        match is_dropped {
            true => drop(lost),
            false => assert!(matches!(lost.release().await, Err(Error::Lost { .. }))),
        }
        let next = next.await.expect("its turn");
        assert!(next.is_held() && token < next.fencing_token());
        next.release().await.expect("it is held");
    }
}

/// Work that has a view of the hold must not go on in the turn of another task.
#[tokio::test(start_paused = true)]
async fn view_of_a_turn_has_ended_before_the_next_task_has_its_turn() {
    let simulation = Simulation::default();
    let mutex = mutex(&simulation, 100, LONG).await;
    for is_dropped in [true, false] {
        let first = held(&mutex).await;
        let (next, token, view) = (waiter(&mutex), first.fencing_token(), first.view());
        match is_dropped {
            true => drop(first),
            false => first.release().await.expect("it is held"),
        }
        assert!(!view.is_held());
        let next = next.await.expect("its turn");
        assert!(next.is_held() && token < next.fencing_token());
        // A view that has gone keeps no hold from passing on.
        drop(next.view());
        let (last, token) = (waiter(&mutex), next.fencing_token());
        next.release().await.expect("it is held");
        let last = last.await.expect("its turn");
        assert_eq!(last.fencing_token(), token);
    }
}

/// The hold is lost after it was left to a task that is polled late.
#[tokio::test(start_paused = true)]
async fn hold_that_is_lost_between_two_turns_is_not_taken() {
    let simulation = Simulation::default();
    let mutex = mutex(&simulation, 100, LONG).await;
    let first = held(&mutex).await;
    let (next, token) = (waiter(&mutex), first.fencing_token());
    sleep(5 * SECOND).await;
    let path = first.node_path().to_owned();
    first.release().await.expect("it is held");
    simulation.administrator().delete(&path).expect("it exists");
    sleep(SECOND).await;
    let next = next.await.expect("its turn");
    assert!(next.is_held() && token < next.fencing_token());
}

#[tokio::test(start_paused = true)]
async fn mutexes_of_one_name_are_one_and_are_forgotten_when_idle() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let locks = Locks::new(&session, "/keys").expect("a good path");
    let name = |name: &str| locks.mutex(name).expect("a good name");
    let guard = held(&name("4711")).await;
    for other in 0..1_000 {
        drop(name(&format!("other-{other}")));
    }
    let next = waiter(&name("4711"));
    let token = guard.fencing_token();
    guard.release().await.expect("it is held");
    let next = next.await.expect("its turn");
    assert_eq!(next.fencing_token(), token);
    let lock = locks.lock("4711").expect("a good name");
    assert!(lock.try_acquire().await.expect("an answer").is_none());
}
