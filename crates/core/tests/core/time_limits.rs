//! Holds with a time limit.

use crate::support::*;

const LIMIT: Duration = Duration::from_secs(3);
const UP: LossReason = LossReason::TimeLimit;

/// An ensemble whose sessions outlast a short block of their tasks.
fn with_a_long_lease() -> Simulation {
    simulation!(session_timeout: 40 * SECOND)
}

fn queue(session: &Session, options: QueueOptions) -> Queue {
    queue_with(session, "/locks/a", options)
}

/// The hold of the process `one`, which lasts for the limit.
async fn limited(simulation: &Simulation) -> Hold {
    let session = simulated_session(simulation, "one").await;
    hold(&queue(&session, QueueOptions::new().max_hold(LIMIT))).await
}

/// Waits in a task until the hold is there, and returns when it was.
async fn held_at(waiting: tokio::task::JoinHandle<Result<Hold, Error>>) -> (Hold, Instant) {
    let hold = timeout(10 * SECOND, waiting).await.expect("in time");
    let hold = hold.expect("no panic").expect("its turn");
    (hold, Instant::now())
}

#[tokio::test(start_paused = true)]
async fn hold_whose_work_hangs_ends_and_lets_the_next_process_hold() {
    let simulation = Simulation::default();
    let hangs = limited(&simulation).await;
    let began = Instant::now();
    assert!(hangs.remaining() <= LIMIT);
    let view = hangs.view();
    let waiting = spawned(&lock_of(&simulation, "two", "/locks/a").await);
    assert_eq!(hangs.lost().await, UP);
    assert_eq!(began.elapsed(), LIMIT);
    assert_eq!(hangs.remaining(), Duration::ZERO);
    let (_next, at) = held_at(waiting).await;
    assert!(at - began < LIMIT + SECOND, "{:?}", at - began);
    assert!(view.kept_after_loss().is_some(), "its owner keeps it");
    let write = hangs.transaction().set_data("/data", b"late");
    let refused = write.commit().await;
    assert!(matches!(refused, Err(Error::Lost { reason: UP, .. })));
    let released = hangs.release().await;
    assert!(matches!(released, Err(Error::Lost { reason: UP, .. })));
    assert_eq!(view.ended().await, Ended::Lost(UP));
}

#[tokio::test(start_paused = true)]
async fn hold_is_lost_by_the_clock_if_no_task_of_its_session_runs() {
    let simulation = with_a_long_lease();
    let hold = limited(&simulation).await;
    sleep(LIMIT - SECOND).await;
    simulation.process("one").block_sessions(2 * SECOND);
    sleep(SECOND - Duration::from_millis(1)).await;
    assert!(hold.is_held());
    sleep(Duration::from_millis(1)).await;
    assert_eq!(hold.state(), HoldState::Lost(UP));
}

#[tokio::test(start_paused = true)]
async fn each_hold_of_a_process_has_its_own_time() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let options = QueueOptions::new().max_hold(LIMIT).one_contender();
    let local = queue(&session, options);
    let first = hold(&local).await;
    let (second, third) = (spawned(&local), spawned(&local));
    sleep(2 * SECOND).await;
    first.release().await.expect("it is held");
    let (second, began) = held_at(second).await;
    sleep(2 * SECOND).await;
    assert!(second.is_held(), "the time of the first one has passed");
    assert_eq!(second.lost().await, UP);
    assert_eq!(began.elapsed(), LIMIT);
    // Its owner keeps it, and bars nobody of its process.
    let (third, _) = held_at(third).await;
    assert!(third.fencing_token().get() > second.fencing_token().get());
}

#[tokio::test(start_paused = true)]
async fn time_limit_of_zero_is_refused_at_once() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let options = QueueOptions::new().max_hold(Duration::ZERO);
    let refused = Queue::with_options(&session, "/locks/a", FIRST, options);
    let error = refused.expect_err("no hold could last").to_string();
    assert!(error.contains("time limit"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn time_limit_of_any_length_is_no_limit() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let endless = queue(&session, QueueOptions::new().max_hold(Duration::MAX));
    let hold = endless.acquire().await.expect("nobody is before it");
    sleep(100 * SECOND).await;
    hold.release().await.expect("it is held");
}

/// No task of its session has deleted the znode, so the server would apply the write.
#[tokio::test(start_paused = true)]
async fn write_after_the_time_limit_is_not_sent_though_the_znode_is_there() {
    let simulation = with_a_long_lease();
    make(&simulation, "/data");
    let hold = limited(&simulation).await;
    simulation.process("one").block_sessions(LIMIT + SECOND);
    sleep(LIMIT).await;
    let write = hold.transaction().set_data("/data", b"late");
    let refused = write.commit().await;
    assert!(matches!(refused, Err(Error::Lost { reason: UP, .. })));
    sleep(2 * SECOND).await;
    assert_eq!(data(&simulation, "/data"), b"");
}

/// On the real clock, because the work blocks its thread.
#[tokio::test]
async fn work_that_blocks_its_thread_beyond_the_loss_is_not_done_in_time() {
    let session = simulated_session(&Simulation::default(), "one").await;
    let short = QueueOptions::new().max_hold(Duration::from_millis(50));
    let short = queue(&session, short);
    let hold = short.acquire().await.expect("it is free");
    let done = hold.run_until_lost(async {
        while hold.is_held() {
            std::thread::yield_now();
        }
    });
    assert_eq!(done.await, Err(UP));
    let hold = short.acquire().await.expect("it is free");
    assert_eq!(hold.run_until_lost(async { 7 }).await, Ok(7));
}
