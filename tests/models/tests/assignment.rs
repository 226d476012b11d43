//! The assignment of partitions to workers, over all schedules of the model.
//!
//! The rules keep the promises. Each change that leaves a rule out breaks one, so each is needed.
//!
//! With `ASSIGNMENT_EVENTS=1` each search that may choose events has one event more, and so on.

use std::env;

use zookeeper_recipes_models::assignment::{AssignmentModel, Change, Event, Grace, Start};
use zookeeper_recipes_models::search::violation;

/// The promises of every search.
const ALWAYS: [&str; 3] = [
    AssignmentModel::EXCLUSION,
    AssignmentModel::SETTLED,
    AssignmentModel::AUTHOR,
];

/// The events of machines and of the network.
const FAULTS: [Event; 6] = [
    Event::Lapse,
    Event::Crash,
    Event::Leave,
    Event::Return,
    Event::Depose,
    Event::Lag,
];

/// The events of operators.
const ORDERS: [Event; 3] = [Event::Freeze, Event::Drain, Event::Place];

/// Expects the promises of every search, and these.
///
/// A promise about one event is not expected of several, unless each comes at rest.
fn assert_clean(
    name: &str,
    mut model: AssignmentModel,
    promises: &[&'static str],
    seen: &[&'static str],
) {
    let more = env::var("ASSIGNMENT_EVENTS").ok();
    let more: u8 = more.and_then(|more| more.parse().ok()).unwrap_or(0);
    model.events += more;
    let mut expected = ALWAYS.to_vec();
    if more == 0 || model.waits {
        expected.extend(promises);
    } else {
        model.most = None;
    }
    if let Some(schedule) = violation(name, model, &expected, seen) {
        panic!("{name} is broken by {schedule:#?}");
    }
}

fn assert_broken(model: AssignmentModel, change: Change, promise: &'static str) {
    let name = format!("{change:?}");
    let without = violation("the same without it", model.clone(), &[promise], &[]);
    assert_eq!(without, None, "{name} is not to blame");
    let schedule = violation(&name, model.changed(change), &[promise], &[]);
    let schedule = schedule.unwrap_or_else(|| panic!("no schedule breaks {name}: {promise}"));
    println!("{schedule:?}");
}

/// Three workers and three partitions, one with each.
fn settled() -> AssignmentModel {
    AssignmentModel::new(3, 3)
}

/// Workers that join before any plan is there.
fn cold(workers: usize, partitions: usize) -> AssignmentModel {
    AssignmentModel {
        start: Start::Cold,
        ..AssignmentModel::new(workers, partitions)
    }
}

fn ordered(events: u8) -> AssignmentModel {
    settled().with_events(events, &ORDERS)
}

fn with_grace(grace: Grace, model: AssignmentModel) -> AssignmentModel {
    AssignmentModel { grace, ..model }
}

/// Operators that wait until their last order is carried out.
fn patient() -> AssignmentModel {
    AssignmentModel {
        waits: true,
        ..ordered(2)
    }
}

#[test]
fn a_cold_start_keeps_the_promises() {
    let promises = [
        AssignmentModel::NO_GAP,
        AssignmentModel::BUDGET,
        AssignmentModel::REST,
    ];
    let model = AssignmentModel {
        kinds: vec![Event::Depose, Event::Lag],
        ..cold(3, 3).with_most(12, 8)
    };
    assert_clean("cold start", model, &promises, &[]);
}

#[test]
fn a_cold_start_under_a_fault_keeps_the_promises() {
    let model = cold(2, 2).with_events(1, &FAULTS);
    let seen = [AssignmentModel::OLD_DRAFT];
    assert_clean("cold start, a fault", model, &[], &seen);
}

#[test]
fn an_order_keeps_the_promises() {
    let promises = [
        AssignmentModel::NO_GAP,
        AssignmentModel::BUDGET,
        AssignmentModel::REST,
    ];
    let seen = [AssignmentModel::HANDED_ON];
    assert_clean("an order", ordered(1).with_most(6, 2), &promises, &seen);
}

#[test]
fn orders_one_after_the_other_keep_the_promises() {
    let promises = [AssignmentModel::NO_GAP, AssignmentModel::BUDGET];
    let seen = [AssignmentModel::HANDED_ON];
    assert_clean("orders at rest", patient(), &promises, &seen);
}

#[test]
fn orders_that_cross_keep_the_promises() {
    let model = ordered(2).with_most(16, 8);
    let seen = [AssignmentModel::HANDED_ON];
    assert_clean("orders", model, &[AssignmentModel::REST], &seen);
}

#[test]
fn a_fault_keeps_the_promises() {
    let model = settled().with_events(1, &FAULTS).with_most(7, 3);
    let promises = [AssignmentModel::REST, AssignmentModel::BUDGET];
    assert_clean("a fault", model, &promises, &[]);
}

#[test]
fn two_events_of_any_kind_keep_the_promises() {
    let others = [Event::Timeout, Event::Erase];
    let kinds = [&FAULTS[..], &ORDERS, &others].concat();
    let model = AssignmentModel::new(3, 2).with_events(2, &kinds);
    let seen = [AssignmentModel::HANDED_ON, AssignmentModel::OLD_DRAFT];
    assert_clean("any events", model, &[], &seen);
}

#[test]
fn any_plan_that_is_written_keeps_the_promises() {
    let model = AssignmentModel::new(2, 2).with_events(2, &[Event::Scribble, Event::Erase]);
    let seen = [AssignmentModel::HANDED_ON];
    assert_clean("any plan", model, &[], &seen);
}

#[test]
fn a_grace_that_ends_keeps_the_promises() {
    let model = AssignmentModel::new(3, 2).with_events(2, &FAULTS);
    assert_clean("grace", with_grace(Grace::Ends, model), &[], &[]);
}

#[test]
fn a_worker_that_leaves_moves_only_its_own_partitions() {
    let promises = [AssignmentModel::OTHERS_STAY, AssignmentModel::REST];
    for event in [Event::Crash, Event::Leave, Event::Drain] {
        let model = settled().with_events(1, &[event]).with_most(3, 1);
        assert_clean(&format!("{event:?}"), model, &promises, &[]);
    }
}

#[test]
fn a_worker_that_comes_takes_only_its_share() {
    let model = AssignmentModel {
        start: Start::Settled(2),
        ..settled().with_most(4, 1)
    };
    let promises = [AssignmentModel::NO_GAP, AssignmentModel::REST];
    let seen = [AssignmentModel::HANDED_ON];
    assert_clean("a third worker", model, &promises, &seen);
}

#[test]
fn a_worker_that_leaves_waits_for_the_next_owners() {
    let model = settled().with_events(1, &[Event::Leave]);
    let seen = [AssignmentModel::HANDED_ON];
    assert_clean("leave", model, &[AssignmentModel::NO_GAP], &seen);
}

/// Each worker takes its own partitions again, and no plan is written.
#[test]
fn within_the_grace_nothing_moves() {
    let model = settled().with_events(2, &[Event::Lapse, Event::Crash, Event::Return]);
    let model = with_grace(Grace::Lasts, model.with_most(0, 2));
    let promises = [AssignmentModel::REST];
    assert_clean("within the grace", model, &promises, &[]);
}

/// Safety rests on the locks. Two planners make partitions move or wait.
#[test]
fn old_leaders_that_write_make_no_two_owners() {
    let model = settled().with_events(2, &[Event::Drain, Event::Depose]);
    let model = model.changed(Change::WritesUnguarded);
    let promises = [AssignmentModel::EXCLUSION, AssignmentModel::SETTLED];
    let seen = [AssignmentModel::OLD_DRAFT];
    assert_eq!(violation("unguarded", model, &promises, &seen), None);
}

#[test]
fn a_plan_without_locks_has_two_owners() {
    assert_broken(ordered(1), Change::OwnsByPlan, AssignmentModel::EXCLUSION);
}

#[test]
fn a_worker_without_a_lease_makes_two_owners() {
    let model = settled().with_events(1, &FAULTS);
    assert_broken(model, Change::HasNoLease, AssignmentModel::EXCLUSION);
}

#[test]
fn a_release_before_the_drain_makes_two_owners() {
    let change = Change::ReleasesBeforeItDrains;
    assert_broken(ordered(1), change, AssignmentModel::EXCLUSION);
}

#[test]
fn without_a_guard_an_old_leader_writes_a_plan() {
    let model = settled().with_events(2, &[Event::Drain, Event::Depose]);
    assert_broken(model, Change::WritesUnguarded, AssignmentModel::AUTHOR);
}

#[test]
fn a_leader_that_does_not_look_at_what_is_owned_ends_no_move() {
    let change = Change::LooksNotAtOwned;
    assert_broken(ordered(1), change, AssignmentModel::SETTLED);
}

#[test]
fn a_new_leader_that_waits_for_a_change_leaves_half_a_plan() {
    let model = settled().with_events(2, &[Event::Drain, Event::Depose]);
    let change = Change::LooksNotWhenElected;
    assert_broken(model, change, AssignmentModel::SETTLED);
}

#[test]
fn a_grace_that_only_the_last_leader_began_forgets_a_partition() {
    let model = settled().with_events(1, &[Event::Crash]);
    let model = with_grace(Grace::Ends, model);
    let change = Change::TimesOnlyWhatItSees;
    assert_broken(model, change, AssignmentModel::SETTLED);
}

#[test]
fn a_plan_that_keeps_the_vanished_forgets_a_partition() {
    let model = settled().with_events(1, &[Event::Crash]);
    assert_broken(model, Change::KeepsTheDead, AssignmentModel::SETTLED);
}

#[test]
fn a_worker_that_acts_on_changes_only_forgets_a_partition() {
    let model = settled().with_events(2, &[Event::Drain, Event::Crash]);
    let change = Change::ActsOnChangesOnly;
    assert_broken(model, change, AssignmentModel::SETTLED);
}

#[test]
fn a_contender_without_a_plan_waits_for_ever() {
    let model = AssignmentModel::new(2, 2).with_events(1, &[Event::Scribble]);
    assert_broken(model, Change::WaitsOn, AssignmentModel::SETTLED);
}

#[test]
fn a_missing_plan_taken_for_an_empty_one_leaves_a_gap() {
    let model = settled().with_events(1, &[Event::Erase]);
    let change = Change::MissingMeansNothing;
    assert_broken(model, change, AssignmentModel::NO_GAP);
}

#[test]
fn a_worker_that_gives_at_once_leaves_a_gap() {
    assert_broken(ordered(1), Change::GivesAtOnce, AssignmentModel::NO_GAP);
}

#[test]
fn an_old_token_taken_for_the_newest_leaves_a_gap() {
    let change = Change::ComparesNoTokens;
    assert_broken(patient(), change, AssignmentModel::NO_GAP);
}

#[test]
fn a_next_owner_that_vanishes_and_is_awaited_leaves_a_move_undone() {
    let model = settled().with_events(2, &[Event::Drain, Event::Crash]);
    let model = with_grace(Grace::Lasts, model);
    let change = Change::AwaitsTheVanished;
    assert_broken(model, change, AssignmentModel::SETTLED);
}

#[test]
fn a_plan_from_what_is_owned_moves_more() {
    let model = settled().with_events(1, &FAULTS).with_most(7, 3);
    assert_broken(model, Change::PlansFromOwned, AssignmentModel::REST);
}

#[test]
fn a_plan_that_ignores_the_present_one_moves_the_partitions_of_others() {
    let model = settled().with_events(1, &[Event::Crash]);
    assert_broken(model, Change::PlansAfresh, AssignmentModel::OTHERS_STAY);
}

#[test]
fn a_move_that_improves_nothing_is_followed_by_another() {
    let model = AssignmentModel::new(3, 2).with_most(12, 12);
    assert_broken(model, Change::MovesForNothing, AssignmentModel::REST);
}

#[test]
fn a_balance_that_moves_what_is_placed_comes_to_no_rest() {
    let model = settled().with_events(1, &[Event::Place]).with_most(6, 2);
    assert_broken(model, Change::BalancesThePlaced, AssignmentModel::REST);
}

#[test]
fn a_leader_that_does_not_count_moves_begins_too_many() {
    let model = AssignmentModel::new(2, 3).with_events(1, &[Event::Drain]);
    assert_broken(model, Change::CountsNoMoves, AssignmentModel::BUDGET);
}
