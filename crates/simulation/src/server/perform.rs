//! What is due is done, unless a server stands still.

use super::action::Action;
use super::member::MemberState;
use super::state::Servers;
use crate::wire::connection::ConnectionId;
use crate::wire::message::Upward;

impl Servers {
    /// A message of a client reaches its server.
    pub(crate) fn reach_server(&mut self, connection: ConnectionId, message: Upward) {
        self.perform(Action::Arrive {
            connection,
            message,
        });
    }

    pub(crate) fn perform(&mut self, action: Action) {
        let action = match self.paused {
            0 => action,
            _ => match self.hold_back(action) {
                Some(action) => action,
                None => return,
            },
        };
        match action {
            Action::Arrive {
                connection,
                message,
            } => self.arrive(connection, message),
            Action::ToLeader {
                term,
                server,
                message,
            } => self.reach_leader(term, server, message),
            Action::FromLeader {
                term,
                server,
                message,
            } => self.reach_follower(term, server, message),
            Action::Commit { index } => self.commit(index),
            Action::ExpireSessions => self.expire_sessions(),
            Action::TouchSessions => self.touch_sessions(),
            Action::ReapContainers => self.reap_containers_by_timer(),
            Action::EndStall => self.commit_held(),
            Action::Resume { server } => self.resume_server(server),
            Action::GiveUpLeader { server, cut } => self.give_up_leader(server, cut),
            Action::RejoinLeader { server, cut } => self.rejoin_leader(server, cut),
            Action::Elected { term, server } => self.elected(term, server),
            Action::FollowersGiveUp { cut } => self.followers_give_up(cut),
            Action::StepDown { cut } => self.step_down(cut),
            Action::EndIsolation { server, cut } => self.end_isolation(server, cut),
        }
    }

    /// Keeps what a paused server would have to do.
    fn hold_back(&mut self, action: Action) -> Option<Action> {
        let server = match &action {
            Action::Arrive { connection, .. } => {
                let connection = self.network.connections.get(connection);
                connection.map(|it| it.server)
            }
            Action::ToLeader { server, .. }
                if self.members[*server].state == MemberState::Isolated =>
            {
                Some(*server)
            }
            Action::ToLeader { .. } | Action::Commit { .. } | Action::ExpireSessions => {
                Some(self.leader)
            }
            Action::FromLeader { server, .. } => Some(*server),
            _ => None,
        };
        let paused = server.and_then(|server| self.members[server].paused.as_mut());
        match paused {
            Some(held) => {
                held.push(action);
                None
            }
            None => Some(action),
        }
    }
}
