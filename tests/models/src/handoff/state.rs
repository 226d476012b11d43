//! What the servers and the contenders know, and what a transaction does to them.

use super::action::Side;
use super::contender::Contender;
use super::queue::{Verdict, decide, in_order, steps_back};
use super::server::{Event, Operation, Tree, Zxid};
use super::setting::HandoffModel;

/// An operation that the follower has not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    zxid: Zxid,
    operation: Operation,
    is_last: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub leader: Tree,
    pub follower: Tree,
    /// The operations that the follower has not applied, the oldest first.
    pub pending: Vec<Pending>,
    pub contenders: Vec<Contender>,
    /// How many faults the adversary has left.
    pub faults: u8,
}

impl State {
    pub(super) fn new(model: &HandoffModel) -> State {
        let side = |index| match index < model.at_the_leader {
            true => Side::Leader,
            false => Side::Follower,
        };
        let contender = |index| Contender::new(model.rounds, side(index));
        State {
            leader: Tree::new(model.first),
            follower: Tree::new(model.first),
            pending: Vec::new(),
            contenders: (0..model.parties.len()).map(contender).collect(),
            faults: model.faults,
        }
    }

    pub fn tree(&self, side: Side) -> &Tree {
        match side {
            Side::Leader => &self.leader,
            Side::Follower => &self.follower,
        }
    }

    /// The directory on the server of a contender that is connected.
    pub(super) fn tree_of(&self, index: usize) -> Option<&Tree> {
        Some(self.tree(self.contenders[index].at?))
    }

    /// The transaction that the leader commits next.
    pub(super) fn next_zxid(&self) -> Zxid {
        self.leader.zxid + 1
    }

    /// Commits a transaction at the leader.
    pub(super) fn commit(&mut self, operations: &[Operation]) {
        let zxid = self.next_zxid();
        for (index, operation) in operations.iter().enumerate() {
            self.leader.apply(zxid, *operation);
            self.notify(Side::Leader, *operation);
            self.pending.push(Pending {
                zxid,
                operation: *operation,
                is_last: index + 1 == operations.len(),
            });
        }
        self.leader.zxid = zxid;
        self.note_turns();
    }

    /// Applies the next operation at the follower.
    pub(super) fn apply(&mut self) {
        let Pending {
            zxid,
            operation,
            is_last,
        } = self.pending.remove(0);
        self.follower.apply(zxid, operation);
        if is_last {
            self.follower.zxid = zxid;
        }
        self.notify(Side::Follower, operation);
    }

    /// Sends the events of an operation to the contenders of this server.
    fn notify(&mut self, side: Side, operation: Operation) {
        let contenders = self.contenders.iter_mut();
        for contender in contenders.filter(|contender| contender.at == Some(side)) {
            let (on, deleted) = match operation {
                Operation::Write(czxid) => (czxid, false),
                Operation::Delete(czxid) => (czxid, true),
                Operation::Create(_) | Operation::Make | Operation::Reap | Operation::Name(_) => {
                    continue;
                }
            };
            let own = (&mut contender.own_watch, Event::Own { deleted });
            let predecessor = (&mut contender.watch, Event::Predecessor { deleted });
            for (watch, event) in [own, predecessor] {
                if let Some(watch) = watch.as_mut().filter(|it| it.armed && it.on == on) {
                    watch.armed = false;
                    contender.events.push(event);
                }
            }
        }
    }

    /// Notes whose turn has come at the leader.
    fn note_turns(&mut self) {
        let queue = in_order(&self.leader);
        for contender in self.contenders.iter_mut().filter(|it| !it.had_turn) {
            let own = contender.own.map(|own| own.czxid);
            let Some(me) = queue.iter().position(|znode| Some(znode.czxid) == own) else {
                continue;
            };
            if decide(&queue[..=me]) == Verdict::Hold {
                contender.had_turn = true;
                let successor = self.leader.successor;
                contender.passed_over = successor.filter(|_| steps_back(&queue, me, successor));
            }
        }
    }

    /// Restores the watches of a contender over a new connection.
    ///
    /// The server reports what has happened since the last answer that the contender had.
    pub(super) fn reconnect(&mut self, index: usize, side: Side) {
        let tree = self.tree(side).clone();
        let contender = &mut self.contenders[index];
        contender.at = Some(side);
        let seen = contender.seen;
        let event_of = |on| match tree.get(on) {
            None => Some(true),
            Some(znode) => (znode.mzxid > seen).then_some(false),
        };
        let mut events = Vec::new();
        if let Some(watch) = &mut contender.own_watch {
            let event = event_of(watch.on);
            watch.armed = event.is_none();
            events.extend(event.map(|deleted| Event::Own { deleted }));
        }
        // A watch on nothing is one that has fired before.
        if let Some(watch) = contender.watch.as_mut().filter(|watch| watch.on != 0) {
            let event = event_of(watch.on);
            watch.armed = event.is_none();
            events.extend(event.map(|deleted| Event::Predecessor { deleted }));
        }
        contender.missed = events.len();
        contender.events = events;
    }
}
