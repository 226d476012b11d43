//! Rules that break their own word, and requests that no server takes: refused before anything is
//! sent.

use crate::support::*;

/// As [`FIRST`], by another label.
fn labelled(label: &'static str) -> ByPlace {
    ByPlace { label, ..FIRST }
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
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "a").await;
    for label in ["a/b-", "/", "../lock-", "lo\0ck-", "lock\u{85}-"] {
        let refused = Queue::new(&session, "/locks/a", labelled(label));
        let error = refused.expect_err(label).to_string();
        assert!(error.contains("label"), "{label:?}: {error}");
    }
    let refused = Queue::new(&session, "/locks/a", Uncounting);
    let error = refused.expect_err("it counts nothing").to_string();
    assert!(error.contains("does not count"), "{error}");
    assert_eq!(simulation.administrator().children("/"), ["zookeeper"]);
}

/// Asserts that an attempt by this rule ends with an error at once.
async fn assert_refused(rule: impl Rule + 'static) {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "a").await;
    let queue = queue_by(&session, "/locks/a", rule);
    let refused = in_time("an answer", queue.acquire()).await;
    assert_fails!(refused, Error::InvalidInput);
}

#[tokio::test(start_paused = true)]
async fn rule_that_waits_on_its_own_contender_is_refused() {
    let waits_on = |me| Some(me..me + 1);
    assert_refused(ByPlace { waits_on, ..FIRST }).await;
}

/// Steps back for nobody.
#[derive(Debug)]
struct Restless;

impl Rule for Restless {
    fn label(&self) -> Cow<'_, str> {
        "lock-".into()
    }

    fn decide(&self, _view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        Ok(Verdict::StepBack)
    }
}

#[tokio::test(start_paused = true)]
async fn rule_that_steps_back_with_none_behind_is_refused() {
    assert_refused(Restless).await;
}

#[tokio::test(start_paused = true)]
async fn other_kind_of_contender_that_no_queue_can_have_is_refused() {
    let simulation = Simulation::default();
    let queue = lock_of(&simulation, "a", "/locks/a").await;
    assert!(queue.by(labelled("a/b-")).is_err());
}

/// A rule that says no more than it has to.
#[derive(Debug)]
struct First;

impl Rule for First {
    fn label(&self) -> Cow<'_, str> {
        FIRST.label()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        FIRST.decide(view)
    }
}

fn contenders() -> [Contender; 2] {
    [1, 2].map(|number| {
        let name = format!("{}{number:010}", Identity::random().name("lock-"));
        Contender::parse(&name, |label| label == "lock-").expect("a contender")
    })
}

#[test]
fn view_shows_who_is_before_and_the_data_of_the_directory() {
    let [first, second] = contenders();
    let (before, behind) = ([first.clone()], contenders());
    let view = QueueView::new(&before, &second, Some(b"data"));
    assert_eq!(view.behind(), []);
    assert_eq!(view.with_behind(&behind).behind(), behind);
    assert_eq!(view.before(), before);
    assert_eq!(view.me(), &second);
    assert_eq!(view.place(), 1);
    assert_eq!(view.directory_data(), Some(&b"data"[..]));
    assert_eq!(QueueView::new(&[], &first, None).directory_data(), None);
}

#[test]
fn rule_that_says_nothing_more_counts_its_own_label_and_needs_no_more_than_the_contenders_before() {
    assert!(First.counts("lock-"));
    assert!(!First.counts("other-"));
    assert!(!First.reads_directory());
    assert!(!First.looks_behind());
    assert_eq!(First.directory_data(), [0; 0]);
}

#[test]
fn rule_that_says_nothing_more_shows_operators_who_holds_as_it_decides() {
    let [first, second] = contenders();
    assert!(First.holds(&QueueView::new(&[], &first, None)));
    assert!(!First.holds(&QueueView::new(&[first], &second, None)));
}

/// What may save a request is off, and what may cost a hold is on.
#[test]
fn rule_that_gives_no_hints_marks_no_release_and_may_be_replaced() {
    assert_eq!(First.recipe("lock-"), "queue");
    assert!(!First.holds_only_first("lock-"));
    assert!(First.may_be_replaced("lock-"));
}
