//! A follower: what a server does with the messages of its leader.

use std::sync::Arc;

use zookeeper_recipes_protocol::{
    Acl, EventType, OpCode, Operation, Outcome, Permission, ReplyBody, RequestBody, Stat,
};

use super::access::{Writer, permit};
use super::action::FromLeader;
use super::member::MemberState;
use super::state::Servers;
use super::transaction::{Body, Transaction, apply};
use super::tree::{Edit, EditKind, Owner};
use crate::chance::fault::Way;
use crate::wire::message::Answer;
use crate::wire::network::ConnectionId;

/// A watch that has been triggered, with the access control list that guards its event.
type Notification = (ConnectionId, String, EventType, Arc<[Acl]>);

/// Each edit of a transaction, with the metadata that came of it.
type Outcomes = Vec<(Edit, Option<Stat>)>;

impl Servers {
    pub(super) fn reach_follower(&mut self, term: u64, server: usize, message: FromLeader) {
        if term != self.term {
            return;
        }
        match self.members[server].state {
            MemberState::Down | MemberState::Isolated => {}
            MemberState::CutOff(Way::Both | Way::Down) => {
                self.members[server].held_down.push_back(message);
            }
            MemberState::Serving | MemberState::CutOff(Way::Up) => self.follow(server, message),
        }
    }

    pub(super) fn follow(&mut self, server: usize, message: FromLeader) {
        match message {
            FromLeader::Commit { index } => self.catch_up(server, index + 1),
            FromLeader::Synced(origin) => self.complete(origin, |body| {
                let path = body.path().unwrap_or_default().to_owned();
                Ok(ReplyBody::Sync { path })
            }),
            FromLeader::Revalidated(connection, Some(session)) => {
                self.establish(connection, session);
            }
            FromLeader::Revalidated(connection, None) => self.answer_greeting(connection, None),
        }
    }

    /// A server applies what it has not yet applied, up to this index.
    pub(super) fn catch_up(&mut self, server: usize, end: u64) {
        while self.members[server].applied < end {
            let index = self.members[server].applied;
            self.members[server].applied += 1;
            if index < self.log_start {
                continue;
            }
            let transaction = Arc::clone(&self.log[(index - self.log_start) as usize]);
            self.apply_at(server, &transaction);
        }
        // A member that is stopped takes the leader's tree when it has missed too much.
        let running = self.members.iter().filter(|it| !it.stopped);
        let needed = running.map(|it| it.applied).min().unwrap_or(0);
        while self.log_start < needed && self.log_start < self.committed {
            self.log.pop_front();
            self.log_start += 1;
        }
    }

    fn apply_at(&mut self, at: usize, transaction: &Transaction) {
        let (notifications, outcomes) = self.apply_to_copy(at, transaction);
        for (connection, path, event, acl) in notifications {
            // The watch of a client that may not read the znode is spent without a notification.
            let session = self.session_on(connection);
            let identities = self.identities.get(&session).map_or(&[][..], Vec::as_slice);
            let reader = Writer::Session(session, identities);
            if permit(&acl, Permission::READ, &reader).is_ok() {
                self.notify(connection, path, event);
            }
        }
        match &transaction.body {
            Body::OpenSession => {
                if let Some(origin) = transaction.origin.filter(|it| self.is_at(it.0, at)) {
                    self.establish(origin.0, transaction.session);
                }
            }
            Body::CloseSession { .. } => {
                self.answer_origin(at, transaction, |_| Ok(ReplyBody::Empty));
                for id in self.connections_of(at, transaction.session) {
                    self.close_at_server(id, true);
                }
            }
            Body::Refused(answer) => self.answer_origin(at, transaction, |_| answer.clone()),
            Body::Write(_) => {
                let reports = self.options.transactions_report_metadata();
                self.answer_origin(at, transaction, |body| {
                    Ok(answer_of_write(body, outcomes, reports))
                });
            }
        }
    }

    /// Applies a transaction to a server's copy of the tree: which watches that triggers, and what
    /// came of each edit.
    fn apply_to_copy(
        &mut self,
        at: usize,
        transaction: &Transaction,
    ) -> (Vec<Notification>, Outcomes) {
        let mut notifications = Vec::new();
        let mut outcomes = Vec::new();
        let server = &mut self.members[at];
        let watches = &mut server.watches;
        apply(&mut server.tree, transaction, |edit, applied| {
            if let Some(trigger) = applied.trigger {
                for (connection, path, event) in watches.trigger(&edit.path, trigger) {
                    let acl = match event {
                        EventType::NodeChildrenChanged => applied.parent_acl.clone(),
                        _ => applied.acl.clone(),
                    };
                    notifications.push((connection, path, event, acl));
                }
            }
            outcomes.push((edit.clone(), applied.stat));
        });
        (notifications, outcomes)
    }

    fn is_at(&self, connection: ConnectionId, server: usize) -> bool {
        self.network.server_of(connection) == Some(server)
    }

    fn answer_origin(
        &mut self,
        server: usize,
        transaction: &Transaction,
        answer: impl FnOnce(&RequestBody) -> Answer,
    ) {
        if let Some(origin) = transaction.origin.filter(|it| self.is_at(it.0, server)) {
            self.complete(origin, answer);
        }
    }
}

fn answer_of_write(
    body: &RequestBody,
    mut outcomes: Outcomes,
    reports_metadata: bool,
) -> ReplyBody {
    if let RequestBody::Multi(operations) = body {
        let results = operations.iter().zip(outcomes);
        let results = results.map(|(operation, it)| result_of(operation, it, reports_metadata));
        return ReplyBody::Multi(results.collect());
    }
    let Some((Edit { path, kind }, Some(stat))) = outcomes.pop() else {
        return ReplyBody::Empty;
    };
    match kind {
        EditKind::Create { .. } if body.opcode() == OpCode::Create => ReplyBody::Create { path },
        EditKind::Create { .. } => ReplyBody::Create2 { path, stat },
        EditKind::SetData { .. } | EditKind::SetAcl(_) | EditKind::Check => ReplyBody::Stat(stat),
        EditKind::Delete | EditKind::SetCreates(_) => ReplyBody::Empty,
    }
}

/// The result of one operation of a transaction.
fn result_of(
    operation: &Operation,
    (Edit { path, kind }, stat): (Edit, Option<Stat>),
    reports_metadata: bool,
) -> Outcome {
    match (kind, stat) {
        (EditKind::Create { owner, .. }, Some(stat))
            if matches!(owner, Owner::Container | Owner::Ttl(_))
                || (reports_metadata && operation.opcode() != OpCode::Create) =>
        {
            Outcome::Create2 { path, stat }
        }
        (EditKind::Create { .. }, _) => Outcome::Create { path },
        (EditKind::SetData { .. }, Some(stat)) => Outcome::SetData { stat },
        (EditKind::Delete, _) => Outcome::Delete,
        _ => Outcome::Check,
    }
}
