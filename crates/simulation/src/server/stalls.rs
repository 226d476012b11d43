//! Ensembles that are slow: commits that stall, servers that stand still.

use std::time::Duration;

use super::action::Action;
use super::member::MemberState;
use super::state::Servers;

impl Servers {
    /// Nothing is committed for a while, as where the disks of all servers are busy.
    pub(crate) fn stall(&mut self, duration: Duration) {
        self.kernel
            .trace_fault(|| format!("nothing is committed for {duration:?}"));
        self.stalled_until = self.stalled_until.max(self.kernel.now + duration);
        self.schedule(self.stalled_until, Action::EndStall);
    }

    /// A server stands still for a while, and notices nothing of it itself.
    ///
    /// For less than the time after which the others give it up.
    pub(crate) fn pause_server(&mut self, server: usize, duration: Duration) {
        let given_up_after = self.options.tick * self.options.sync_limit;
        let duration = duration.min(given_up_after - self.options.tick / 2);
        if self.members[server].paused.is_some() {
            return;
        }
        self.kernel
            .trace_fault(|| format!("server {server} stands still for {duration:?}"));
        self.members[server].paused = Some(Vec::new());
        self.paused += 1;
        self.after(duration, Action::Resume { server });
    }

    /// A server takes what has come for it meanwhile, in its order; but whether a leader looks
    /// for expired sessions or hears its followers first is nobody's promise.
    pub(crate) fn resume_server(&mut self, server: usize) {
        let Some(mut held) = self.members[server].paused.take() else {
            return;
        };
        self.paused -= 1;
        self.kernel
            .trace_fault(|| format!("server {server} goes on"));
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
