//! Attempts that are dropped before their creates are answered.

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(10);
const ATTEMPTS: usize = 50;
const LOCK: &str = "/lock";

fn simulation() -> Simulation {
    simulation!(session_timeout: TIMEOUT, trace_limit: 0)
}

/// A queue whose directory exists, in a simulated session of its own.
async fn simulated(simulation: &Simulation) -> Queue {
    let queue = lock_of(simulation, "one", LOCK).await;
    take_turn(&queue).await;
    queue
}

/// Attempts of many tasks. Each begins the next attempt when its deadline has passed.
async fn give_up_again_and_again(queue: &Queue, tasks: usize, times: usize, deadline: Duration) {
    let tasks = (0..tasks).map(|_| {
        let queue = queue.clone();
        tokio::spawn(async move {
            for _ in 0..times {
                drop(queue.acquire_timeout(deadline).await);
            }
        })
    });
    for task in join_all(tasks).await {
        task.expect("no panic");
    }
}

/// Attempts that are not answered yet.
fn attempts(queue: &Queue) -> Vec<BoxFuture<'_, ()>> {
    (0..ATTEMPTS).map(|_| begun(take_turn(queue))).collect()
}

fn contenders(simulation: &Simulation) -> Vec<String> {
    simulation.administrator().children(LOCK)
}

/// Waits until the servers have applied the create of each attempt.
async fn until_all_are_created(simulation: &Simulation) {
    while contenders(simulation).len() < ATTEMPTS {
        sleep(Duration::from_micros(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_that_give_up_in_a_stall_are_one_create_for_each_task() {
    let simulation = simulation();
    let queue = simulated(&simulation).await;
    let before = simulation.counters();
    simulation.process("one").partition(Duration::from_secs(3));
    give_up_again_and_again(&queue, ATTEMPTS, 20, Duration::from_millis(100)).await;
    sleep(Duration::from_secs(3)).await;
    assert_eq!(contenders(&simulation), [""; 0]);
    let kinds = [RequestKind::Create, RequestKind::List];
    // Each reply names the znode, so nobody looks for it.
    assert_eq!(
        sent_since(&simulation, &before, kinds),
        [ATTEMPTS as u64; 2]
    );
    let kinds = [RequestKind::Delete, RequestKind::Transact];
    let deletions: u64 = sent_since(&simulation, &before, kinds).iter().sum();
    assert!(deletions < ATTEMPTS as u64, "{deletions} deletions");
}

/// The connection breaks before the replies come, and the server has applied the creates.
#[tokio::test(start_paused = true)]
async fn attempts_dropped_in_a_stall_that_breaks_the_connection_are_found_by_two_lists() {
    let simulation = simulation();
    let queue = simulated(&simulation).await;
    let before = simulation.counters();
    let attempts = attempts(&queue);
    until_all_are_created(&simulation).await;
    simulation.process("one").disconnect();
    drop(attempts);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(contenders(&simulation), [""; 0]);
    let kinds = [RequestKind::Create, RequestKind::List];
    let once = ATTEMPTS as u64;
    assert_eq!(sent_since(&simulation, &before, kinds), [once, once + 2]);
}

#[tokio::test(start_paused = true)]
async fn creates_whose_replies_are_lost_together_are_found_by_one_list() {
    let simulation = simulation();
    let queue = simulated(&simulation).await;
    let before = simulation.counters();
    let attempts = attempts(&queue);
    until_all_are_created(&simulation).await;
    simulation.process("one").disconnect();
    timeout(TIMEOUT, join_all(attempts)).await.expect("in time");
    // A look is a proof, which is a transaction, and a list. No other transaction is sent here.
    let [proofs] = sent_since(&simulation, &before, [RequestKind::Transact]);
    assert!((1..10).contains(&proofs), "{proofs} proofs");
}

/// The attempt knows that its create may have been applied, and is dropped before it can look.
#[tokio::test(start_paused = true)]
async fn attempt_dropped_before_it_finds_its_znode_leaves_nothing() {
    let simulation = simulation();
    let queue = simulated(&simulation).await;
    let attempts = attempts(&queue);
    until_all_are_created(&simulation).await;
    let process = simulation.process("one");
    process.partition(Duration::from_secs(2));
    process.disconnect();
    let given_up = timeout(Duration::from_secs(1), join_all(attempts)).await;
    assert!(given_up.is_err(), "no server answers");
    assert_eq!(contenders(&simulation).len(), ATTEMPTS);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(contenders(&simulation), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn close_lists_nothing_for_attempts_that_are_not_polled() {
    let simulation = simulation();
    let queue = simulated(&simulation).await;
    let before = simulation.counters();
    let attempts = attempts(&queue);
    let session = queue.session().clone();
    timeout(TIMEOUT, session.close()).await.expect("in time");
    assert_eq!(contenders(&simulation), [""; 0]);
    let lists = sent_since(&simulation, &before, [RequestKind::List]);
    assert_eq!(lists, [ATTEMPTS as u64], "of the attempts themselves");
    drop(attempts);
}

#[tokio::test(start_paused = true)]
async fn attempt_that_was_never_sent_sends_nothing() {
    let simulation = simulation();
    simulated(&simulation).await;
    let session = simulated_session(&simulation, "two").await;
    let queue = queue_by(&session, LOCK, FIRST_ALONE);
    let before = simulation.counters();
    // It waits for the answer whether its releases can be marked.
    drop(begun(queue.acquire()));
    sleep(Duration::from_secs(1)).await;
    let kinds = [
        RequestKind::Transact,
        RequestKind::Create,
        RequestKind::List,
    ];
    assert_eq!(sent_since(&simulation, &before, kinds), [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn attempts_that_give_up_without_a_connection_send_nothing() {
    let simulation = simulation();
    let queue = simulated(&simulation).await;
    simulation.process("one").partition(Duration::from_secs(2));
    simulation.process("one").disconnect();
    until(|| !queue.session().is_connected()).await;
    let before = simulation.counters();
    let deadline = Duration::from_millis(100);
    give_up_again_and_again(&queue, ATTEMPTS, 5, deadline).await;
    let tried = queue.try_acquire().await;
    assert_fails!(tried, Error::Disconnected);
    sleep(Duration::from_secs(5)).await;
    assert!(queue.session().is_connected());
    let kinds = [
        RequestKind::Create,
        RequestKind::List,
        RequestKind::Delete,
        RequestKind::Transact,
    ];
    // The transaction is the proof after the reconnect.
    assert_eq!(sent_since(&simulation, &before, kinds), [0, 0, 0, 1]);
    assert!(queue.acquire().await.expect("it is free").is_held());
}

/// Its directory does not exist, so the create is refused.
#[tokio::test(start_paused = true)]
async fn attempt_that_is_dropped_before_its_create_is_refused_asks_for_nothing_more() {
    let simulation = simulation();
    let queue = lock_of(&simulation, "one", "/missing").await;
    drop(begun(queue.acquire()));
    sleep(TIMEOUT).await;
    // The list behind the create was not sent yet.
    let kinds = [RequestKind::Create, RequestKind::List, RequestKind::Delete];
    assert_eq!(sent(&simulation, kinds), [1, 0, 0]);
}
