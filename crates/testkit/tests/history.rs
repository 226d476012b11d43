//! The history finds what must not be, and nothing else.

use std::borrow::Cow;

use futures_util::FutureExt;
use zookeeper_recipes_core::{
    ConnectOptions, FencingToken, Hold, InvalidInput, Queue, QueueOptions, QueueView, Rule,
    Session, Verdict,
};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_testkit::history::{History, Violation};

/// No rule at all: each contender holds at once.
#[derive(Debug)]
struct Everybody;

impl Rule for Everybody {
    fn label(&self) -> Cow<'_, str> {
        "seat-".into()
    }

    fn decide(&self, _view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        Ok(Verdict::Hold)
    }
}

async fn session(simulation: &Simulation, process: &str) -> Session {
    Session::open(simulation.ensemble(process), ConnectOptions::new())
        .await
        .expect("a session opens where nothing goes wrong")
}

async fn holds<const COUNT: usize>(session: &Session) -> [Hold; COUNT] {
    let seats = Queue::new(session, "/seats", Everybody).expect("a good path");
    let mut holds = Vec::new();
    for _ in 0..COUNT {
        holds.push(seats.acquire().await.expect("nothing goes wrong"));
    }
    holds.try_into().expect("as many as were asked for")
}

fn promises(violations: Vec<Violation>) -> Vec<&'static str> {
    violations.iter().map(|found| found.promise).collect()
}

const TOO_MANY: &str = "no more is held at a time than can be";
const TOO_OLD: &str = "tokens grow with every grant";

