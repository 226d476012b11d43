//! The servers perform what is due, unless a server is paused or commits stall.

use std::time::Duration;

use super::action::Action;
use super::member::MemberState;
use super::state::Servers;

impl Servers {
    pub(crate) fn perform(&mut self, action: Action) {
        let Some(action) = self.hold_back(action) else {
            return;
        };
        match action {
            Action::Arrive(connection, message) => self.arrive(connection, message),
            Action::Greet(term, server, connection, greeting) => {
                self.greet_late(term, server, connection, greeting);
            }
            Action::ToLeader(term, server, message) => self.reach_leader(term, server, message),
            Action::FromLeader(term, server, message) => self.reach_follower(term, server, message),
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

    /// Keeps an action of a paused server, and returns the action of any other.
    fn hold_back(&mut self, action: Action) -> Option<Action> {
        if self.paused == 0 {
            return Some(action);
        }
        let server = match &action {
            Action::Arrive(connection, _) => self.network.server_of(*connection),
            Action::Greet(_, server, ..) => Some(*server),
            Action::ToLeader(_, server, _)
                if self.members[*server].state == MemberState::Isolated =>
            {
                Some(*server)
            }
            Action::ToLeader(..) | Action::Commit { .. } | Action::ExpireSessions => {
                Some(self.leader)
            }
            Action::FromLeader(_, server, _) => Some(*server),
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

    /// Stops all commits for a while, as if the disks of all servers were busy.
    pub(crate) fn stall(&mut self, duration: Duration) {
        self.trace_fault(|| format!("nothing is committed for {duration:?}"));
        self.meets("commits stalled", |_, _| true);
        self.stalled_until = self.stalled_until.max(self.kernel.now + duration);
        self.schedule(self.stalled_until, Action::EndStall);
    }

    /// Pauses a server, for less than the time after which the others give it up.
    ///
    /// The server does not notice.
    pub(crate) fn pause_server(&mut self, server: usize, duration: Duration) {
        let given_up_after = self.options.tick * self.options.sync_limit;
        let duration = duration.min(given_up_after - self.options.tick / 2);
        if self.members[server].paused.is_some() {
            return;
        }
        self.trace_fault(|| format!("server {server} pauses for {duration:?}"));
        self.meets("server paused", |_, it| it.server == server);
        self.members[server].paused = Some(Vec::new());
        self.paused += 1;
        self.after(duration, Action::Resume { server });
    }

    /// A server takes what has come for it meanwhile, in order. But nothing promises
    /// whether a leader first looks for expired sessions or first reads its followers' messages.
    pub(crate) fn resume_server(&mut self, server: usize) {
        let Some(mut held) = self.members[server].paused.take() else {
            return;
        };
        self.paused -= 1;
        self.trace_fault(|| format!("server {server} runs again"));
        // The leader's ping, which has been waiting, is answered first.
        if matches!(self.members[server].state, MemberState::Serving) {
            self.answer_ping(server);
        }
        if self.kernel.rng.bool() {
            held.sort_by_key(|action| !matches!(action, Action::ExpireSessions));
        }
        for action in held {
            self.perform(action);
        }
    }
}
