//! Ensembles that are slow: commits that stall, servers that stand still.

use std::time::Duration;

use super::quorum::ServerState;
use super::trace::TraceKind;
use super::world::{Action, World};

impl World {
    /// Nothing is committed for a while, as where the disks of all servers are busy.
    pub(super) fn stall(&mut self, duration: Duration) {
        self.trace(TraceKind::Fault, None, 0, || {
            format!("nothing is committed for {duration:?}")
        });
        self.stalled_until = self.stalled_until.max(self.now + duration);
        self.schedule(self.stalled_until, Action::EndStall);
    }

    /// A server stands still for a while, and notices nothing of it itself.
    ///
    /// For less than the time after which the others give it up.
    pub(super) fn pause_server(&mut self, server: usize, duration: Duration) {
        let given_up_after = self.options.tick * self.options.sync_limit;
        let duration = duration.min(given_up_after - self.options.tick / 2);
        if self.servers[server].paused.is_some() {
            return;
        }
        self.trace(TraceKind::Fault, None, 0, || {
            format!("server {server} stands still for {duration:?}")
        });
        self.servers[server].paused = Some(Vec::new());
        self.paused += 1;
        self.after(duration, Action::Resume { server });
    }

    /// A server takes what has come for it meanwhile, in its order; but whether a leader looks
    /// for expired sessions or hears its followers first is nobody's promise.
    pub(super) fn resume_server(&mut self, server: usize) {
        let Some(mut held) = self.servers[server].paused.take() else {
            return;
        };
        self.paused -= 1;
        self.trace(TraceKind::Fault, None, 0, || {
            format!("server {server} goes on")
        });
        // The leader's ping, which has been waiting, is answered first.
        if matches!(self.servers[server].state, ServerState::Serving) {
            self.answer_ping(server);
        }
        if self.rng.bool() {
            held.sort_by_key(|action| !matches!(action, Action::ExpireSessions));
        }
        for action in held {
            self.perform(action);
        }
    }

    /// Keeps what a paused server would have to do.
    pub(super) fn hold_back(&mut self, action: Action) -> Option<Action> {
        let server = match &action {
            Action::ToServer { connection, .. } => {
                self.connections.get(connection).map(|it| it.server)
            }
            Action::ToLeader { server, .. }
                if self.servers[*server].state == ServerState::Isolated =>
            {
                Some(*server)
            }
            Action::ToLeader { .. } | Action::Commit { .. } | Action::ExpireSessions => {
                Some(self.leader)
            }
            Action::FromLeader { server, .. } => Some(*server),
            _ => None,
        };
        let paused = server.and_then(|server| self.servers[server].paused.as_mut());
        match paused {
            Some(held) => {
                held.push(action);
                None
            }
            None => Some(action),
        }
    }
}
