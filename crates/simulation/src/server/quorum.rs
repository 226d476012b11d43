//! Members that lose each other, stop and start; leaders that fall; elections.

use std::time::Duration;

use super::action::Action;
use super::member::MemberState;
use super::state::Servers;
use crate::chance::fault::Way;

impl Servers {
    /// Cuts a follower off from the leader for a while.
    pub(crate) fn cut_off(&mut self, server: usize, way: Way, duration: Duration) {
        if server == self.leader || self.members[server].state != MemberState::Serving {
            return;
        }
        self.trace_fault(|| {
            format!("server {server} is cut off from the leader, {way:?}, for {duration:?}")
        });
        self.meets("server cut off", |_, it| it.server == server);
        let cut_off = &mut self.members[server];
        cut_off.state = MemberState::CutOff(way);
        cut_off.linked = false;
        cut_off.cut += 1;
        cut_off.followed = self.term;
        let cut = cut_off.cut;
        let patience = self.options.tick * self.options.sync_limit;
        self.after(patience, Action::GiveUpLeader { server, cut });
        self.after(duration, Action::RejoinLeader { server, cut });
    }

    /// Cuts a server off from the others, whatever it is to them.
    pub(crate) fn cut_off_or_isolate(&mut self, server: usize, duration: Duration) {
        if server == self.leader {
            self.isolate(duration);
        } else {
            self.cut_off(server, Way::Both, duration);
        }
    }

    /// Cuts a server off from all clients for good.
    pub(crate) fn cut_off_from_clients(&mut self, server: usize, way: Way) {
        self.trace_fault(|| format!("server {server} is cut off from all clients, {way:?}"));
        self.meets("server unheard", |_, it| it.server == server);
        self.network.cut_off_server(server, way);
    }

    pub(crate) fn give_up_leader(&mut self, server: usize, cut: u64) {
        let found = &self.members[server];
        if found.cut != cut || !matches!(found.state, MemberState::CutOff(_)) {
            return;
        }
        self.trace_fault(|| format!("server {server} gives up its leader and serves nobody"));
        self.stop(server);
        if !self.could_have_quorum() && self.members[self.leader].state != MemberState::Down {
            self.trace_fault(|| "the leader has lost its quorum: it serves nobody".to_owned());
            self.stop_all();
        }
    }

    pub(crate) fn rejoin_leader(&mut self, server: usize, cut: u64) {
        if self.members[server].cut != cut {
            return;
        }
        self.trace_fault(|| format!("server {server} is no longer cut off from the leader"));
        self.members[server].linked = true;
        if self.electing || self.members[self.leader].state == MemberState::Down {
            self.stop(server);
            if !self.electing && self.could_have_quorum() {
                let (term, leader) = (self.term, self.leader);
                self.elected(term, leader);
            }
            return;
        }
        if self.members[server].followed != self.term {
            // The leader that it followed has gone, and with it what it was to pass on.
            self.stop(server);
        }
        self.end_reading(server);
        let before = std::mem::replace(&mut self.members[server].state, MemberState::Serving);
        if before == MemberState::Down {
            self.synchronise(server);
        } else {
            self.pass_on(server);
        }
        self.commit_held();
    }

    /// Delivers the messages that a cut has held back between a server and its leader.
    pub(crate) fn pass_on(&mut self, server: usize) {
        let up = std::mem::take(&mut self.members[server].held_up);
        let down = std::mem::take(&mut self.members[server].held_down);
        for message in up {
            self.lead(server, message);
        }
        for message in down {
            self.follow(server, message);
        }
    }

    pub(super) fn could_have_quorum(&self) -> bool {
        self.members.iter().filter(|server| server.linked).count() > self.members.len() / 2
    }

    pub(crate) fn commit_held(&mut self) {
        if std::mem::take(&mut self.commits_held) && self.log_end() > 0 {
            let last = self.log_end() - 1;
            self.commit(last);
        }
    }

    /// A server stops serving: its connections end, and what it had not passed on is gone.
    pub(crate) fn stop(&mut self, server: usize) {
        let stopped = &mut self.members[server];
        stopped.state = MemberState::Down;
        stopped.held_up.clear();
        stopped.held_down.clear();
        stopped.touched.clear();
        for id in self.network.connections_to(server) {
            self.close_at_server(id, true);
        }
    }

    /// The leader falls. After a while `server` leads all the others. Proposals are kept; requests
    /// that were not proposed are gone.
    pub(crate) fn elect(&mut self, server: usize, duration: Duration) {
        self.trace_fault(|| format!("the leader falls; server {server} will lead in {duration:?}"));
        self.meets("election", |_, _| true);
        self.fall();
        self.elect_after(duration, server);
    }

    /// All servers stop serving, and can reach each other again.
    pub(super) fn fall(&mut self) {
        self.forget_isolated();
        for each in 0..self.members.len() {
            self.stop(each);
            self.members[each].linked = !self.members[each].stopped;
            self.members[each].cut += 1;
        }
    }

    /// Begins an election, which `server` wins after this time.
    pub(super) fn elect_after(&mut self, duration: Duration, server: usize) {
        self.electing = true;
        self.term += 1;
        let term = self.term;
        self.after(duration, Action::Elected { term, server });
    }

    pub(crate) fn elected(&mut self, term: u64, server: usize) {
        if term != self.term {
            return;
        }
        self.term += 1;
        self.electing = false;
        if !self.could_have_quorum() {
            return;
        }
        let server = self.winner(server);
        self.leader = server;
        // A single server elects nobody: it counts on after its last transaction.
        if self.members.len() > 1 {
            self.epoch += 1;
            self.proposals = 0;
        }
        self.syncs.clear();
        self.trace_fault(|| format!("server {server} leads"));
        if let Some(settings) = self.restart.take() {
            settings.apply(&mut self.options);
        }
        // A new leader has heard of nobody yet, and gives every session its whole timeout.
        let mut sessions = std::mem::take(&mut self.sessions);
        for record in sessions.values_mut() {
            record.timeout = record.opened_with;
            record.expires = self.expiry(record.timeout);
            record.owner = None;
        }
        self.sessions = sessions;
        for each in 0..self.members.len() {
            if self.members[each].linked {
                self.end_reading(each);
                self.members[each].state = MemberState::Serving;
            }
        }
        self.commits_held = true;
        self.commit_held();
        for each in 0..self.members.len() {
            if self.members[each].state == MemberState::Serving {
                self.synchronise(each);
            }
        }
    }

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
        self.trace_fault(|| format!("server {server} is stopped"));
        self.meets("server stopped", |_, it| it.server == server);
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
            let within = self.kernel.draw_up_to(self.options.tick / 5);
            self.elect_after(within, server);
        }
    }

    /// Starts a member that was stopped. If that makes a quorum, the members elect a leader.
    pub(crate) fn start_member(&mut self, server: usize) {
        if !self.members[server].stopped {
            return;
        }
        self.trace_fault(|| format!("server {server} is started"));
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

    /// The member that leads after an election that `wanted` would win.
    ///
    /// It is another member if `wanted` is stopped, or has missed transactions that the log no
    /// longer has.
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
}
