//! What is recorded of a job that runs at most once in each time slot.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use zookeeper_recipes_lock::{JobRecord, SlotRecord, SlotState};

use super::row::printable;

/// Who claimed a slot, when, and how it ended. `holds` is true if its process holds the lock now.
pub(crate) fn slot_text(slot: &SlotRecord, holds: bool) -> String {
    let ended = match (slot.state, holds) {
        (SlotState::Claimed, true) => "it starts".to_owned(),
        (SlotState::Claimed, false) => "it has not started, and the slot is free".to_owned(),
        (SlotState::Started, true) => "it runs".to_owned(),
        (SlotState::Started, false) => {
            "it has recorded no end: its process has died, or has lost the lock".to_owned()
        }
        (SlotState::Failed, _) => format!("it failed{}", at(slot.ended_at)),
        (SlotState::Done, _) => format!("it succeeded{}", at(slot.ended_at)),
    };
    format!(
        "the slot of {} was claimed by {}{}, token {}: {ended}",
        utc(slot.start),
        printable(&slot.owner),
        at(Some(slot.claimed_at)),
        slot.fencing_token,
    )
}

/// The lines about a job, for people. `holder` is the token of the contender that holds now.
pub(super) fn lines(record: &JobRecord, holder: Option<i64>) -> Vec<String> {
    let recorded = record.last_run.iter().chain(&record.claim);
    recorded
        .map(|slot| slot_text(slot, holder == Some(slot.fencing_token.get())))
        .collect()
}

/// The record for programs.
pub(super) fn json_of(record: &JobRecord) -> Value {
    let slot = |slot: &SlotRecord| {
        json!({
            "start_ms": milliseconds(slot.start),
            "state": match slot.state {
                SlotState::Claimed => "claimed",
                SlotState::Started => "started",
                SlotState::Failed => "failed",
                SlotState::Done => "done",
            },
            "fencing_token": slot.fencing_token.get(),
            "claimed_ms": milliseconds(slot.claimed_at),
            "ended_ms": slot.ended_at.map(milliseconds),
            "owner": slot.owner,
        })
    };
    json!({
        "every_ms": u64::try_from(record.every.as_millis()).unwrap_or(u64::MAX),
        "offset_ms": u64::try_from(record.offset.as_millis()).unwrap_or(u64::MAX),
        "last_run": record.last_run.as_ref().map(slot),
        "claim": record.claim.as_ref().map(slot),
    })
}

fn at(time: Option<SystemTime>) -> String {
    time.map(|time| format!(" at {}", utc(time)))
        .unwrap_or_default()
}

fn milliseconds(time: SystemTime) -> u64 {
    u64::try_from(since_1970(time).as_millis()).unwrap_or(u64::MAX)
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The time in UTC, as `2026-03-20T12:00:00Z`.
fn utc(time: SystemTime) -> String {
    let since = since_1970(time);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let fraction = match since.subsec_millis() {
        0 => String::new(),
        milliseconds => format!(".{milliseconds:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// The year, the month and the day, so many days after the beginning of 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Years that begin on the first of March have their leap day at the end. Day 0 is that of the
    // year 0, and a cycle of 400 years has 146,097 days.
    let days = days + 719_468;
    let (cycle, of_cycle) = (days / 146_097, days % 146_097);
    let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = match month {
        0..10 => (month + 3, 0),
        _ => (month - 9, 1),
    };
    (cycle * 400 + year + next_year, month, day)
}

#[cfg(test)]
#[path = "../../tests/unit/slot.rs"]
mod tests;
