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
        panic!("{name} is broken by {:#?}", schedule.into_actions());
    }
}

fn assert_broken(name: &str, model: HandoffModel, change: Change, promise: &'static str) {
    let schedule = violation(name, model.changed(change), &[promise], &[]);
    let schedule = schedule.unwrap_or_else(|| panic!("no schedule breaks {name}: {promise}"));
    println!("{:?}", schedule.into_actions());
}

/// A test of each row: this model keeps all promises, and contenders hold in these ways.
macro_rules! clean {
    ($($name:ident: $model:expr, [$($way:ident)+];)+) => {
        $(
            #[test]
            fn $name() {
                assert_clean(stringify!($name), $model, &[$(Way::$way),+]);
            }
        )+
    };
}

/// A test of each row: with this change the library breaks this promise.
macro_rules! broken {
    ($($(#[$doc:meta])* $name:ident: $change:ident, $promise:ident, $model:expr;)+) => {
        $(
            $(#[$doc])*
            #[test]
            fn $name() {
                let (change, promise) = (Change::$change, HandoffModel::$promise);
                assert_broken(stringify!($name), $model, change, promise);
            }
        )+
    };
}

fn locks(contenders: usize) -> HandoffModel {
    HandoffModel::new(contenders, Label::Lock)
}

/// Locks behind one of Curator's.
fn behind_curator(waiters: usize) -> HandoffModel {
    locks(waiters + 1).with(0, curators(Label::Lock))
}

/// Contenders that come back to a directory whose next znode has this number.
fn come_back(contenders: usize, rounds: u8, first: u16) -> HandoffModel {
    HandoffModel {
        rounds,
        first,
        ..locks(contenders)
    }
}

/// The same, in a directory where deletions are sent in the background.
fn come_back_in_background(first: u16) -> HandoffModel {
    HandoffModel {
        in_background: true,
        ..come_back(2, 2, first)
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

fn latch() -> Party {
    Party::new(Kind::Latch, Label::Candidate)
}

/// A reader that is a writer later.
fn reader_then_writer() -> Party {
    Party {
        then: Label::Write,
        ..library(Label::Read)
    }
}

fn library(label: Label) -> Party {
    Party::new(Kind::Library, label)
}

fn curators(label: Label) -> Party {
    Party::new(Kind::Curator, label)
}

clean! {
    three_locks_keep_the_promises:
        locks(3).with_faults(1, &FAULTS), [List Marked OnlyOne];
    three_locks_on_two_servers_keep_the_promises:
        HandoffModel { at_the_leader: 1, ..locks(3).with_faults(0, &FAULTS) }, [List Marked];
    four_locks_keep_the_promises:
        locks(4).with_faults(0, &FAULTS), [List Marked];
    locks_behind_curators_mutex_keep_the_promises:
        locks(3)
            .with(1, curators(Label::Lock))
            .with_faults(1, &[Fault::GiveUp, Fault::Delete, Fault::Write]), [List Marked OnlyOne];
    a_reconnect_after_a_deletion_keeps_the_promises:
        locks(2).with_faults(2, &[Fault::Delete, Fault::Disconnect]), [List Marked];
    coming_back_keeps_the_promises:
        come_back(2, 2, 2).with_faults(1, &[Fault::Reap, Fault::Disconnect]), [Alone];
    the_end_of_the_count_keeps_the_promises:
        come_back(2, 2, LAST - 1), [List];
    several_deletions_at_once_keep_the_promises:
        come_back_in_background(2).with_faults(1, &[Fault::GiveUp, Fault::Delete]), [List Alone];
    a_downgrade_keeps_the_promises:
        writers(3)
            .with(2, library(Label::Read))
            .with_faults(1, &[Fault::GiveUp, Fault::Delete]), [Downgrade Marked];
    curators_downgrade_keeps_the_promises:
        writers(3).with(0, curators(Label::Write)), [Downgrade Marked];
    a_transfer_keeps_the_promises:
        candidates(3)
            .with_faults(1, &[Fault::Name, Fault::Crash, Fault::Disconnect]), [List];
    a_leader_latch_keeps_the_promises:
        candidates(3).with(1, latch()), [List];
}

broken! {
    a_deletion_that_is_marked_without_a_hold_has_two_holders:
        MarksGivingUp, EXCLUSION, locks(3).with_faults(1, &[Fault::GiveUp]);
    a_reader_that_marks_its_release_has_a_writer_beside_another_reader:
        MarksReads, EXCLUSION, HandoffModel::new(3, Label::Read).with(2, library(Label::Write));
    a_marked_release_in_two_transactions_has_a_holder_before_its_turn:
        WritesBeforeItDeletes, ORDER, locks(2);
    a_znode_that_everybody_may_write_to_has_two_holders:
        EverybodyWrites, EXCLUSION, locks(2).with_faults(1, &[Fault::Write]);
    a_mark_without_a_name_has_two_holders:
        BelievesEveryWrite, EXCLUSION, locks(2)
            .with(0, curators(Label::Lock))
            .with_faults(1, &[Fault::Write]);
    a_handoff_past_those_in_between_has_two_holders:
        AsksNoRule, EXCLUSION, locks(3);
    a_waiter_without_a_watch_on_its_own_znode_makes_two_holders:
        WatchesNotItsOwn, EXCLUSION, locks(3).with_faults(1, &[Fault::Delete]);
    a_waiter_that_trusts_a_reconnect_makes_two_holders:
        TrustsAReconnect, EXCLUSION, locks(3).with_faults(2, &[Fault::Delete, Fault::Disconnect]);
    a_session_without_a_lease_has_two_holders:
        HasNoLease, EXCLUSION, locks(2).with_faults(1, &[Fault::Expire]);
    a_deletion_before_others_that_grants_has_two_holders:
        BelievesEveryDeletion, EXCLUSION, locks(3).with_faults(1, &[Fault::GiveUp]);
    /// Curator marks nothing, so a waiter without a list holds behind the only one before it.
    a_waiter_behind_curator_without_a_watch_on_its_own_znode_makes_two_holders:
        WatchesNotItsOwn, EXCLUSION, behind_curator(2).with_faults(1, &[Fault::Delete]);
    a_waiter_behind_curator_that_trusts_a_reconnect_makes_two_holders:
        TrustsAReconnect, EXCLUSION, behind_curator(2)
            .with_faults(2, &[Fault::Delete, Fault::Disconnect]);
    a_waiter_behind_curator_without_a_lease_makes_two_holders:
        HasNoLease, EXCLUSION, behind_curator(2).with_faults(1, &[Fault::Expire]);
    a_deletion_of_a_replaced_writer_that_grants_has_two_holders:
        ForgetsReplacements, EXCLUSION, writers(2);
    a_leader_that_reads_no_directory_leads_past_the_successor:
        ReadsNoDirectory, SUCCESSOR, candidates(3).with_faults(1, &[Fault::Name]);
    a_contender_that_was_not_alone_comes_back_as_a_second_holder:
        IsAloneBesideOthers, EXCLUSION, come_back(2, 2, 5)
            .with(0, reader_then_writer())
            .with(1, reader_then_writer());
    a_contender_that_has_not_gone_comes_back_before_its_turn:
        IsGoneTooSoon, ORDER, come_back_in_background(5);
    a_later_number_taken_for_the_next_has_two_holders:
        ComparesNoNumber, EXCLUSION, come_back(2, 2, 5);
    a_directory_made_again_and_taken_for_the_same_has_two_holders:
        CountsNoTransactions, EXCLUSION, come_back(2, 2, 0).with_faults(1, &[Fault::Reap]);
    the_last_number_taken_for_the_next_has_two_holders:
        CountsOnAtTheEnd, EXCLUSION, come_back(2, 2, LAST - 1);
    an_order_by_names_at_the_end_of_the_count_has_two_holders:
        OrdersByName, EXCLUSION, come_back(2, 1, LAST);
    a_downgrade_at_the_end_of_the_count_has_two_holders:
        ReplacesAtTheEnd, EXCLUSION, HandoffModel { first: LAST, ..writers(2) };
    a_downgrade_in_two_transactions_has_two_holders:
        ReplacesInTwoTransactions, EXCLUSION, writers(2);
    a_failed_transaction_of_deletions_taken_for_done_leaves_a_znode:
        TakesAFailureForDone, PROGRESS, come_back_in_background(2)
            .with_faults(2, &[Fault::GiveUp, Fault::Delete]);
    a_marked_resignation_leaves_a_leader_latch_asleep:
        MarksInAnElection, PROGRESS, candidates(2).with(1, latch());
    a_contender_that_overlooks_its_old_znode_holds_before_its_turn:
        OverlooksItsOldZnode, ORDER, come_back_in_background(5);
    a_deletion_that_is_dropped_with_its_connection_leaves_a_znode:
        DropsDeletionsAtABreak, PROGRESS, locks(2).with_faults(1, &[Fault::Disconnect]);
    a_search_for_the_own_znode_without_a_sync_leaves_a_znode:
        LooksWithoutSync, PROGRESS, locks(2).with_faults(1, &[Fault::Disconnect]);
    a_waiter_that_ignores_a_missing_predecessor_waits_for_ever:
        IgnoresAMissingPredecessor, PROGRESS, locks(2);
}
