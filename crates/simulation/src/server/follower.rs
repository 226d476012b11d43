//! A follower: what a server does with the messages of its leader.

use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::{Acl, Created, Event, Permission, Stat};

use super::access::{Writer, permit};
use super::action::FromLeader;
use super::member::MemberState;
use super::state::Servers;
use super::transaction::{Body, Transaction, apply, outcome};
use super::tree::{Edit, EditKind};
use crate::chance::fault::Way;
use crate::wire::answer::{Answer, Failure};
use crate::wire::message::Downward;
use crate::wire::network::ConnectionId;

/// A watch that has been triggered, with the access control list that guards its event.
type Notification = (ConnectionId, String, Event, Arc<[Acl]>);

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
            FromLeader::Synced(origin) => self.complete(origin, Ok(Answer::Done)),
            FromLeader::Revalidated(connection, Some(session)) => {
                self.establish(connection, session);
            }
            FromLeader::Revalidated(connection, None) => {
                if self.network.connections.contains_key(&connection) {
                    self.send_down(connection, Downward::Expired, Duration::ZERO);
                    self.close_at_server(connection, true);
                }
            }
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
                self.answer_origin(at, transaction, Ok(Answer::Done));
                for id in self.connections_of(at, transaction.session) {
                    self.close_at_server(id, true);
                }
            }
            Body::Refused(failure) => {
                self.answer_origin(at, transaction, Err(failure.clone()));
            }
            Body::Write { several, .. } => {
                let answer = self.answer_of_write(*several, outcomes);
                self.answer_origin(at, transaction, Ok(answer));
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
                        Event::ChildrenChanged => applied.parent_acl.clone(),
                        _ => applied.acl.clone(),
                    };
                    notifications.push((connection, path, event, acl));
                }
            }
            outcomes.push((edit.clone(), applied.stat));
        });
        (notifications, outcomes)
    }

    fn answer_of_write(&self, several: bool, mut outcomes: Outcomes) -> Answer {
        if several {
            let reports = self.options.transactions_report_metadata();
            let outcomes = outcomes
                .into_iter()
                .map(|(edit, stat)| outcome(edit, stat, reports))
                .collect();
            return Answer::Outcomes(outcomes);
        }
        let Some((Edit { path, kind }, Some(stat))) = outcomes.pop() else {
            return Answer::Done;
        };
        match kind {
            EditKind::Create { .. } => Answer::Created(Created { path, stat }),
            EditKind::SetData { .. } | EditKind::SetAcl(_) | EditKind::Check => Answer::Stat(stat),
            EditKind::Delete | EditKind::SetCreates(_) => Answer::Done,
        }
    }

    fn is_at(&self, connection: ConnectionId, server: usize) -> bool {
        self.network.server_of(connection) == Some(server)
    }

    fn answer_origin(
        &mut self,
        server: usize,
        transaction: &Transaction,
        result: Result<Answer, Failure>,
    ) {
        if let Some(origin) = transaction.origin.filter(|it| self.is_at(it.0, server)) {
            self.complete(origin, result);
        }
    }
}
