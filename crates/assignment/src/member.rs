//! What a worker says of itself in the group of the workers.

use crate::plan::PlannedWorker;

const CAPACITY: &str = "capacity ";
const ZONE: &str = "zone ";

/// The data of a worker's member: its address, and its capacity and its zone if they are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberData {
    pub(crate) address: String,
    pub(crate) capacity: u32,
    pub(crate) zone: Option<String>,
}

impl MemberData {
    pub(crate) fn text(&self) -> String {
        let mut text = self.address.clone();
        if self.capacity != 1 {
            text += &format!("\n{CAPACITY}{}", self.capacity);
        }
        if let Some(zone) = &self.zone {
            text += &format!("\n{ZONE}{zone}");
        }
        text
    }

    /// Lines that are not known are ignored.
    pub(crate) fn parse(data: &[u8]) -> MemberData {
        let text = String::from_utf8_lossy(data);
        let mut lines = text.lines();
        let mut member = MemberData {
            address: lines.next().unwrap_or_default().to_owned(),
            capacity: 1,
            zone: None,
        };
        for line in lines {
            if let Some(capacity) = line.strip_prefix(CAPACITY) {
                member.capacity = capacity.parse().unwrap_or(1);
            } else if let Some(zone) = line.strip_prefix(ZONE) {
                member.zone = Some(zone.to_owned());
            }
        }
        member
    }

    pub(crate) fn planned(self, drained: bool) -> PlannedWorker {
        PlannedWorker {
            capacity: self.capacity,
            zone: self.zone,
            drained,
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/member.rs"]
mod tests;
