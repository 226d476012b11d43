//! A holder whose server is cut off from its leader, and goes on answering signs of life.

use std::time::{Duration, Instant};

use zookeeper_recipes_core::HoldState;
use zookeeper_recipes_suite::{KINDS, LONG, TICK, in_time, session};
use zookeeper_recipes_testkit::{Ensemble, ServerOptions};

use crate::support::{acquire, queue_length};

const SESSION: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn holder_at_a_follower_that_is_cut_off_is_suspended_then_lost_before_the_next_one_holds() {
    // A follower that is cut off goes on answering for twenty ticks, far longer than the session
    // lives: the client alone would notice nothing.
    let options = ServerOptions::new()
        .tick_time(TICK)
        .configuration("syncLimit", "20");
    let ensemble = Ensemble::start_with_partitions(3, options)
        .await
        .expect("an ensemble");
    let followers = ensemble.followers().await.expect("followers");
    let cut_off = &ensemble.members()[followers[0]];
    let other = &ensemble.members()[followers[1]];
    let scenario = "cut-off";
    let victim = session(cut_off, SESSION).await;
    let rival = session(other, LONG).await;
    let mut losses = Vec::new();
    let mut successions = Vec::new();
    for &kind in KINDS {
        let hold = kind
            .on(&victim, scenario)
            .acquire()
            .await
            .expect("it is free");
        let next = acquire(kind.rival_on(&rival, scenario));
        queue_length(kind, &*kind.rival_on(&rival, scenario), 2).await;
        losses.push(tokio::spawn(async move {
            let held_first = hold.state() == HoldState::Held;
            let suspended = async {
                while hold.state() != HoldState::Suspended {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            in_time("it is suspended", suspended).await;
            let still_held = hold.is_held();
            let reason = hold.lost().await;
            (Instant::now(), reason, held_first && still_held)
        }));
        successions.push(tokio::spawn(async move {
            let next = next.await.expect("no panic").expect("it is acquired");
            (Instant::now(), next)
        }));
    }
    let client = zookeeper_client::Client::connector()
        .with_session_timeout(SESSION)
        .connect(&cut_off.connect_string())
        .await
        .expect("a client");
    ensemble.isolate(followers[0]).expect("an isolation");
    for ((kind, loss), succession) in KINDS.iter().zip(losses).zip(successions) {
        let (lost_at, reason, suspended) = in_time("the loss", loss).await.expect("no panic");
        let (granted_at, next) = in_time("the next", succession).await.expect("no panic");
        assert!(suspended, "{kind:?}: suspended before it was lost");
        assert!(
            lost_at < granted_at,
            "{kind:?}: {reason} {:?} too late",
            lost_at - granted_at
        );
        assert!(next.is_held(), "{kind:?}");
        next.release().await.expect("it is released");
    }
    assert_eq!(
        client.state(),
        zookeeper_client::SessionState::SyncConnected,
        "the follower has answered signs of life all the while"
    );
}
