//! The history finds what must not be, and nothing else.

use std::borrow::Cow;

use zookeeper_recipes_core::{
    ConnectOptions, FencingToken, Hold, InvalidInput, Queue, QueueView, Rule, Session, Verdict,
};
use zookeeper_recipes_simulation::Simulation;
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
        .expect("a session opens if nothing goes wrong")
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

/// Reports a hold with this token. The call returns its number and the broken promises.
fn grant(history: &mut History, weight: u64, token: i64) -> (u64, Vec<&'static str>) {
    let who = format!("holder {token}");
    let (number, found) = history.granted_elsewhere(&who, weight, token.into(), "/held");
    (number, promises(found))
}

#[test]
fn weights_that_hold_together_must_not_exceed_the_capacity() {
    let mut history = History::new(5);
    let (number, found) = grant(&mut history, 3, 1);
    assert_eq!(found, [""; 0]);
    assert_eq!(grant(&mut history, 2, 2).1, [""; 0]);
    let (third, violations) = history.granted_elsewhere("third", 1, 3.into(), "/held");
    assert!(
        violations[0]
            .text
            .contains("third (/held) held beside holder 1")
    );
    assert_eq!(promises(violations), [TOO_MANY]);
    history.letting_go(third);
    history.letting_go(number);
    assert_eq!(grant(&mut history, 2, 4).1, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_or_disregarded_overlaps_with_nothing() {
    let simulation = Simulation::default();
    let victim = session(&simulation, "victim").await;
    let [lost] = holds(&victim).await;
    let others = session(&simulation, "others").await;
    let [deleted, of_a_session, next] = holds(&others).await;
    let mut history = History::new(1);
    history.granted("lost", 1, &lost.view());
    assert_eq!(
        promises(history.granted("deleted", 1, &deleted.view()).1),
        [TOO_MANY]
    );
    victim.close().await;
    assert!(!lost.is_held());
    history.disregard_znode(deleted.node_path());
    assert!(!history.is_certain(&deleted.view()));
    assert!(history.granted("next", 1, &next.view()).1.is_empty());
    history.disregard_session(others.id().expect("it is open"));
    let (_, violations) = history.granted("of a session", 1, &of_a_session.view());
    assert!(violations.is_empty(), "not judged either: {violations:?}");
    assert_eq!(history.held().count(), 4);
}

#[tokio::test(start_paused = true)]
async fn holds_whose_znodes_go_with_the_servers_data_are_not_judged_and_all_others_are() {
    let simulation = Simulation::default();
    let session = session(&simulation, "process").await;
    let [gone, late, kept, next] = holds(&session).await;
    let mut history = History::new(2);
    let (of_gone, found) = history.granted("gone", 1, &gone.view());
    assert!(found.is_empty());
    let (of_kept, found) = history.granted("kept", 1, &kept.view());
    assert!(found.is_empty());
    let znode = |hold: &Hold| {
        let path = hold.node_path().to_owned();
        (path, hold.fencing_token(), hold.session_id())
    };
    history.lose([znode(&gone), znode(&late)]);
    assert!(history.is_gone(&gone.view()) && !history.is_gone(&kept.view()));

    // The answer was on its way when the data went.
    assert!(history.granted("late", 2, &late.view()).1.is_empty());
    let (of_next, found) = history.granted("next", 1, &next.view());
    assert!(found.is_empty(), "{found:?}");
    let found = history.granted("one more", 1, &next.view()).1;
    assert_eq!(promises(found), [TOO_MANY]);

    // Tokens can come again, and be lower.
    let (token, low) = (gone.fencing_token(), FencingToken::from(1));
    assert!(matches!(history.stored(of_gone, 2, token), (false, None)));
    assert!(matches!(history.stored(of_next, 1, low), (true, None)));
    assert!(matches!(history.stored(of_kept, 1, low), (true, None)));
    assert!(history.guarded_write_refused(of_gone).is_none());
    assert!(history.guarded_write_refused(of_kept).is_some());
}

#[test]
fn a_token_that_is_older_than_that_of_an_excluded_one_before_is_found() {
    for (weight, found) in [(1, vec![]), (2, vec![TOO_OLD])] {
        let mut history = History::new(2);
        let (number, _) = grant(&mut history, 1, 8);
        history.letting_go(number);
        assert_eq!(grant(&mut history, weight, 7).1, found, "weight {weight}");
    }
}

#[test]
fn a_token_that_two_holds_of_one_kind_share_is_found() {
    // A writer that is replaced by a reader keeps its token.
    for (weight, found) in [(1, vec![]), (2, vec![TOO_OLD])] {
        let mut history = History::new(2);
        let (number, _) = grant(&mut history, 2, 7);
        history.letting_go(number);
        assert_eq!(grant(&mut history, weight, 7).1, found, "weight {weight}");
    }
}

const TOO_EARLY: &str = "first come, first served";

#[test]
fn a_grant_before_the_turn_of_a_contender_that_came_earlier_is_found() {
    let mut history = History::new(5).ordered();
    for (token, weight) in [(1, 3), (2, 3), (3, 2)] {
        history.came(token.into(), weight);
    }
    // There is room for the third beside the first, but not before the second.
    let (number, found) = grant(&mut history, 2, 3);
    assert_eq!(found, [TOO_EARLY]);
    history.letting_go(number);
    let (number, found) = grant(&mut history, 3, 1);
    assert_eq!(found, [""; 0]);
    history.letting_go(number);
    history.went(1.into());
    assert_eq!(grant(&mut history, 3, 2).1, [""; 0]);
    // Once it has left the queue, it holds no place.
    history.went(3.into());
    assert_eq!(grant(&mut history, 2, 3).1, [TOO_EARLY]);
}

#[test]
fn a_capacity_counts_for_those_whom_it_let_in() {
    let mut history = History::new(5).ordered();
    history.came(1.into(), 3);
    history.came(2.into(), 2);
    history.resized(4);
    // The capacity was lowered after they had room, and before the third came.
    assert_eq!(grant(&mut history, 3, 1).1, [""; 0]);
    let (number, found) = grant(&mut history, 2, 2);
    assert_eq!(found, [""; 0]);
    // Its place goes to a contender that weighs less.
    history.came(3.into(), 1);
    history.letting_go(number);
    history.replaced(2.into(), 3.into());
    assert_eq!(grant(&mut history, 1, 2).1, [""; 0]);
    assert!(grant(&mut history, 1, 3).1.contains(&TOO_EARLY));
}

#[tokio::test(start_paused = true)]
async fn a_store_refuses_old_tokens_and_no_holder() {
    let simulation = Simulation::default();
    let [writer, reader] = holds(&session(&simulation, "node-7").await).await;
    let mut history = History::new(2);
    let (number, _) = history.granted("writer", 2, &writer.view());
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
    let simulation = Simulation::default();
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
    let (number, _) = history.granted("holder", 1, &later.view());
    assert!(history.guarded_write_refused(number).is_some());
    assert!(history.letting_go(number).is_some());
    assert!(history.letting_go(number).is_none());
    assert_eq!(history.guarded_write_refused(number), None);
}
