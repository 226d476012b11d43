//! Members that are stopped, and started again.

use super::action::Action;
use super::state::Servers;

impl Servers {
    /// Stops a member. Its data are kept, as on a disk. If it leads, the others elect another; if
    /// no quorum is left, nobody serves.
    pub(crate) fn stop_member(&mut self, server: usize) {
        if self.members[server].stopped {
            return;
        }
        if let Some((isolated, cut)) = self.isolated.as_ref().map(|it| (it.server, it.cut)) {
            self.end_isolation(isolated, cut);
        }
        self.resume_server(server);
        self.kernel
            .trace_fault(|| format!("server {server} is stopped"));
        let stopped = &mut self.members[server];
        stopped.stopped = true;
        stopped.linked = false;
        stopped.cut += 1;
        self.stop(server);
        // What it has acknowledged is on its disk.
        let committed = self.committed;
        self.catch_up(server, committed);
        if !self.could_have_quorum() {
            self.stop_all();
        } else if server == self.leader && !self.electing {
            self.stop_all();
            self.electing = true;
            self.term += 1;
            let (term, within) = (self.term, self.kernel.draw_up_to(self.options.tick / 5));
            self.after(within, Action::Elected { term, server });
        }
    }

    /// Starts a member that was stopped. If that makes a quorum, the members elect a leader.
    pub(crate) fn start_member(&mut self, server: usize) {
        if !self.members[server].stopped {
            return;
        }
        self.kernel
            .trace_fault(|| format!("server {server} is started"));
        let started = &mut self.members[server];
        started.stopped = false;
        started.cut += 1;
        let cut = started.cut;
        self.rejoin_leader(server, cut);
    }

    /// All members that can reach each other stop serving, since nobody leads them.
    pub(super) fn stop_all(&mut self) {
        for each in 0..self.members.len() {
            if self.members[each].linked {
                self.stop(each);
            }
        }
    }

    /// Who leads after an election that `wanted` would win: another if that is stopped or has
    /// missed transactions that nobody keeps any more.
    pub(super) fn winner(&self, wanted: usize) -> usize {
        let member = |at: usize| &self.members[at];
        if member(wanted).linked && member(wanted).applied >= self.log_start {
            return wanted;
        }
        let linked = (0..self.members.len()).filter(|it| member(*it).linked);
        linked
            .max_by_key(|it| (member(*it).applied, std::cmp::Reverse(*it)))
            .unwrap_or(wanted)
    }

    /// A member applies what it has missed. If nobody keeps that any more, the member takes the
    /// leader's tree.
    pub(super) fn synchronise(&mut self, server: usize) {
        if self.members[server].applied < self.log_start {
            let leader = &self.members[self.leader];
            let (tree, applied) = (leader.tree.clone(), leader.applied);
            self.members[server].tree = tree;
            self.members[server].applied = applied;
        }
        self.catch_up(server, self.committed);
    }

    /// Whether a member has no leader, since it or too many of the others are stopped.
    pub(crate) fn is_stopped(&self, server: usize) -> bool {
        self.members[server].stopped
    }
}
