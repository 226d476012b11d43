//! How a session begins, continues in the next one, and ends.

use std::future::ready;
use std::sync::atomic::AtomicU64;

use zookeeper_recipes_testkit::altered::{altered, passing};
use zookeeper_recipes_testkit::fake::{FakeEnsemble, Open};

use crate::support::*;

/// Opens a session. So many ZooKeeper sessions expire before they are up.
async fn open(lost: u64) -> Result<Session, Error> {
    let ensemble = Simulation::default().ensemble("one");
    let FakeEnsemble { facts, connector } = altered(ensemble, |_, raw| passing(raw));
    let lost = Arc::new(AtomicU64::new(lost));
    let connector = move |options: &ConnectOptions| {
        let (open, lost) = (connector(options)?, lost.clone());
        let open: Open = Box::new(move || {
            let one_less = |left: u64| left.checked_sub(1);
            let lost = lost.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            let expired = ServerError::SessionOver(SessionEnd::Expired);
            lost.map_or_else(|_| open(), |_| ready(Err(expired)).boxed())
        });
        Ok(open)
    };
    let connector = Box::new(connector);
    let ensemble = Arc::new(FakeEnsemble { facts, connector });
    Session::open(ensemble, ConnectOptions::new()).await
}

#[tokio::test(start_paused = true)]
async fn session_that_is_lost_before_it_is_up_is_tried_again_until_the_connection_timeout() {
    let session = open(3).await.expect("the fourth one is up");
    assert!(session.is_connected());
    let error = open(u64::MAX).await.expect_err("none is ever up");
    assert!(error.to_string().contains("expired"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_closes_but_a_hold_is_one() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let hold = lock(&session, "/dropped").acquire().await;
    let hold = hold.expect("nobody is before it");
    drop(session);
    sleep(PATIENCE).await;
    let write = hold.transaction();
    let write = write.create("/written", b"", CreateMode::Persistent);
    write.commit().await.expect("the hold keeps it open");
    assert!(hold.is_held());
    drop(hold);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(simulation.administrator().sessions(), []);
}

/// A session that is over answers each attempt at once. If the attempt asked again and again, the
/// task that opens a new session would never run. Nor do the tasks of one contender wait for the lost
/// hold, which is kept, and whose loss watch is not set yet.
#[test]
fn those_who_queue_anew_let_a_new_session_be_opened() {
    let anew = QueueOptions::new().after_session_loss(AfterSessionLoss::Requeue);
    for (options, waited) in [(anew.clone(), 1_000), (anew.one_contender(), 1)] {
        ends(true, async move {
            let simulation = Simulation::default();
            let session = simulated_session(&simulation, "one").await;
            let queue = Queue::with_options(&session, "/anew", FIRST, options);
            let queue = queue.expect("a good path");
            let held = queue.acquire().await.expect("nobody is before it");
            let contenders = [(); 10].map(|()| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.acquire().await?.release().await })
            });
            sleep(Duration::from_millis(waited)).await;
            let administrator = simulation.administrator();
            administrator.expire(held.session_id());
            let all = timeout(PATIENCE, join_all(contenders)).await;
            for contender in all.expect("in time") {
                contender.expect("no panic").expect("it queues anew");
            }
        });
    }
}
