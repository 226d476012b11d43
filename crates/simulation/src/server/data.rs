//! The data of the servers: lost, or replaced by an older state.

use std::collections::BTreeMap;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::SessionId;

use super::session::SessionRecord;
use super::state::Servers;
use super::transaction::Body;
use super::tree::Tree;
use crate::record::history::{Change, Committed};

/// What the servers have on their disks: the znodes, the sessions, and the count of transactions.
#[derive(Clone)]
pub(crate) struct Data {
    tree: Tree,
    sessions: BTreeMap<i64, SessionRecord>,
    epoch: i64,
}

impl Data {
    /// The data of a new ensemble of so many servers. The first election of several begins the
    /// epoch 1, as on Apache's servers.
    pub(crate) fn empty(servers: usize) -> Data {
        Data {
            tree: Tree::default(),
            sessions: BTreeMap::new(),
            epoch: i64::from(servers == 1),
        }
    }

    /// What leads to this data: its sessions are opened, and its znodes created and written.
    fn changes(&self, at: Duration) -> Vec<Committed> {
        let committed = |zxid, change| Committed {
            zxid,
            at,
            session: None,
            change,
        };
        let opened = self.sessions.keys().map(|session| {
            let session = SessionId(*session);
            committed(self.tree.zxid, Change::SessionOpened { session })
        });
        let nodes = self.tree.iter();
        let nodes = nodes.filter(|(path, _)| *path != "/" && !path.starts_with("/zookeeper"));
        let created = nodes.flat_map(|(path, node)| {
            let (stat, path) = (node.stat(), path.clone());
            let (owner, data) = (stat.ephemeral_owner, node.data.clone().unwrap_or_default());
            let written = (stat.mzxid != stat.czxid).then(|| {
                let (path, data) = (path.clone(), data.clone());
                committed(stat.mzxid, Change::DataSet { path, data })
            });
            let created = Change::Created {
                path,
                ephemeral_owner: (owner != 0).then_some(SessionId(owner)),
                data,
            };
            [committed(stat.czxid, created)].into_iter().chain(written)
        });
        opened.chain(created).collect()
    }
}

impl Servers {
    /// What has been committed until now.
    pub(crate) fn back_up(&self) -> Data {
        let mut sessions = self.sessions.clone();
        let committed = (self.committed - self.log_start) as usize;
        for transaction in self.log.range(committed..) {
            if let Body::OpenSession = transaction.body {
                sessions.remove(&transaction.session);
            }
        }
        for record in sessions.values_mut() {
            record.closing = false;
        }
        Data {
            tree: self.members[self.leader].tree.clone(),
            sessions,
            epoch: self.epoch,
        }
    }

    /// All servers fall, and come back with this data. The followers of a server that has it take
    /// it over, so a majority that comes back with it has the same effect.
    pub(crate) fn restore(&mut self, data: &Data, duration: Duration) {
        let zxid = data.tree.zxid;
        self.trace_fault(|| {
            format!("all servers fall, and come back as they were at {zxid:#x}, in {duration:?}")
        });
        self.meets("data lost", |_, _| true);
        self.fall();
        let end = self.log_end();
        self.log.clear();
        (self.log_start, self.committed) = (end, end);
        self.outstanding.clear();
        self.syncs.clear();
        for member in &mut self.members {
            member.tree = data.tree.clone();
            member.applied = end;
        }
        self.tree = data.tree.clone();
        self.sessions = data.sessions.clone();
        if !self.sessions.is_empty() {
            self.arm_timers();
        }
        self.epoch = data.epoch;
        let is_of_epoch = zxid >> 32 == data.epoch;
        self.proposals = if is_of_epoch { zxid & 0xffff_ffff } else { 0 };
        let at = self.kernel.now;
        let data = data.changes(at);
        self.note(Committed {
            zxid,
            at,
            session: None,
            change: Change::DataReplaced { data },
        });
        self.elect_after(duration, self.leader);
    }
}
