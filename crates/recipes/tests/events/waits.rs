//! The events of waits, and the metric of handoffs.

use std::iter::zip;
use std::sync::Arc;

use zookeeper_recipes::{Recipe, Semaphore, WaitStrategy};

use crate::*;

const SECOND: Duration = Duration::from_secs(1);
const OWN_WAIT: &str = "waits for itself";

async fn election(simulation: &Simulation, id: &str) -> LeaderElection {
    let session = simulation.session(id).await.expect("it opens");
    LeaderElection::new(&session, "/leader", id).expect("a good path")
}

#[tokio::test(start_paused = true)]
async fn task_that_acquires_what_it_holds_is_named_once() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::default();
    let session = simulation.session("one").await.expect("it opens");
    let single = SingleNodeLock::new(&session, "/single").expect("a good path");
    let election = LeaderElection::new(&session, "/leader", "one").expect("a good path");
    let semaphore = Semaphore::new(&session, "/permits", 1).expect("a good path");
    let rwlock = RwLock::new(&session, "/rwlock").expect("a good path");
    let writer = rwlock.write();
    let recipes: [&dyn Recipe; 5] = [&one_lock(&session), &single, &election, &semaphore, writer];
    for recipe in recipes {
        let hold = recipe.acquire().await.expect("nobody is before it");
        let before = named(&log, OWN_WAIT).len();
        for _ in 0..2 {
            let again = recipe.acquire_timeout(SECOND).await;
            assert!(again.is_err_and(|error| error.is_timeout()));
            let warned = named(&log, OWN_WAIT).split_off(before);
            assert_eq!(warned.len(), 1, "{recipe:?}");
        }
        let line = format!("{:?}", named(&log, OWN_WAIT).last());
        assert!(
            line.contains(hold.node_path()) && line.contains("contender"),
            "{line}"
        );
        hold.release().await.expect("it is held");
    }
}

#[tokio::test(start_paused = true)]
async fn task_that_waits_for_another_task_of_its_process_is_not_named() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::default();
    let session = simulation.session("one").await.expect("it opens");
    let rwlock = RwLock::new(&session, "/rwlock").expect("a good path");
    let recipes: [Arc<dyn Recipe>; 2] = [
        Arc::new(one_lock(&session)),
        Arc::new(rwlock.write().clone()),
    ];
    for recipe in recipes {
        let hold = recipe.acquire().await.expect("nobody is before it");
        let waiting = tokio::spawn(async move { recipe.acquire().await });
        sleep(SECOND).await;
        hold.release().await.expect("it is held");
        drop(waiting.await.expect("no panic").expect("its turn"));
    }
    assert_eq!(named(&log, OWN_WAIT).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn waiter_that_looks_again_reports_each_place_once() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::default();
    let polling = async |process| {
        let session = simulation.session(process).await.expect("it opens");
        let options = LockOptions::new().strategy(WaitStrategy::Poll(SECOND));
        ExclusiveLock::with_options(&session, "/lock", options).expect("a good path")
    };
    let holder = polling("holder").await.acquire().await.expect("free");
    let mut waiting = Vec::new();
    for process in ["second", "third"] {
        let lock = polling(process).await;
        waiting.push(tokio::spawn(async move { lock.acquire().await }));
        sleep(10 * SECOND).await;
    }
    holder.release().await.expect("it is held");
    let second = waiting.remove(0).await.expect("no panic");
    let second = second.expect("its turn");
    sleep(10 * SECOND).await;
    let waits = named(&log, "waiting").into_iter();
    let third = waits.filter(|line| second.node_path().ends_with(&line.fields["behind"]));
    let positions = Vec::from_iter(third.map(|line| line.fields["position"].clone()));
    assert_eq!(positions, ["2", "1"]);
}

#[tokio::test(start_paused = true)]
async fn candidate_that_steps_back_says_so() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::default();
    let first = election(&simulation, "first").await;
    let first = first.acquire().await.expect("free");
    let standby = election(&simulation, "standby").await.standby();
    let standby = standby.expect("a good name");
    let standby = tokio::spawn(async move { standby.acquire().await });
    sleep(SECOND).await;
    let regular = election(&simulation, "regular").await;
    let regular = tokio::spawn(async move { regular.acquire().await });
    sleep(SECOND).await;
    first.release().await.expect("it leads");
    let regular = regular.await.expect("no panic").expect("its turn");
    let steps = named(&log, "stepped back");
    assert_eq!(steps.len(), 1, "{:?}", log.lines());
    regular.release().await.expect("it leads");
    drop(standby.await.expect("no panic").expect("its turn"));
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn handoff_is_measured_from_its_news_to_the_hold() {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    let _alone = crate::ALONE.lock().await;
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let simulation = Simulation::default();
    // Each snapshot takes the values with it.
    let handoffs = || {
        let metrics = recorder.snapshotter().snapshot().into_vec().into_iter();
        let of = metrics.filter(|it| it.0.key().name() == "zookeeper_recipes_handoff_seconds");
        let values = of.filter_map(|(_, _, _, value)| match value {
            DebugValue::Histogram(values) => Some(values),
            _ => None,
        });
        Vec::from_iter(values.flatten().map(|value| value.into_inner()))
    };
    let first = simulation.session("first").await.expect("it opens");
    let second = simulation.session("second").await.expect("it opens");
    let recipes = |session: &Session| -> [Box<dyn Recipe>; 2] {
        let lock = ExclusiveLock::new(session, "/lock").expect("a good path");
        let election = LeaderElection::new(session, "/leader", "one").expect("a good path");
        [Box::new(lock), Box::new(election)]
    };
    let mut took = Vec::new();
    for (first, second) in zip(recipes(&first), recipes(&second)) {
        let hold = first.acquire().await.expect("free");
        let waiting = tokio::spawn(async move { second.acquire().await });
        sleep(SECOND).await;
        assert!(handoffs().is_empty(), "nothing was passed on");
        hold.release().await.expect("it is held");
        drop(waiting.await.expect("no panic").expect("its turn"));
        took.extend(handoffs());
    }
    // A lock holds at the news, and a candidate lists the queue before.
    assert_eq!(took.len(), 2, "{took:?}");
    assert!(took[0] == 0.0 && took[1] > 0.0 && took[1] < 1.0, "{took:?}");
}
