//! What is recorded of a job that runs at most once in each time slot.

use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::{Value, json};
use zookeeper_recipes_lock::{JobRecord, SlotRecord, SlotState};
use zookeeper_recipes_overview::printable;

use super::table::milliseconds;

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

/// The time in UTC, as `2026-03-20T12:00:00Z`. A time after 9999 is shown as the last one before.
fn utc(time: SystemTime) -> String {
    let time = Timestamp::from_millisecond(milliseconds(time)).unwrap_or(Timestamp::MAX);
    time.to_string()
}

#[cfg(test)]
#[path = "../../tests/unit/slot.rs"]
mod tests;
