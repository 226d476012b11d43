//! A blocked runtime holds up sessions, and not the tasks of its process.

use crate::support::{TICK, TIMEOUT, comes, connect, milliseconds, servers, when_ended};
use futures_util::FutureExt;
use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::ensemble::{ConnectionState, SessionEnd};
use zookeeper_recipes_simulation::block_this_task;

#[tokio::test(start_paused = true)]
async fn holds_up_a_session_and_not_the_tasks_of_its_process() {
    let simulation = servers(1, 1);
    let process = simulation.process("a");
    let session = connect(&simulation, "a").await;
    let mut background = tokio::spawn(process.ensemble().task(sleep(TICK / 2).boxed()));
    process.block_sessions(TIMEOUT * 2);
    let began = Instant::now();
    process.while_awake(sleep(TICK)).await;
    assert_eq!(began.elapsed(), TICK);
    assert!(!process.is_asleep());
    assert!(!comes(TICK, session.list("/")).await);
    assert!((&mut background).now_or_never().is_none());
    assert!(session.connection().is_some(), "nobody has looked");

    sleep(TIMEOUT).await;
    assert!(when_ended(&simulation, &session).is_some());
    background.await.unwrap();
    assert!(began.elapsed() >= TIMEOUT * 2);
    sleep(milliseconds(50)).await;
    let expired = ConnectionState::Ended(SessionEnd::Expired);
    assert_eq!(session.state(), expired);
}

#[tokio::test(start_paused = true)]
async fn blocked_task_stands_still_and_the_others_of_its_process_run() {
    let simulation = servers(3, 1);
    let process = simulation.process("a");
    let began = Instant::now();
    let blocks = async {
        block_this_task(TIMEOUT);
        sleep(TICK).await;
    };
    let blocked = tokio::spawn(process.ensemble().task(blocks.boxed()));
    let other = tokio::spawn(process.ensemble().task(sleep(TICK).boxed()));
    other.await.unwrap();
    assert_eq!(began.elapsed(), TICK);
    blocked.await.unwrap();
    assert_eq!(began.elapsed(), TIMEOUT);
}
