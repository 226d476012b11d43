//! Commits, and the history of what they changed.

use std::sync::Arc;

use zookeeper_recipes_core::ensemble::{SessionEnd, SessionId};

use super::action::FromLeader;
use super::member::MemberState;
use super::state::Servers;
use super::transaction::{Body, Transaction};
use super::tree::{Edit, EditKind, Owner};
use crate::record::history::{Change, Committed};
use crate::record::trace::TraceKind;

impl Servers {
    fn has_quorum(&self) -> bool {
        let serving = self
            .members
            .iter()
            .filter(|server| server.state == MemberState::Serving)
            .count();
        serving > self.members.len() / 2
    }

    /// Commits all up to this transaction.
    pub(crate) fn commit(&mut self, index: u64) {
        if !self.has_quorum() || self.kernel.now < self.stalled_until {
            self.commits_held = true;
            return;
        }
        while self.committed <= index && self.committed < self.log_end() {
            self.commit_next();
        }
    }

    fn commit_next(&mut self) {
        let index = self.committed;
        self.committed += 1;
        let transaction = Arc::clone(&self.log[(index - self.log_start) as usize]);
        self.remember(&transaction);
        if let Body::CloseSession { .. } = transaction.body {
            self.sessions.remove(&transaction.session);
        }
        self.catch_up(self.leader, index + 1);
        for server in 0..self.members.len() {
            if server != self.leader {
                self.send_to(server, FromLeader::Commit { index });
            }
        }
        let zxid = transaction.zxid;
        self.outstanding.retain(|_, (_, promised)| *promised > zxid);
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.syncs)
            .into_iter()
            .partition(|(last, ..)| *last <= index);
        self.syncs = later;
        for (_, server, origin) in due {
            self.send_to(server, FromLeader::Synced(origin));
        }
    }

    fn remember(&mut self, transaction: &Transaction) {
        let session = transaction.session;
        self.kernel
            .trace(TraceKind::Transaction, None, session, || {
                format!("{:#x} {}", transaction.zxid, transaction.text())
            });
        if matches!(transaction.body, Body::Refused(_)) {
            return;
        }
        for change in changes(transaction) {
            let committed = Committed {
                zxid: transaction.zxid,
                at: self.kernel.now,
                session: (session != 0).then_some(SessionId(session)),
                change,
            };
            self.note(committed);
        }
        self.kernel.counters.transactions += 1;
    }

    /// Notes a change in the history, and reports it.
    pub(super) fn note(&mut self, committed: Committed) {
        if let Some(observer) = self.commit_observer.clone() {
            let committed = committed.clone();
            self.kernel.effect(move || observer(&committed));
        }
        if self.keeps_history {
            self.history.push(committed);
            self.kernel.gauge.committed(self.history.len());
        }
    }
}

/// The changes of a transaction, in order.
fn changes(transaction: &Transaction) -> Vec<Change> {
    let session = SessionId(transaction.session);
    match &transaction.body {
        Body::Refused(_) => Vec::new(),
        Body::OpenSession => vec![Change::SessionOpened { session }],
        Body::CloseSession { znodes, expired } => {
            let end = if *expired {
                SessionEnd::Expired
            } else {
                SessionEnd::Closed
            };
            let deletions = znodes
                .iter()
                .map(|path| Change::Deleted { path: path.clone() });
            std::iter::once(Change::SessionEnded { session, end })
                .chain(deletions)
                .collect()
        }
        Body::Write(edits) => edits.iter().filter_map(change).collect(),
    }
}

/// The change of an edit, if a history has it.
fn change(edit: &Edit) -> Option<Change> {
    let path = edit.path.clone();
    match &edit.kind {
        EditKind::Check | EditKind::SetAcl(_) | EditKind::SetCreates(_) => None,
        EditKind::Create { data, owner, .. } => Some(Change::Created {
            path,
            ephemeral_owner: match owner {
                Owner::Session(session) => Some(SessionId(*session)),
                Owner::Nobody | Owner::Container | Owner::Ttl(_) => None,
            },
            data: data.clone().unwrap_or_default(),
        }),
        EditKind::Delete => Some(Change::Deleted { path }),
        EditKind::SetData { data, .. } => Some(Change::DataSet {
            path,
            data: data.clone().unwrap_or_default(),
        }),
    }
}
