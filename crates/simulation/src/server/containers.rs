//! Containers that the leader reaps.

use zookeeper_recipes_core::ensemble::Operation;

use super::access::Writer;
use super::action::Action;
use super::state::Servers;
use super::transaction::Body;
use super::tree::Owner;

impl Servers {
    pub(crate) fn reap_containers_by_timer(&mut self) {
        self.reap_containers();
        if self.timers_armed {
            self.after(self.options.container_interval, Action::ReapContainers);
        }
    }

    /// Deletes the containers that have had children and have none now.
    pub(crate) fn reap_containers(&mut self) -> Vec<String> {
        let leader = &self.members[self.leader].tree;
        let candidates: Vec<String> = leader
            .iter()
            .filter(|(_, node)| {
                node.owner == Owner::Container
                    && node.children.is_empty()
                    && node.stat().cversion > 0
            })
            .map(|(path, _)| path.clone())
            .collect();
        let mut reaped = Vec::new();
        for path in candidates {
            let delete = Operation::Delete {
                path: path.clone(),
                version: None,
            };
            let body = self.decide(&[delete.into()], false, &Writer::Reaper);
            if matches!(body, Body::Write { .. }) {
                reaped.push(path);
            }
            self.propose(0, None, body);
        }
        reaped
    }
}
