//! An ensemble that stalls or pauses answers late.

use crate::support::{
    TICK, TIMEOUT, connect, connect_alone_to, create_ephemeral, milliseconds, servers, when_ended,
};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn commits_nothing_while_it_stalls_and_then_all() {
    let simulation = servers(1, 3);
    let session = connect(&simulation, "a").await;
    session.sync("/").await.unwrap();
    simulation.faults().stall_commits(TICK);
    let began = Instant::now();
    session.sync("/").await.unwrap();
    session.list("/").await.unwrap();
    assert!(
        began.elapsed() < milliseconds(100),
        "nothing is slow before"
    );
    create_ephemeral(&session, "/a").await;
    assert!(began.elapsed() >= TICK);
    assert!(began.elapsed() < TICK + milliseconds(100));
}

#[tokio::test(start_paused = true)]
async fn answers_late_what_a_paused_server_was_asked() {
    for paused in 0..3 {
        let simulation = servers(3, 3);
        let session = connect_alone_to(&simulation, "a", 1).await;
        simulation.faults().pause_server(paused, TICK);
        let began = Instant::now();
        create_ephemeral(&session, "/a").await;
        let list = session.list("/").await.unwrap();
        assert_eq!(list, ["a", "zookeeper"]);
        let late = began.elapsed() >= TICK;
        assert_eq!(late, paused != 2, "server {paused}");
        assert_eq!(simulation.administrator().sessions().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn may_expire_sessions_before_a_leader_hears_what_has_come_meanwhile() {
    let mut expired = 0;
    for seed in 0..8 {
        let simulation = servers(seed, 3);
        let session = connect_alone_to(&simulation, "a", 1).await;
        simulation.faults().pause_server(0, TIMEOUT + TICK);
        sleep(TIMEOUT + TICK * 2).await;
        expired += usize::from(when_ended(&simulation, &session).is_some());
    }
    assert!((1..8).contains(&expired), "{expired} of 8");
}
