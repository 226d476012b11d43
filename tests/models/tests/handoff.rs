//! The ways to hold without a list, over all schedules of the model.
//!
//! The library keeps its promises. Each change that leaves a step of a proof out breaks one.
//! So each step is needed.
//!
//! With `HANDOFF_FAULTS=1` each search that may choose faults has one fault more, and so on.

use std::env;

use zookeeper_recipes_models::handoff::{
    Change, Fault, HandoffModel, Kind, LAST, Label, Party, Way,
};
use zookeeper_recipes_models::search::violation;

const PROMISES: [&str; 4] = [
    HandoffModel::EXCLUSION,
    HandoffModel::ORDER,
    HandoffModel::SUCCESSOR,
    HandoffModel::PROGRESS,
];

/// What happens to sessions and to znodes.
const FAULTS: [Fault; 6] = [
    Fault::GiveUp,
    Fault::Crash,
    Fault::Expire,
    Fault::Disconnect,
    Fault::Delete,
    Fault::Write,
];

fn assert_clean(name: &str, mut model: HandoffModel, seen: &[Way]) {
    let more = env::var("HANDOFF_FAULTS").ok();
    model.faults += more.and_then(|more| more.parse().ok()).unwrap_or(0);
    let seen: Vec<_> = seen.iter().map(|way| HandoffModel::seen(*way)).collect();
    if let Some(schedule) = violation(name, model, &PROMISES, &seen) {
        panic!("{name} is broken by {schedule:#?}");
    }
}

fn assert_broken(model: HandoffModel, change: Change, promise: &'static str) {
    let name = format!("{change:?}");
    let schedule = violation(&name, model.changed(change), &[promise], &[]);
    let schedule = schedule.unwrap_or_else(|| panic!("no schedule breaks {name}: {promise}"));
    println!("{schedule:?}");
}

fn locks(contenders: usize) -> HandoffModel {
    HandoffModel::new(contenders, Label::Lock)
}

/// Contenders that come back to a directory whose next znode has this number.
fn come_back(contenders: usize, rounds: u8, first: u16) -> HandoffModel {
    HandoffModel {
        rounds,
        first,
        ..locks(contenders)
    }
}

fn writers(contenders: usize) -> HandoffModel {
    HandoffModel {
        downgrades: true,
        ..HandoffModel::new(contenders, Label::Write)
    }
}

fn candidates(contenders: usize) -> HandoffModel {
    HandoffModel::new(contenders, Label::Candidate)
}

fn curators(label: Label) -> Party {
    Party::new(Kind::Curator, label)
}

#[test]
fn three_locks_keep_the_promises() {
    let model = locks(3).with_faults(1, &FAULTS);
    assert_clean(
        "three locks",
        model,
        &[Way::List, Way::Marked, Way::OnlyOne],
    );
}

#[test]
fn three_locks_on_two_servers_keep_the_promises() {
    let model = HandoffModel {
        at_the_leader: 1,
        ..locks(3).with_faults(0, &FAULTS)
    };
    assert_clean(
        "three locks on two servers",
        model,
        &[Way::List, Way::Marked],
    );
}

#[test]
fn four_locks_keep_the_promises() {
    let model = locks(4).with_faults(0, &FAULTS);
    assert_clean("four locks", model, &[Way::List, Way::Marked]);
}

#[test]
fn locks_behind_curators_mutex_keep_the_promises() {
    let model = locks(3).with(1, curators(Label::Lock));
    let model = model.with_faults(1, &[Fault::GiveUp, Fault::Delete, Fault::Write]);
    assert_clean(
        "Curator's mutex",
        model,
        &[Way::List, Way::Marked, Way::OnlyOne],
    );
}

#[test]
fn a_reconnect_after_a_deletion_keeps_the_promises() {
    let model = locks(2).with_faults(2, &[Fault::Delete, Fault::Disconnect]);
    assert_clean("reconnect", model, &[Way::List, Way::Marked]);
}

#[test]
fn coming_back_keeps_the_promises() {
    let model = come_back(2, 2, 2).with_faults(1, &[Fault::Reap, Fault::Disconnect]);
    assert_clean("coming back", model, &[Way::Alone]);
}

#[test]
fn the_end_of_the_count_keeps_the_promises() {
    assert_clean("the end", come_back(2, 2, LAST - 1), &[Way::List]);
}

#[test]
fn several_deletions_at_once_keep_the_promises() {
    let model = HandoffModel {
        in_background: true,
        ..come_back(2, 2, 2)
    };
    let model = model.with_faults(1, &[Fault::GiveUp, Fault::Delete]);
    assert_clean("several deletions", model, &[Way::List, Way::Alone]);
}

