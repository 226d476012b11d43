//! Writes: what the leader proposes for clients, for the administrator and for itself.

use std::sync::Arc;

use zookeeper_recipes_protocol::{Acl, DeleteRequest, ErrorCode, RequestBody};

use super::access::Writer;
use super::action::Action;
use super::proposal::Proposal;
use super::state::Servers;
use super::transaction::{Body, Origin, Transaction, apply};
use super::tree::{Edit, EditKind};

impl Servers {
    /// Turns a write into a transaction's body, on top of all that has been proposed.
    pub(crate) fn decide(&mut self, request: &RequestBody, writer: &Writer<'_>) -> Body {
        let mut proposal = Proposal::new(&self.tree, &self.outstanding, &self.options);
        let edits = match proposal.edits(request, writer) {
            Ok(edits) => edits,
            Err(answer) => return Body::Refused(answer),
        };
        let zxid = (self.epoch << 32) | (self.proposals + 1);
        for (path, creates) in proposal.promised() {
            self.outstanding.insert(path, (creates, zxid));
        }
        Body::Write(edits)
    }

    pub(crate) fn propose(&mut self, session: i64, origin: Option<Origin>, body: Body) {
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
    }

    pub(super) fn propose_close(&mut self, session: i64, origin: Option<Origin>, expired: bool) {
        if let Some(record) = self.sessions.get_mut(&session) {
            record.closing = true;
        }
        let mut znodes = self.tree.ephemerals(session);
        // The server keeps them in a hash set: their order means nothing, and none may be relied
        // on.
        self.kernel.rng.shuffle(&mut znodes);
        let body = Body::CloseSession { znodes, expired };
        self.propose(session, origin, body);
    }

    /// Writes for the administrator, at once, and returns the path of the znode.
    pub(crate) fn write_as(
        &mut self,
        request: &RequestBody,
        writer: &Writer<'_>,
    ) -> Result<String, ErrorCode> {
        let body = self.decide(request, writer);
        let written = match &body {
            Body::Refused(Err(error)) => Err(*error),
            Body::Write(edits) => Ok(edits.first().map(|it| it.path.clone()).unwrap_or_default()),
            _ => Ok(String::new()),
        };
        self.propose(0, None, body);
        self.commit_all();
        written
    }

    /// Replaces an access control list, and returns the earlier one.
    pub(crate) fn set_acl(&mut self, path: &str, acl: &[Acl]) -> Result<Vec<Acl>, ErrorCode> {
        let earlier = self.tree.get(path).ok_or(ErrorCode::NoNode)?.acl.clone();
        self.edit(EditKind::SetAcl(acl.into()).of(path));
        Ok(earlier.to_vec())
    }

    /// Sets the counter behind the sequence numbers of a znode's children. Each server applies it
    /// in the order of the log: a follower that lags counts on from it too.
    pub(crate) fn set_create_counter(&mut self, path: &str, creates: i32) -> Result<(), ErrorCode> {
        self.tree.get(path).ok_or(ErrorCode::NoNode)?;
        self.outstanding.remove(path);
        self.edit(EditKind::SetCreates(creates).of(path));
        Ok(())
    }

    fn edit(&mut self, edit: Edit) {
        self.propose(0, None, Body::Write(vec![edit]));
        self.commit_all();
    }

    /// Commits all that has been proposed.
    pub(crate) fn commit_all(&mut self) {
        if self.log_end() > 0 {
            let last = self.log_end() - 1;
            self.commit(last);
        }
    }

    pub(crate) fn reap_containers_by_timer(&mut self) {
        self.reap_containers();
        if self.timers_armed {
            self.after(self.options.container_interval, Action::ReapContainers);
        }
    }

    /// Deletes the containers that have had children and have none now, and the znodes without
    /// children whose time to live has passed.
    pub(crate) fn reap_containers(&mut self) -> Vec<String> {
        let now = self.began_at + self.kernel.now.as_millis() as i64;
        let leader = &self.members[self.leader].tree;
        let candidates: Vec<String> = leader
            .iter()
            .filter(|(_, node)| node.is_due(now))
            .map(|(path, _)| path.clone())
            .collect();
        let mut reaped = Vec::new();
        for path in candidates {
            let delete = RequestBody::Delete(DeleteRequest {
                path: path.clone(),
                version: -1,
            });
            let body = self.decide(&delete, &Writer::Reaper);
            if matches!(body, Body::Write(_)) {
                reaped.push(path);
            }
            self.propose(0, None, body);
        }
        reaped
    }
}
