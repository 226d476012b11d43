//! How the leader proposes a transaction.

use std::sync::Arc;

use super::access::Writer;
use super::action::Action;
use super::apply::apply;
use super::proposal::Proposal;
use super::state::Servers;
use super::transaction::{Body, Transaction};
use crate::wire::answer::Failure;
use crate::wire::connection::ConnectionId;
use crate::wire::write::Write;

impl Servers {
    /// Turns writes into a transaction's body, on top of all that has been proposed.
    pub(crate) fn decide(&mut self, writes: &[Write], several: bool, writer: &Writer<'_>) -> Body {
        let mut proposal = Proposal::new(&self.tree, &self.outstanding);
        let mut edits = Vec::new();
        for (index, write) in writes.iter().enumerate() {
            match proposal.add(write, writer) {
                Ok(edit) => edits.push(edit),
                Err(Failure::Refused { refusal, .. }) => {
                    let operation = several.then_some(index);
                    return Body::Refused(Failure::Refused { operation, refusal });
                }
                Err(failure) => return Body::Refused(failure),
            }
        }
        let zxid = (self.epoch << 32) | (self.proposals + 1);
        for (path, creates) in proposal.promised() {
            self.outstanding.insert(path, (creates, zxid));
        }
        Body::Write { edits, several }
    }

    pub(crate) fn propose(
        &mut self,
        session: i64,
        origin: Option<(ConnectionId, u64)>,
        body: Body,
    ) -> u64 {
        self.proposals += 1;
        let zxid = (self.epoch << 32) | self.proposals;
        let transaction = Arc::new(Transaction {
            zxid,
            session,
            origin,
            time: self.began_at + self.kernel.now.as_millis() as i64,
            body,
        });
        apply(&mut self.tree, &transaction, |_, _| {});
        let index = self.log_end();
        self.log.push_back(transaction);
        let delay = self.kernel.draw(&self.options.commit_delay);
        let at = (self.kernel.now + delay).max(self.last_commit);
        self.last_commit = at;
        self.schedule(at, Action::Commit { index });
        index
    }

    pub(super) fn propose_close(
        &mut self,
        session: i64,
        origin: Option<(ConnectionId, u64)>,
        expired: bool,
    ) -> u64 {
        if let Some(record) = self.sessions.get_mut(&session) {
            record.closing = true;
        }
        let mut ephemerals = self.tree.ephemerals(session);
        // The server keeps them in a hash set: their order means nothing, and none may be relied
        // on.
        self.kernel.rng.shuffle(&mut ephemerals);
        self.propose(
            session,
            origin,
            Body::CloseSession {
                ephemerals,
                expired,
            },
        )
    }
}