#[test]
fn a_downgrade_keeps_the_promises() {
    let reader = Party::new(Kind::Library, Label::Read);
    let model = writers(3).with(2, reader);
    let model = model.with_faults(1, &[Fault::GiveUp, Fault::Delete]);
    assert_clean("downgrade", model, &[Way::Downgrade, Way::Marked]);
}

#[test]
fn curators_downgrade_keeps_the_promises() {
    let model = writers(3).with(0, curators(Label::Write));
    assert_clean("Curator's downgrade", model, &[Way::Downgrade, Way::Marked]);
}

#[test]
fn a_transfer_keeps_the_promises() {
    let model = candidates(3).with_faults(1, &[Fault::Name, Fault::Crash, Fault::Disconnect]);
    assert_clean("transfer", model, &[Way::List, Way::OnlyOne]);
}

#[test]
fn a_leader_latch_keeps_the_promises() {
    let model = candidates(3).with(1, Party::new(Kind::Latch, Label::Candidate));
    assert_clean("LeaderLatch", model, &[Way::List, Way::OnlyOne]);
}

#[test]
fn a_deletion_that_is_marked_without_a_hold_has_two_holders() {
    let model = locks(3).with_faults(1, &[Fault::GiveUp]);
    assert_broken(model, Change::MarksGivingUp, HandoffModel::EXCLUSION);
}

#[test]
fn a_reader_that_marks_its_release_has_a_writer_beside_another_reader() {
    let writer = Party::new(Kind::Library, Label::Write);
    let model = HandoffModel::new(3, Label::Read).with(2, writer);
    assert_broken(model, Change::MarksReads, HandoffModel::EXCLUSION);
}

#[test]
fn a_marked_release_in_two_transactions_has_a_holder_before_its_turn() {
    let promise = HandoffModel::ORDER;
    assert_broken(locks(2), Change::WritesBeforeItDeletes, promise);
}

#[test]
fn a_znode_that_everybody_may_write_to_has_two_holders() {
    let model = locks(2).with_faults(1, &[Fault::Write]);
    assert_broken(model, Change::EverybodyWrites, HandoffModel::EXCLUSION);
}

#[test]
fn a_mark_without_a_name_has_two_holders() {
    let model = locks(2).with(0, curators(Label::Lock));
    let model = model.with_faults(1, &[Fault::Write]);
    assert_broken(model, Change::BelievesEveryWrite, HandoffModel::EXCLUSION);
}

#[test]
fn a_handoff_past_those_in_between_has_two_holders() {
    assert_broken(locks(3), Change::AsksNoRule, HandoffModel::EXCLUSION);
}

#[test]
fn a_waiter_without_a_watch_on_its_own_znode_makes_two_holders() {
    let model = locks(3).with_faults(1, &[Fault::Delete]);
    assert_broken(model, Change::WatchesNotItsOwn, HandoffModel::EXCLUSION);
}

#[test]
fn a_waiter_that_trusts_a_reconnect_makes_two_holders() {
    let model = locks(3).with_faults(2, &[Fault::Delete, Fault::Disconnect]);
    assert_broken(model, Change::TrustsAReconnect, HandoffModel::EXCLUSION);
}

#[test]
fn a_session_without_a_lease_has_two_holders() {
    let model = locks(2).with_faults(1, &[Fault::Expire]);
    assert_broken(model, Change::HasNoLease, HandoffModel::EXCLUSION);
}

#[test]
fn a_deletion_before_others_that_grants_has_two_holders() {
    let model = locks(3).with_faults(1, &[Fault::GiveUp]);
    assert_broken(
        model,
        Change::BelievesEveryDeletion,
        HandoffModel::EXCLUSION,
    );
}

/// Candidates mark nothing, so a candidate without a list holds behind the only one before it.
#[test]
fn a_candidate_without_a_watch_on_its_own_znode_makes_two_holders() {
    let model = candidates(3).with_faults(1, &[Fault::Delete]);
    assert_broken(model, Change::WatchesNotItsOwn, HandoffModel::EXCLUSION);
}

#[test]
fn a_candidate_that_trusts_a_reconnect_makes_two_holders() {
    let model = candidates(3).with_faults(2, &[Fault::Delete, Fault::Disconnect]);
    assert_broken(model, Change::TrustsAReconnect, HandoffModel::EXCLUSION);
}