#[tokio::test(start_paused = true)]
async fn weights_that_hold_together_must_not_exceed_the_capacity() {
    let simulation = Simulation::new(SimulationOptions::default());
    let [first, second, third] = holds(&session(&simulation, "node-7").await).await;
    let mut history = History::new(5);
    let (number, violations) = history.granted("first", 3, &first);
    assert!(violations.is_empty());
    assert!(history.granted("second", 2, &second).1.is_empty());
    let (_, violations) = history.granted("third", 1, &third);
    assert!(
        violations[0].to_string().contains("first"),
        "{violations:?}"
    );
    assert_eq!(promises(violations), [TOO_MANY]);
    assert!(history.letting_go(number).is_some());
    assert!(history.letting_go(number).is_none());
    assert!(history.granted("again", 2, &third).1.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_or_disregarded_overlaps_with_nothing() {
    let simulation = Simulation::new(SimulationOptions::default());
    let victim = session(&simulation, "victim").await;
    let [lost] = holds(&victim).await;
    let others = session(&simulation, "others").await;
    let [deleted, of_a_session, next] = holds(&others).await;
    let mut history = History::new(1);
    history.granted("lost", 1, &lost);
    assert_eq!(
        promises(history.granted("deleted", 1, &deleted).1),
        [TOO_MANY]
    );
    victim.close().await;
    assert!(!lost.is_held());
    history.disregard_znode(deleted.node_path());
    assert!(!history.is_certain(&deleted));
    assert!(history.granted("next", 1, &next).1.is_empty());
    history.disregard_session(others.id().expect("it is open"));
    let (_, violations) = history.granted("of a session", 1, &of_a_session);
    assert!(violations.is_empty(), "not judged either: {violations:?}");
    assert_eq!(history.held().count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_older_than_that_of_an_excluded_one_before_is_found() {
    let simulation = Simulation::new(SimulationOptions::default());
    let [older, newer] = holds(&session(&simulation, "node-7").await).await;
    for (weight, found) in [(1, vec![]), (2, vec![TOO_OLD])] {
        let mut history = History::new(2);
        let (number, _) = history.granted("newer", 1, &newer);
        history.letting_go(number);
        let (_, violations) = history.granted("older", weight, &older);
        assert_eq!(promises(violations), found, "weight {weight}");
    }
}

const TOO_EARLY: &str = "first come, first served";

#[tokio::test(start_paused = true)]
async fn a_grant_before_the_turn_of_a_contender_that_came_earlier_is_found() {
    let simulation = Simulation::new(SimulationOptions::default());
    let [first, second, third] = holds(&session(&simulation, "node-7").await).await;
    let mut history = History::new(5).ordered();
    history.came(first.fencing_token(), 3);
    history.came(second.fencing_token(), 3);
    history.came(third.fencing_token(), 2);
    // There is room for the third beside the first, but not before the second.
    let (number, violations) = history.granted("third", 2, &third);
    assert_eq!(promises(violations), [TOO_EARLY]);
    history.letting_go(number);
    let (number, violations) = history.granted("first", 3, &first);
    assert!(violations.is_empty(), "{violations:?}");
    history.letting_go(number);
    history.went(first.fencing_token());
    let (_, violations) = history.granted("second", 3, &second);
    assert!(violations.is_empty(), "{violations:?}");
    // Once it has left the queue, it holds no place.
    history.went(third.fencing_token());
    let (_, violations) = history.granted("third", 2, &third);
    assert_eq!(promises(violations), [TOO_EARLY]);
}

#[tokio::test(start_paused = true)]
async fn a_capacity_counts_for_those_whom_it_let_in() {
    let simulation = Simulation::new(SimulationOptions::default());
    let [first, second, third] = holds(&session(&simulation, "node-7").await).await;
    let mut history = History::new(5).ordered();
    history.came(first.fencing_token(), 3);
    history.came(second.fencing_token(), 2);
    history.resized(4);
    // The capacity was lowered after they had room, and before the third came.
    assert!(history.granted("first", 3, &first).1.is_empty());
    let (number, violations) = history.granted("second", 2, &second);
    assert!(violations.is_empty(), "{violations:?}");
    // Its place goes to a contender that weighs less.
    history.came(third.fencing_token(), 1);
    history.letting_go(number);
    history.replaced(second.fencing_token(), third.fencing_token());
    let (_, violations) = history.granted("second", 1, &second);
    assert!(violations.is_empty(), "{violations:?}");
    let (_, violations) = history.granted("third", 1, &third);
    assert!(promises(violations).contains(&TOO_EARLY));
}

#[tokio::test(start_paused = true)]
async fn a_store_refuses_old_tokens_and_no_holder() {
    let simulation = Simulation::new(SimulationOptions::default());
    let [writer, reader] = holds(&session(&simulation, "node-7").await).await;
    let mut history = History::new(2);
    let (number, _) = history.granted("writer", 2, &writer);
    let old = FencingToken::from(writer.fencing_token().get() - 1);
    assert_eq!(history.stored(0, 2, old), (true, None));
    assert_eq!(
        history.stored(number, 2, writer.fencing_token()),
        (true, None)
    );
    let (accepted, violation) = history.stored(number, 2, old);
    assert!(!accepted && violation.is_some(), "it holds still");
    history.letting_go(number);
    assert_eq!(history.stored(number, 2, old), (false, None));
    // A holder beside others does not make the tokens of the others old.
    assert_eq!(history.stored(7, 1, reader.fencing_token()), (true, None));
    assert_eq!(
        history.stored(number, 2, writer.fencing_token()),
        (true, None)
    );
}

#[tokio::test(start_paused = true)]
async fn guarded_writes_that_come_late_or_are_refused_to_a_holder_are_found() {
    let simulation = Simulation::new(SimulationOptions::default());
    let [earlier, later] = holds(&session(&simulation, "node-7").await).await;
    let (earlier_token, later_token) = (earlier.fencing_token(), later.fencing_token());
    let mut history = History::new(2);
    assert_eq!(history.guarded_write_committed(1, later_token), None);
    assert_eq!(history.guarded_write_committed(2, earlier_token), None);
    assert_eq!(history.guarded_write_committed(2, later_token), None);
    for weight in [1, 2] {
        let violation = history.guarded_write_committed(weight, earlier_token);
        assert!(violation.is_some(), "weight {weight}");
    }
    let (number, _) = history.granted("holder", 1, &later);
    assert!(history.guarded_write_refused(number).is_some());
    history.letting_go(number);
    assert_eq!(history.guarded_write_refused(number), None);
}

#[tokio::test(start_paused = true)]
async fn guarded_write_that_lands_after_its_hold_is_handed_on_is_found() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = session(&simulation, "node-7").await;
    let options = QueueOptions::new().local(1);
    let seats = Queue::with_options(&session, "/seats", Everybody, options);
    let seats = seats.expect("a good path");
    let first = seats.acquire().await.expect("nothing goes wrong");
    let mut waiting = Box::pin(seats.acquire());
    assert!((&mut waiting).now_or_never().is_none(), "it waits");

    let mut history = History::new(2);
    let token = first.fencing_token();
    let (number, _) = history.granted("first", 2, &first);
    assert_eq!(history.guarded_write_committed(2, token), None);
    history.letting_go(number);
    drop(first);
    let next = waiting.await.expect("it is handed on");
    assert_eq!(history.guarded_write_committed(2, token), None);
    assert!(history.granted("next", 2, &next).1.is_empty());
    let late = history.guarded_write_committed(2, token);
    let promise = "no guarded write lands once its hold is handed on";
    assert_eq!(late.map(|late| late.promise), Some(promise));
    assert_eq!(
        history.guarded_write_committed(2, next.fencing_token()),
        None
    );
    // Now the order of the tokens says so.
    assert!(history.guarded_write_committed(2, token).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_token_that_two_holds_of_one_kind_share_is_found() {
    let simulation = Simulation::new(SimulationOptions::default());
    let [hold] = holds(&session(&simulation, "node-7").await).await;
    for (weight, found) in [(1, vec![]), (2, vec![TOO_OLD])] {
        let mut history = History::new(2);
        let (number, _) = history.granted("first", 2, &hold);
        history.letting_go(number);
        let (_, violations) = history.granted("again", weight, &hold);
        assert_eq!(promises(violations), found, "weight {weight}");
    }
}

#[test]
fn holds_of_other_programs_are_held_until_they_are_released() {
    let mut history = History::new(2);
    let (number, violations) = history.granted_elsewhere("writer", 2, 7.into(), "w-7");
    assert!(violations.is_empty(), "{violations:?}");
    let (beside, violations) = history.granted_elsewhere("reader", 1, 8.into(), "r-8");
    assert!(
        violations[0]
            .text
            .contains("reader (r-8) held beside writer (w-7)")
    );
    assert_eq!(promises(violations), [TOO_MANY]);
    history.letting_go(beside);
    history.letting_go(number);
    // A writer that goes on as a reader keeps its token.
    let (_, violations) = history.granted_elsewhere("writer", 1, 7.into(), "r-7");
    assert!(violations.is_empty(), "{violations:?}");
    let (_, violations) = history.granted_elsewhere("late", 1, 6.into(), "r-6");
    assert_eq!(promises(violations), [TOO_OLD]);
}
