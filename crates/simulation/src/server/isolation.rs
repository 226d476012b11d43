//! A leader that is cut off from its followers, and still answers its own clients.
//!
//! It answers reads, pings, revalidations and syncs from its own copy, until it notices that it
//! has no quorum. What has to be committed hangs. Meanwhile the others give it up and elect one of
//! themselves, which gives every session its whole timeout.

use std::collections::BTreeMap;
use std::time::Duration;

use zookeeper_recipes_protocol::ErrorCode;

use super::action::{Action, FromLeader, ToLeader};
use super::member::{Isolated, MemberState};
use super::session::SessionRecord;
use super::state::Servers;
use super::transaction::{Body, apply};
use crate::chance::fault::Way;

impl Servers {
    /// Cuts the leader off from all its followers for a while. Only where all are together.
    pub(crate) fn isolate(&mut self, duration: Duration) {
        let together = |state| state == MemberState::Serving;
        if self.members.len() < 3 || !self.members.iter().all(|it| together(it.state)) {
            return;
        }
        let leader = self.leader;
        self.trace_fault(|| {
            format!("the leader, server {leader}, is cut off from its followers for {duration:?}")
        });
        self.meets("leader isolated", |_, it| it.server == leader);
        for server in &mut self.members {
            server.cut += 1;
            server.state = MemberState::CutOff(Way::Both);
        }
        self.members[leader].state = MemberState::Isolated;
        self.members[leader].linked = false;
        let cut = self.members[leader].cut;
        self.isolated = Some(Isolated {
            server: leader,
            cut,
            sessions: None,
            expired: Vec::new(),
            waits: false,
        });
        let tick = self.options.tick;
        let patience = tick * self.options.sync_limit;
        // The followers have heard of it last at most half a tick before the cut.
        let heard = self.kernel.draw_up_to(tick / 2);
        self.after(patience - heard, Action::FollowersGiveUp { cut });
        // It counts whole ticks.
        let noticed = self.kernel.draw_up_to(tick);
        self.after(patience + noticed, Action::StepDown { cut });
        let server = leader;
        self.after(duration, Action::EndIsolation { server, cut });
    }

    fn isolated(&mut self, cut: u64) -> Option<&mut Isolated> {
        self.isolated.as_mut().filter(|it| it.cut == cut)
    }

    /// The sessions of a server that leads, or thinks that it does.
    pub(crate) fn sessions_of(
        &mut self,
        server: usize,
    ) -> Option<&mut BTreeMap<i64, SessionRecord>> {
        match &mut self.isolated {
            Some(Isolated {
                server: isolated,
                sessions: Some(sessions),
                ..
            }) if *isolated == server => Some(sessions),
            _ if server == self.leader => Some(&mut self.sessions),
            _ => None,
        }
    }

    /// An isolated leader gets a message of its own clients.
    pub(crate) fn lead_alone(&mut self, server: usize, message: ToLeader) {
        let committed = self.committed == self.log_end();
        if let ToLeader::Write((connection, _), session, _) = &message {
            // Judged as it comes: the session may be back later.
            if self.check_session(server, server, *session) == Err(ErrorCode::SessionMoved) {
                return self.close_at_server(*connection, true);
            }
        }
        let Some(isolated) = &mut self.isolated else {
            return;
        };
        let deposed = isolated.sessions.is_some();
        match message {
            ToLeader::Revalidate(connection, greeting) => {
                let valid = self.revalidate(server, connection, server, &greeting);
                let session = valid.then_some(greeting.session_id);
                self.follow(server, FromLeader::Revalidated(connection, session));
            }
            ToLeader::Sync(origin) if !isolated.waits && (deposed || committed) => {
                self.follow(server, FromLeader::Synced(origin));
            }
            message => {
                isolated.waits |= !matches!(message, ToLeader::Sync(_));
                self.members[server].held_up.push_back(message);
            }
        }
    }

