//! An ensemble: it survives what an ensemble should.

use std::time::Duration;

use zookeeper_recipes_suite::administrator;
use zookeeper_recipes_testkit::{Ensemble, Error, Mode, ServerOptions};

async fn ensemble() -> Ensemble {
    Ensemble::start(3, ServerOptions::new())
        .await
        .expect("an ensemble")
}

#[tokio::test]
async fn paused_leader_is_replaced_and_follows_when_it_goes_on() {
    let mut ensemble = ensemble().await;
    let first = ensemble.leader().await.expect("a leader");
    ensemble.members()[first].pause().expect("a pause");
    let second = ensemble.leader().await.expect("a leader");
    assert_ne!(second, first);
    ensemble.members()[first].resume().expect("a resumption");
    ensemble
        .wait_until_all_serve()
        .await
        .expect("three members");
    let returned = ensemble.members()[first].status().await.expect("a status");
    assert_eq!(returned.mode, Mode::Follower);
    assert_eq!(ensemble.leader().await.expect("a leader"), second);
}

#[tokio::test]
async fn session_expires_through_any_member() {
    let ensemble = ensemble().await;
    let client = administrator(&ensemble).await;
    let followers = ensemble.followers().await.expect("followers");
    let session_id = client.session_id().0;
    ensemble.members()[followers[0]]
        .expire_session(session_id)
        .await
        .expect("an expiry");
    // The other one may not have heard of it yet.
    let again = async {
        loop {
            ensemble.members()[followers[1]]
                .expire_session(session_id)
                .await?;
        }
    };
    let again: Result<(), Error> = tokio::time::timeout(Duration::from_secs(30), again)
        .await
        .expect("both know in the end");
    assert!(
        matches!(again, Err(Error::UnknownSession { .. })),
        "{again:?}"
    );
}

#[tokio::test]
async fn isolated_member_is_reached_by_clients_and_by_no_other_member() {
    let options = ServerOptions::new();
    let mut ensemble = Ensemble::start_with_partitions(3, options)
        .await
        .expect("an ensemble");
    let first = ensemble.leader().await.expect("a leader");
    ensemble.isolate(first).expect("an isolation");
    let second = ensemble.leader().await.expect("a leader");
    assert_ne!(second, first, "the others have elected one of themselves");
    // It answers still, and no longer as a leader once it has noticed.
    let answer = async {
        while !matches!(
            ensemble.members()[first].status().await,
            Err(Error::NotServing { .. })
        ) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), answer)
        .await
        .expect("it stops serving");

    // Alone for longer, it must not come back by a way that goes round the proxies.
    let follower = 3 - first - second;
    let alone = tokio::time::timeout(Duration::from_secs(3), ensemble.restart(first)).await;
    assert!(alone.is_err(), "it cannot serve: {alone:?}");
    ensemble.restart(follower).await.expect("the others have");
    assert_ne!(ensemble.leader().await.expect("a leader"), first);

    ensemble.heal(first).expect("healing");
    ensemble
        .wait_until_all_serve()
        .await
        .expect("three members");
    let returned = ensemble.members()[first].status().await.expect("a status");
    assert_eq!(returned.mode, Mode::Follower);
}

#[tokio::test]
async fn members_without_proxies_between_them_cannot_be_isolated() {
    let ensemble = Ensemble::start(1, ServerOptions::new())
        .await
        .expect("an ensemble");
    assert!(matches!(ensemble.isolate(0), Err(Error::NoPartitions)));
}
