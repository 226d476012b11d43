//! Rules that break their own word, and requests that no server takes: refused before anything is
//! sent.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zookeeper_recipes_core::{Error, InvalidInput, Queue, QueueView, Rule, Verdict};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::simulated_session;

use crate::support::First;

/// The first, by another label.
#[derive(Debug)]
struct Labelled(&'static str);

impl Rule for Labelled {
    fn label(&self) -> Cow<'_, str> {
        self.0.into()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        First.decide(view)
    }
}

/// Counts no contender, not even its own.
#[derive(Debug)]
struct Uncounting;

impl Rule for Uncounting {
    fn label(&self) -> Cow<'_, str> {
        "lock-".into()
    }

    fn counts(&self, _: &str) -> bool {
        false
    }

    fn decide(&self, _view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        Ok(Verdict::Hold)
    }
}

#[tokio::test(start_paused = true)]
async fn rule_whose_contenders_no_queue_can_have_is_refused_at_once() {
    let simulation = Simulation::new(Default::default());
    let session = simulated_session(&simulation, "a").await;
    for label in ["a/b-", "/", "../lock-", "lo\0ck-", "lock\u{85}-"] {
        let refused = Queue::new(&session, "/locks/a", Labelled(label));
        let error = refused.expect_err(label).to_string();
        assert!(error.contains("label"), "{label:?}: {error}");
    }
    let refused = Queue::new(&session, "/locks/a", Uncounting);
    let error = refused.expect_err("it counts nothing").to_string();
    assert!(error.contains("does not count"), "{error}");
    assert_eq!(simulation.administrator().children("/"), ["zookeeper"]);
}

#[tokio::test(start_paused = true)]
async fn other_kind_of_contender_that_no_queue_can_have_is_refused_at_each_attempt() {
    let simulation = Simulation::new(Default::default());
    let session = simulated_session(&simulation, "a").await;
    let queue = Queue::new(&session, "/locks/a", First).expect("a good path");
    let other = queue.by(Labelled("a/b-"));
    let acquired = other.acquire().await.map(drop);
    assert!(
        matches!(acquired, Err(Error::InvalidInput(_))),
        "{acquired:?}"
    );
    let tried = other.try_acquire().await.map(drop);
    assert!(matches!(tried, Err(Error::InvalidInput(_))), "{tried:?}");
    assert_eq!(simulation.administrator().children("/"), ["zookeeper"]);
}

#[tokio::test(start_paused = true)]
async fn transaction_that_no_server_takes_is_refused_and_costs_no_connection() {
    let simulation = Simulation::new(Default::default());
    let session = simulated_session(&simulation, "a").await;
    let queue = Queue::new(&session, "/locks/a", First).expect("a good path");
    let hold = queue.acquire().await.expect("nobody is before it");
    let data = vec![0; 600_000];
    let write = hold.transaction().set_data("/a", &data);
    let refused = write.set_data("/b", &data).commit().await;
    assert!(
        matches!(refused, Err(Error::InvalidInput(_))),
        "{refused:?}"
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(hold.is_held());
    hold.release().await.expect("it is released");
}

/// Counts how often its label is read.
#[derive(Clone, Debug, Default)]
struct CountsReads(Arc<AtomicUsize>);

impl Rule for CountsReads {
    fn label(&self) -> Cow<'_, str> {
        self.0.fetch_add(1, Ordering::Relaxed);
        First.label()
    }

    fn counts(&self, label: &str) -> bool {
        First.counts(label)
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        First.decide(view)
    }
}

#[tokio::test(start_paused = true)]
async fn label_is_read_once_for_each_queue() {
    let simulation = Simulation::new(Default::default());
    let session = simulated_session(&simulation, "a").await;
    let rule = CountsReads::default();
    let reads = rule.0.clone();
    let queue = Queue::new(&session, "/locks/a", rule.clone()).expect("a good path");
    let hold = queue.acquire().await.expect("nobody is before it");
    assert!(queue.try_acquire().await.expect("a look").is_none());
    hold.release().await.expect("it is held");
    let tried = queue.try_acquire().await.expect("a look");
    assert!(tried.is_some());
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    drop((tried, queue.by(rule)));
    assert_eq!(reads.load(Ordering::Relaxed), 2);
}
