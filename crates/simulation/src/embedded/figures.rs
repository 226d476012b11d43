//! The figures of a server, for the four-letter words.

use std::time::Duration;

use zookeeper_recipes_protocol::EventType;

/// How long requests took to be answered, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latency {
    count: u64,
    sum: u64,
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Latency {
    pub(super) fn add(&mut self, took: Duration) {
        let took = took.as_millis() as u64;
        self.least = match self.count {
            0 => took,
            _ => self.least.min(took),
        };
        self.count += 1;
        self.sum += took;
        self.most = self.most.max(took);
    }

    pub(super) fn average(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }
}

/// The figures of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) latency: Latency,
    pub(super) created: u64,
    pub(super) deleted: u64,
    pub(super) changed: u64,
    pub(super) children: u64,
}

impl Figures {
    pub(super) fn count_event(&mut self, kind: EventType) {
        match kind {
            EventType::NodeCreated => self.created += 1,
            EventType::NodeDeleted => self.deleted += 1,
            EventType::NodeDataChanged => self.changed += 1,
            EventType::NodeChildrenChanged => self.children += 1,
            _ => {}
        }
    }
}
