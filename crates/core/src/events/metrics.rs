//! The metrics, told to the recorder of the `metrics` facade.

use metrics::{Label, counter, gauge, histogram};

use crate::events::{Measured, MeasuredSession, Source};

const ATTEMPTS: &str = "zookeeper_recipes_attempts_total";
const WAITING: &str = "zookeeper_recipes_waiting";
const FAILED: &str = "zookeeper_recipes_failed_total";
const ACQUIRED: &str = "zookeeper_recipes_acquired_total";
const HOLDING: &str = "zookeeper_recipes_holding";
const WAITED: &str = "zookeeper_recipes_waited_seconds";
const HANDOFF: &str = "zookeeper_recipes_handoff_seconds";
const LOST: &str = "zookeeper_recipes_lost_total";
const RELEASED: &str = "zookeeper_recipes_released_total";
const HELD: &str = "zookeeper_recipes_held_seconds";
const OPENED: &str = "zookeeper_recipes_session_opened_total";
const RECONNECTS: &str = "zookeeper_recipes_session_reconnects_total";
const EXPIRIES: &str = "zookeeper_recipes_session_expiries_total";
const PROBES: &str = "zookeeper_recipes_session_probe_seconds";

pub(crate) fn measure(source: &Source, measured: Measured) {
    let labels = || {
        vec![
            Label::from_static_parts("recipe", source.recipe),
            Label::new("name", source.name.clone()),
        ]
    };
    let with = |key: &'static str, value: &'static str| {
        let mut labels = labels();
        labels.push(Label::from_static_parts(key, value));
        labels
    };
    match measured {
        Measured::AttemptBegan => {
            counter!(ATTEMPTS, labels()).increment(1);
            gauge!(WAITING, labels()).increment(1);
        }
        Measured::AttemptEnded => gauge!(WAITING, labels()).decrement(1),
        Measured::Failed(kind) => counter!(FAILED, with("kind", kind)).increment(1),
        Measured::Acquired(waited) => {
            counter!(ACQUIRED, labels()).increment(1);
            gauge!(HOLDING, labels()).increment(1);
            histogram!(WAITED, labels()).record(waited);
        }
        Measured::Handoff(took) => histogram!(HANDOFF, labels()).record(took),
        Measured::Lost(reason) => counter!(LOST, with("reason", reason)).increment(1),
        Measured::Released => counter!(RELEASED, labels()).increment(1),
        Measured::HoldEnded(held) => {
            gauge!(HOLDING, labels()).decrement(1);
            histogram!(HELD, labels()).record(held);
        }
    }
}

pub(crate) fn measure_session(measured: MeasuredSession) {
    match measured {
        MeasuredSession::Opened => counter!(OPENED).increment(1),
        MeasuredSession::Reconnected => counter!(RECONNECTS).increment(1),
        MeasuredSession::Expired => counter!(EXPIRIES).increment(1),
        MeasuredSession::Answered(round_trip) => histogram!(PROBES).record(round_trip),
    }
}

/// Describes the metrics to the recorder. Call it once, after the recorder is installed.
///
/// [`docs::events`](crate::docs::events) lists the metrics.
pub fn describe_metrics() {
    use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
    describe_counter!(ATTEMPTS, "Calls that acquire or try to");
    describe_gauge!(WAITING, "Attempts that are under way now");
    describe_counter!(FAILED, "Attempts that acquired nothing, by kind");
    describe_counter!(ACQUIRED, "Attempts that acquired");
    describe_gauge!(HOLDING, "Holds that this process has now");
    describe_histogram!(WAITED, Unit::Seconds, "From the call to the hold");
    describe_histogram!(
        HANDOFF,
        Unit::Seconds,
        "From the news that a contender before it has left to the hold"
    );
    describe_counter!(LOST, "Holds that were lost, by reason");
    describe_counter!(RELEASED, "Holds that were released or dropped");
    describe_histogram!(HELD, Unit::Seconds, "From the hold to its end");
    describe_counter!(OPENED, "ZooKeeper sessions that were opened");
    describe_counter!(RECONNECTS, "Reconnects within a ZooKeeper session");
    describe_counter!(EXPIRIES, "ZooKeeper sessions that expired");
    describe_histogram!(PROBES, Unit::Seconds, "Round trips of the probes");
}
