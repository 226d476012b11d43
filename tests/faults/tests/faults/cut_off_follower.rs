//! A holder whose server is cut off from its leader, and still answers signs of life.

use crate::support::*;

const SESSION: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn holder_at_a_follower_that_is_cut_off_is_suspended_then_lost_before_the_next_one_holds() {
    // A follower that is cut off still answers for twenty ticks, far longer than the session
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
    let mut successions = Vec::new();
    for &kind in KINDS {
        let hold = kind.on(&victim, scenario).acquire().await;
        let next = acquire(kind.rival_on(&rival, scenario));
        queue_length(kind, &*kind.rival_on(&rival, scenario), 2).await;
        let hold = Arc::new(hold.expect("it is free"));
        let suspended = tokio::spawn(is_suspended(hold.clone()));
        successions.push((suspended, Succession::begin(kind.name, hold, next)));
    }
    let client = zookeeper_client::Client::connector()
        .with_session_timeout(SESSION)
        .connect(&cut_off.connect_string())
        .await
        .expect("a client");
    ensemble.isolate(followers[0]).expect("an isolation");
    for (suspended, succession) in successions {
        in_time("it is suspended", suspended)
            .await
            .expect("before it was lost");
        let next = succession.in_order().await.next;
        next.release().await.expect("it is released");
    }
    assert_eq!(
        client.state(),
        zookeeper_client::SessionState::SyncConnected,
        "the follower has answered signs of life all the while"
    );
}

/// Waits until a hold that was held is suspended, and not lost yet.
async fn is_suspended(hold: Arc<Hold>) {
    assert_eq!(hold.state(), HoldState::Held);
    while hold.state() == HoldState::Held {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(hold.state(), HoldState::Suspended);
    assert!(hold.is_held());
}
