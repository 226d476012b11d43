//! Overviews that are kept up to date.

use std::time::Duration;

use zookeeper_recipes_overview::{Error, Overview};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::{LOCK, in_time, simulated_session};

use crate::support::{VIEWER, viewer};

const PAUSE: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn changes_are_shown_after_each_pause_also_over_the_end_of_the_session() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let mut live = Overview::watch(&viewer, "/", PAUSE).await.expect("a look");
    assert!(live.borrow().overview.queues().is_empty());
    let session = simulated_session(&simulation, "holder").await;
    let hold = LOCK.at(&session, "/lock", 1).acquire().await.expect("free");
    let shows = |number| {
        move |it: &zookeeper_recipes_overview::LiveOverview| it.overview.queues().len() == number
    };
    drop(
        in_time("the hold is shown", live.wait_for(shows(1)))
            .await
            .expect("open"),
    );
    let expired = viewer.id().expect("it is open");
    simulation.administrator().expire(expired);
    hold.release().await.expect("it is held");
    drop(
        in_time("the release is shown", live.wait_for(shows(0)))
            .await
            .expect("open"),
    );
    assert_ne!(viewer.id(), Some(expired));
    let (failures, looked_at) = (live.borrow().failures, live.borrow().looked_at);
    assert_eq!(failures, 0);
    simulation.process(VIEWER).partition(PAUSE * 3);
    tokio::time::sleep(PAUSE * 2).await;
    assert!(
        live.borrow().looked_at - looked_at < PAUSE,
        "no server answers"
    );
}

#[tokio::test(start_paused = true)]
async fn looks_end_with_the_session_and_with_the_last_receiver() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let refused = Overview::watch(&viewer, "/", Duration::ZERO).await;
    assert!(matches!(refused, Err(Error::InvalidInput(_))));
    let live = Overview::watch(&viewer, "/", PAUSE).await.expect("a look");
    drop(live);
    tokio::time::sleep(PAUSE * 2).await;
    let before = simulation
        .counters()
        .requests(zookeeper_recipes_simulation::RequestKind::List);
    tokio::time::sleep(PAUSE * 10).await;
    let after = simulation
        .counters()
        .requests(zookeeper_recipes_simulation::RequestKind::List);
    assert_eq!(before, after, "nobody looks any more");
    let mut live = Overview::watch(&viewer, "/", PAUSE).await.expect("a look");
    // The task has a clone of the session.
    viewer.close().await;
    let over = |it: &zookeeper_recipes_overview::LiveOverview| {
        matches!(it.error, Some(Error::NoSession { .. }))
    };
    drop(
        in_time("the end is shown", live.wait_for(over))
            .await
            .expect("it is sent"),
    );
    let ended = in_time("the sender is dropped", live.changed()).await;
    assert!(ended.is_err());
}
