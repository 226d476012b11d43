//! What a worker says of itself in the group of the workers.

use crate::options::AssignmentOptions;
use crate::plan::PlannedWorker;

const CAPACITY: &str = "capacity ";
const ZONE: &str = "zone ";

/// The data of a worker's member: its address, and its capacity and its zone if they are set.
pub(crate) fn text(options: &AssignmentOptions) -> String {
    let mut text = options.address.clone();
    if options.capacity != 1 {
        text += &format!("\n{CAPACITY}{}", options.capacity);
    }
    if let Some(zone) = &options.zone {
        text += &format!("\n{ZONE}{zone}");
    }
    text
}

/// The address of a worker, and the worker as one that is not drained. Lines that are not known are
/// ignored.
pub(crate) fn parse(data: &[u8]) -> (String, PlannedWorker) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let address = lines.next().unwrap_or_default().to_owned();
    let mut worker = PlannedWorker::default();
    for line in lines {
        if let Some(capacity) = line.strip_prefix(CAPACITY) {
            worker.capacity = capacity.parse().unwrap_or(1);
        } else if let Some(zone) = line.strip_prefix(ZONE) {
            worker.zone = Some(zone.to_owned());
        }
    }
    (address, worker)
}

#[cfg(test)]
#[path = "../tests/unit/member.rs"]
mod tests;