    /// An isolated leader expires what it has not heard of, which is never committed.
    pub(crate) fn expire_alone(&mut self) {
        let now = self.kernel.now;
        let Some(server) = self.isolated.as_ref().map(|it| it.server) else {
            return;
        };
        let mut expired = Vec::new();
        for (session, record) in self.sessions_of(server).into_iter().flatten() {
            if !record.closing && record.expires <= now {
                record.closing = true;
                expired.push(*session);
            }
        }
        if let Some(isolated) = &mut self.isolated {
            isolated.waits |= !expired.is_empty();
            if isolated.sessions.is_none() {
                isolated.expired.extend(expired);
            }
        }
    }

    /// The followers have heard nothing of their leader for too long, and elect another.
    pub(crate) fn followers_give_up(&mut self, cut: u64) {
        let Some(isolated) = self.isolated(cut) else {
            return;
        };
        let deposed = isolated.server;
        let tick = self.options.tick;
        let longest = tick / if self.kernel.rng.bool() { 5 } else { 1 };
        let (within, others) = (self.kernel.draw_up_to(longest), self.members.len() - 1);
        let elected = (deposed + 1 + self.kernel.rng.usize(..others)) % (others + 1);
        self.trace_fault(|| {
            format!(
                "the followers give up server {deposed}; server {elected} will lead in {within:?}"
            )
        });
        self.depose();
        for each in (0..self.members.len()).filter(|it| *it != deposed) {
            self.stop(each);
            self.members[each].cut += 1;
        }
        self.elect_after(within, elected);
    }

    /// From here on the isolated leader and the others know different things. Some proposals that
    /// were not committed may have reached the others.
    fn depose(&mut self) {
        let (committed, end) = (self.committed, self.log_end());
        let kept = self.kernel.rng.u64(committed..=end);
        let Some(isolated) = &mut self.isolated else {
            return;
        };
        isolated.waits |= committed < end;
        isolated.sessions = Some(self.sessions.clone());
        let (server, expired) = (isolated.server, std::mem::take(&mut isolated.expired));
        self.keep_open(expired);
        let truncated = self.log.split_off((kept - self.log_start) as usize);
        for transaction in &truncated {
            match transaction.body {
                Body::OpenSession => drop(self.sessions.remove(&transaction.session)),
                Body::CloseSession { .. } => self.keep_open([transaction.session]),
                _ => {}
            }
        }
        if let Some(first) = truncated.front() {
            let zxid = first.zxid;
            self.outstanding.retain(|_, (_, promised)| *promised < zxid);
            let mut tree = self.members[server].tree.clone();
            for index in committed..kept {
                let transaction = &self.log[(index - self.log_start) as usize];
                apply(&mut tree, transaction, |_, _| {});
            }
            self.tree = tree;
        }
    }

    /// An isolated leader notices that it has no quorum, and serves nobody.
    pub(crate) fn step_down(&mut self, cut: u64) {
        let Some(isolated) = self.isolated(cut) else {
            return;
        };
        let server = isolated.server;
        self.isolated = None;
        self.trace_fault(|| format!("server {server} no longer leads, and serves nobody"));
        self.stop(server);
    }

    pub(crate) fn end_isolation(&mut self, server: usize, cut: u64) {
        if self.members[server].cut != cut {
            return;
        }
        let kept = self
            .isolated(cut)
            .is_some_and(|isolated| isolated.sessions.is_none());
        if !kept {
            self.step_down(cut);
            return self.rejoin_leader(server, cut);
        }
        self.trace_fault(|| "the leader is no longer cut off from its followers".to_owned());
        let expired = self.isolated.take().map(|it| it.expired);
        for each in &mut self.members {
            each.linked = true;
            each.state = MemberState::Serving;
        }
        for session in expired.into_iter().flatten() {
            self.propose_close(session, None, true);
        }
        self.pass_on(server);
        for each in (0..self.members.len()).filter(|it| *it != server) {
            self.pass_on(each);
        }
        self.commit_held();
    }

    /// The isolated leader falls with all the others.
    pub(crate) fn forget_isolated(&mut self) {
        let isolated = self.isolated.take();
        self.keep_open(isolated.into_iter().flat_map(|it| it.expired));
    }

    /// The end of these sessions is never committed.
    fn keep_open(&mut self, sessions: impl IntoIterator<Item = i64>) {
        for session in sessions {
            if let Some(record) = self.sessions.get_mut(&session) {
                record.closing = false;
            }
        }
    }
}
