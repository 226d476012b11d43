//! The handoff of a hold within a process, over all schedules of the model.
//!
//! The rule of the library is clean. Each rule that lacks a part of it is broken, so each part is
//! needed.

use stateright::{Checker, Model};
use zookeeper_recipes_models::local_handoff::{Action, HandoffModel, Until};

/// A schedule in which a write of the first hold lands under the next one.
///
/// If there is none, the search has seen everything that the model is about.
fn violation(model: HandoffModel) -> Option<Vec<Action>> {
    let checker = model.checker().spawn_bfs().join();
    println!("{} states of {model:?}", checker.unique_state_count());
    let found = checker.discovery(HandoffModel::SAFE);
    if found.is_none() {
        for seen in HandoffModel::SEEN {
            assert!(checker.discovery(seen).is_some(), "not seen: {seen}");
        }
    }
    found.map(|path| path.into_actions())
}

fn assert_broken(counts: Until, looks_as_it_counts: bool) -> Vec<Action> {
    let model = HandoffModel {
        counts,
        looks_as_it_counts,
    };
    let schedule = violation(model);
    schedule.unwrap_or_else(|| panic!("no schedule breaks {model:?}"))
}

#[test]
fn the_rule_is_clean() {
    let found = violation(HandoffModel::of_the_library());
    assert_eq!(found, None);
}

#[test]
fn without_a_count_it_is_broken() {
    assert_broken(Until::Never, true);
}

/// The network of the model may keep a write back.
#[test]
fn counted_until_it_is_sent_a_write_lands_late() {
    let schedule = assert_broken(Until::Sent, true);
    assert!(matches!(schedule.last(), Some(Action::Arrive(_))));
}

#[test]
fn counted_until_it_is_given_up_a_write_lands_late() {
    let schedule = assert_broken(Until::Over, true);
    let gives_up = |action: &Action| matches!(action, Action::GiveUp(_));
    assert!(schedule.iter().any(gives_up), "{schedule:?}");
}

#[test]
fn counted_after_the_look_a_write_lands_late() {
    let schedule = assert_broken(Until::Answered, false);
    let is_let_go = |action: &Action| *action == Action::LetGo;
    let mut after = schedule.iter().skip_while(|action| !is_let_go(action));
    assert!(
        after.any(|action| matches!(action, Action::Begin(_))),
        "{schedule:?}"
    );
}