#[test]
fn a_candidate_without_a_lease_makes_two_holders() {
    let model = candidates(2).with_faults(1, &[Fault::Expire]);
    assert_broken(model, Change::HasNoLease, HandoffModel::EXCLUSION);
}

#[test]
fn a_deletion_of_a_replaced_writer_that_grants_has_two_holders() {
    let promise = HandoffModel::EXCLUSION;
    assert_broken(writers(2), Change::ForgetsReplacements, promise);
}

#[test]
fn a_leader_that_reads_no_directory_leads_past_the_successor() {
    let model = candidates(3).with_faults(1, &[Fault::Name]);
    assert_broken(model, Change::ReadsNoDirectory, HandoffModel::SUCCESSOR);
}

#[test]
fn a_contender_that_was_not_alone_comes_back_as_a_second_holder() {
    let reader = Party {
        then: Label::Write,
        ..Party::new(Kind::Library, Label::Read)
    };
    let model = come_back(2, 2, 5).with(0, reader).with(1, reader);
    assert_broken(model, Change::IsAloneBesideOthers, HandoffModel::EXCLUSION);
}

#[test]
fn a_contender_that_has_not_gone_comes_back_before_its_turn() {
    let model = HandoffModel {
        in_background: true,
        ..come_back(2, 2, 5)
    };
    assert_broken(model, Change::IsGoneTooSoon, HandoffModel::ORDER);
}

#[test]
fn a_later_number_taken_for_the_next_has_two_holders() {
    let model = come_back(2, 2, 5);
    assert_broken(model, Change::ComparesNoNumber, HandoffModel::EXCLUSION);
}

#[test]
fn a_directory_made_again_and_taken_for_the_same_has_two_holders() {
    let model = come_back(2, 2, 0).with_faults(1, &[Fault::Reap]);
    assert_broken(model, Change::CountsNoTransactions, HandoffModel::EXCLUSION);
}

#[test]
fn the_last_number_taken_for_the_next_has_two_holders() {
    let model = come_back(2, 2, LAST - 1);
    assert_broken(model, Change::CountsOnAtTheEnd, HandoffModel::EXCLUSION);
}

#[test]
fn an_order_by_names_at_the_end_of_the_count_has_two_holders() {
    let model = come_back(2, 1, LAST);
    assert_broken(model, Change::OrdersByName, HandoffModel::EXCLUSION);
}

#[test]
fn a_downgrade_at_the_end_of_the_count_has_two_holders() {
    let model = HandoffModel {
        first: LAST,
        ..writers(2)
    };
    assert_broken(model, Change::ReplacesAtTheEnd, HandoffModel::EXCLUSION);
}

#[test]
fn a_downgrade_in_two_transactions_has_two_holders() {
    let promise = HandoffModel::EXCLUSION;
    assert_broken(writers(2), Change::ReplacesInTwoTransactions, promise);
}

#[test]
fn a_failed_transaction_of_deletions_taken_for_done_leaves_a_znode() {
    let model = HandoffModel {
        in_background: true,
        ..come_back(2, 2, 2)
    };
    let model = model.with_faults(2, &[Fault::GiveUp, Fault::Delete]);
    assert_broken(model, Change::TakesAFailureForDone, HandoffModel::PROGRESS);
}

#[test]
fn a_marked_resignation_leaves_a_leader_latch_asleep() {
    let latch = Party::new(Kind::Latch, Label::Candidate);
    let model = candidates(2).with(1, latch);
    assert_broken(model, Change::MarksInAnElection, HandoffModel::PROGRESS);
}

#[test]
fn a_contender_that_overlooks_its_old_znode_holds_before_its_turn() {
    let model = HandoffModel {
        in_background: true,
        ..come_back(2, 2, 5)
    };
    assert_broken(model, Change::OverlooksItsOldZnode, HandoffModel::ORDER);
}

#[test]
fn a_deletion_that_is_dropped_with_its_connection_leaves_a_znode() {
    let model = locks(2).with_faults(1, &[Fault::Disconnect]);
    let promise = HandoffModel::PROGRESS;
    assert_broken(model, Change::DropsDeletionsAtABreak, promise);
}

#[test]
fn a_search_for_the_own_znode_without_a_sync_leaves_a_znode() {
    let model = locks(2).with_faults(1, &[Fault::Disconnect]);
    assert_broken(model, Change::LooksWithoutSync, HandoffModel::PROGRESS);
}

#[test]
fn a_waiter_that_ignores_a_missing_predecessor_waits_for_ever() {
    let promise = HandoffModel::PROGRESS;
    assert_broken(locks(2), Change::IgnoresAMissingPredecessor, promise);
}
