//! Which steps are possible, and what they do.

use stateright::{Model, Property};

use super::action::{Action, Side};
use super::contender::{Contender, Own, Phase, Way};
use super::server::{LAST, Label, Operation, Znode, Zxid};
use super::setting::{Change, Fault, HandoffModel, Kind};
use super::state::State;

/// The most deletions of a contender that are under way at once.
const MAX_LEAVING: usize = 2;

impl HandoffModel {
    /// The steps that happen sooner or later, if no fault does.
    pub(super) fn steps(&self, state: &State, actions: &mut Vec<Action>) {
        if !state.pending.is_empty() {
            actions.push(Action::Apply);
        }
        for (index, contender) in state.contenders.iter().enumerate() {
            for at in 0..contender.leaving.len() {
                actions.push(Action::Delete(index, at));
            }
            if self.deletes_together(state, contender) {
                actions.push(Action::DeleteTogether(index));
            }
            match contender.at {
                Some(_) => self.steps_of(state, index, actions),
                None if contender.phase == Phase::Crashed => actions.push(Action::Bury(index)),
                None if contender.phase != Phase::Out || contender.rounds > 0 => {
                    let sides = [Side::Leader, Side::Follower].into_iter();
                    let is_new = |side: &Side| state.tree(*side).zxid >= contender.seen;
                    let reconnect = |side| Action::Reconnect(index, side);
                    actions.extend(sides.filter(is_new).map(reconnect));
                }
                None => {}
            }
            self.steps_of_a_holder(index, contender, actions);
        }
    }

    /// The steps of a contender that is connected.
    fn steps_of(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        let contender = &state.contenders[index];
        let has_answer = self.has_answer(state, index);
        match contender.phase {
            Phase::Out => {
                let leaves = contender.leaving.len();
                let may_leave = if self.in_background { 1 } else { 0 };
                // Contenders that differ by their index only enter in the order of the indices.
                let has_not_entered = |index: usize| state.contenders[index].rounds == self.rounds;
                let is_later = self.is_as_the_last(index)
                    && has_not_entered(index)
                    && has_not_entered(index - 1);
                let may_enter = contender.rounds > 0 && leaves <= may_leave && !is_later;
                actions.extend(may_enter.then_some(Action::Enter(index)));
            }
            Phase::Entered if has_answer => {
                actions.push(Action::List(index));
                let comes_back = contender.is_unbroken && self.proves_alone(index, contender);
                actions.extend(comes_back.then_some(Action::ComeBack(index)));
            }
            Phase::Looks => actions.push(Action::List(index)),
            Phase::AsksForSuccessor => actions.push(Action::ReadDirectory(index)),
            Phase::Waits(_) => {
                let is_awaited = |event| matches!(event, super::server::Event::Predecessor { .. });
                if !contender.events.iter().copied().any(is_awaited) {
                    actions.extend(self.missing_watch(index, contender));
                }
            }
            _ => {}
        }
        if matches!(contender.phase, Phase::Waits(_) | Phase::Holds(_)) {
            let first = contender.missed.max(1).min(contender.events.len());
            actions.extend((0..first).map(|at| Action::Deliver(index, at)));
        }
    }

    /// True if the server of the contender shows its znode, or was asked too soon.
    fn has_answer(&self, state: &State, index: usize) -> bool {
        let contender = &state.contenders[index];
        let (Some(own), Some(tree)) = (contender.own, state.tree_of(index)) else {
            return false;
        };
        let is_asked_too_soon = self.has(Change::LooksWithoutSync) && !contender.is_unbroken;
        tree.zxid >= own.czxid || is_asked_too_soon
    }

    fn steps_of_a_holder(&self, index: usize, contender: &Contender, actions: &mut Vec<Action>) {
        let has_room = contender.leaving.len() < MAX_LEAVING;
        match (contender.phase, contender.own) {
            (Phase::Replaces, _) => actions.push(Action::EndDowngrade(index)),
            (Phase::Holds(_), Some(own)) if has_room => {
                let marks = self.marks(index, own.label);
                actions.extend(
                    [false, true]
                        .into_iter()
                        .filter(|it| !it || marks)
                        .map(|marked| Action::Release {
                            contender: index,
                            marked,
                        }),
                );
                let at_the_end = own.number == LAST && !self.has(Change::ReplacesAtTheEnd);
                if self.downgrades && own.label == Label::Write && !at_the_end {
                    actions.push(Action::Downgrade(index));
                }
            }
            _ => {}
        }
    }

    /// The next watch that a waiter has to set.
    fn missing_watch(&self, index: usize, contender: &Contender) -> Option<Action> {
        let party = self.parties[index];
        let watches_own = party.kind == Kind::Library && !self.has(Change::WatchesNotItsOwn);
        if watches_own && contender.own_watch.is_none() {
            Some(Action::WatchOwn(index))
        } else if contender.watch.is_none() {
            Some(Action::WatchPredecessor(index))
        } else {
            None
        }
    }

    fn deletes_together(&self, state: &State, contender: &Contender) -> bool {
        let [one, other] = contender.leaving[..] else {
            return false;
        };
        let stand = [one, other]
            .iter()
            .all(|it| state.leader.get(it.own.czxid).is_some());
        !one.marked && !other.marked && (stand || self.has(Change::TakesAFailureForDone))
    }

    /// True if the number of the znode proves that nobody else is in the queue.
    fn proves_alone(&self, index: usize, contender: &Contender) -> bool {
        let (Some((number, czxid)), Some(own)) = (contender.comes_after, contender.own) else {
            return false;
        };
        let is_next =
            own.number == number + 1 || (self.has(Change::ComparesNoNumber) && own.number > number);
        let is_counted = own.number < LAST || self.has(Change::CountsOnAtTheEnd);
        let is_same = own.czxid - czxid <= number || self.has(Change::CountsNoTransactions);
        self.parties[index].kind == Kind::Library && is_next && is_counted && is_same
    }

    fn faults(&self, state: &State, actions: &mut Vec<Action>) {
        if state.faults == 0 {
            return;
        }
        for (index, contender) in state.contenders.iter().enumerate() {
            let waits = matches!(
                contender.phase,
                Phase::Entered | Phase::Looks | Phase::AsksForSuccessor | Phase::Waits(_)
            );
            let lives = contender.own.is_some() || !contender.leaving.is_empty();
            let has_room = contender.leaving.len() < MAX_LEAVING;
            let runs = contender.phase != Phase::Crashed;
            let possible = [
                (Fault::GiveUp, waits && has_room, Action::GiveUp(index)),
                (Fault::Crash, runs && lives, Action::Crash(index)),
                (Fault::Expire, runs && lives, Action::Expire(index)),
                (
                    Fault::Disconnect,
                    runs && lives && contender.at.is_some(),
                    Action::Disconnect(index),
                ),
            ];
            self.choose(possible, actions);
        }
        self.faults_of_operators(state, actions);
    }

    /// Adds the steps of the faults that are possible, and that the adversary may choose.
    fn choose(
        &self,
        faults: impl IntoIterator<Item = (Fault, bool, Action)>,
        actions: &mut Vec<Action>,
    ) {
        for (fault, is_possible, action) in faults {
            if is_possible && self.allows(fault) {
                actions.push(action);
            }
        }
    }

    fn faults_of_operators(&self, state: &State, actions: &mut Vec<Action>) {
        let leader = &state.leader;
        for znode in &leader.znodes {
            let is_open = !znode.marks || self.has(Change::EverybodyWrites);
            let is_candidate =
                znode.label == Label::Candidate && leader.successor != Some(znode.czxid);
            let possible = [
                (Fault::Delete, true, Action::OperatorDeletes(znode.czxid)),
                (Fault::Write, is_open, Action::OperatorWrites(znode.czxid)),
                (Fault::Name, is_candidate, Action::Name(znode.czxid)),
            ];
            self.choose(possible, actions);
        }
        let is_empty = leader.exists && leader.znodes.is_empty() && leader.creates > 0;
        actions.extend((is_empty && self.allows(Fault::Reap)).then_some(Action::Reap));
    }

    pub(super) fn enter(&self, state: &mut State, index: usize) {
        if !state.leader.exists {
            state.commit(&[Operation::Make]);
        }
        let party = self.parties[index];
        let label = match state.contenders[index].rounds == self.rounds {
            true => party.label,
            false => party.then,
        };
        let znode = Znode {
            czxid: state.next_zxid(),
            number: state.leader.next_number(),
            label,
            owner: u8::try_from(index).unwrap_or(u8::MAX),
            marks: self.marks(index, label),
            mzxid: state.next_zxid(),
        };
        let contender = &mut state.contenders[index];
        contender.rounds -= 1;
        contender.comes_after = contender.last_alone;
        contender.phase = Phase::Entered;
        contender.is_unbroken = contender.at.is_some();
        contender.own = Some(own(&znode));
        state.commit(&[Operation::Create(znode)]);
    }

    fn downgrade(&self, state: &mut State, index: usize) {
        let contender = &mut state.contenders[index];
        let Some(old) = contender.own else { return };
        if state.leader.get(old.czxid).is_none() {
            contender.leave();
            return;
        }
        contender.own_watch = None;
        contender.is_alone = false;
        if self.has(Change::ReplacesInTwoTransactions) {
            contender.phase = Phase::Replaces;
            state.commit(&[Operation::Delete(old.czxid)]);
            return;
        }
        let new = reader(state.next_zxid(), old.number, index);
        let contender = &mut state.contenders[index];
        contender.own = Some(own(&new));
        contender.phase = Phase::Holds(Way::Downgrade);
        if self.parties[index].kind == Kind::Curator {
            contender.leaving.push(super::contender::Leaving {
                own: old,
                marked: false,
                alone: false,
            });
            state.commit(&[Operation::Create(new)]);
        } else {
            state.commit(&[Operation::Create(new), Operation::Delete(old.czxid)]);
        }
    }

    fn end_downgrade(state: &mut State, index: usize) {
        if !state.leader.exists {
            state.commit(&[Operation::Make]);
        }
        let number = state.contenders[index].own.map_or(0, |own| own.number);
        let new = reader(state.next_zxid(), number, index);
        state.contenders[index].own = Some(own(&new));
        state.contenders[index].phase = Phase::Holds(Way::Downgrade);
        state.commit(&[Operation::Create(new)]);
    }

    fn release(&self, contender: &mut Contender, marked: bool) {
        if let (true, Some(own)) = (
            self.has(Change::IsGoneTooSoon) && contender.is_alone,
            contender.own,
        ) {
            contender.last_alone = Some((own.number, own.czxid));
        }
        contender.leave_by(marked);
    }

    fn delete(&self, state: &mut State, index: usize, at: usize) {
        let leaving = &mut state.contenders[index].leaving[at];
        if leaving.marked && self.has(Change::WritesBeforeItDeletes) {
            leaving.marked = false;
            let written = Operation::Write(leaving.own.czxid);
            state.commit(&[written]);
            return;
        }
        let leaving = state.contenders[index].leaving.remove(at);
        let own = leaving.own;
        if leaving.alone {
            state.contenders[index].last_alone = Some((own.number, own.czxid));
        }
        if state.leader.get(own.czxid).is_some() {
            let delete = Operation::Delete(own.czxid);
            match leaving.marked {
                true => state.commit(&[Operation::Write(own.czxid), delete]),
                false => state.commit(&[delete]),
            }
        }
    }

    fn delete_together(state: &mut State, index: usize) {
        let leaving = std::mem::take(&mut state.contenders[index].leaving);
        let czxids = leaving.iter().map(|leaving| leaving.own.czxid);
        // A transaction is applied as a whole or not at all.
        if czxids
            .clone()
            .all(|czxid| state.leader.get(czxid).is_some())
        {
            let deletions: Vec<Operation> = czxids.map(Operation::Delete).collect();
            for leaving in leaving.iter().filter(|leaving| leaving.alone) {
                let own = leaving.own;
                state.contenders[index].last_alone = Some((own.number, own.czxid));
            }
            state.commit(&deletions);
        }
    }

    fn end_session(state: &mut State, index: usize) {
        let owned = state.leader.znodes.iter();
        let owned = owned.filter(|znode| usize::from(znode.owner) == index);
        let deletions: Vec<Operation> = owned.map(|znode| Operation::Delete(znode.czxid)).collect();
        if !deletions.is_empty() {
            state.commit(&deletions);
        }
    }

    pub(super) fn expire(&self, state: &mut State, index: usize) {
        Self::end_session(state, index);
        let contender = &mut state.contenders[index];
        contender.leaving.clear();
        contender.last_alone = None;
        if !self.has(Change::HasNoLease) {
            contender.leave();
        }
    }

    pub(super) fn disconnect(&self, contender: &mut Contender) {
        contender.at = None;
        if self.has(Change::DropsDeletionsAtABreak) {
            contender.leaving.clear();
        }
        contender.events.clear();
        contender.missed = 0;
        contender.is_unbroken = false;
        // A watch that was to be set has no answer.
        if matches!(contender.phase, Phase::Waits(_)) && contender.watch.is_none() {
            contender.phase = Phase::Looks;
        }
    }

    fn crash(contender: &mut Contender) {
        contender.leave();
        contender.phase = Phase::Crashed;
        contender.rounds = 0;
        contender.at = None;
    }

    pub(super) fn operator_deletes(state: &mut State, czxid: Zxid) {
        for contender in &mut state.contenders {
            if contender.own.is_some_and(|own| own.czxid == czxid) {
                contender.is_disregarded |= contender.had_turn;
            }
        }
        state.commit(&[Operation::Delete(czxid)]);
    }
}

fn own(znode: &Znode) -> Own {
    Own {
        czxid: znode.czxid,
        number: znode.number,
        label: znode.label,
    }
}

/// The reader that replaces a writer of this number.
fn reader(czxid: Zxid, number: u16, index: usize) -> Znode {
    Znode {
        czxid,
        number,
        label: Label::Read,
        owner: u8::try_from(index).unwrap_or(u8::MAX),
        marks: false,
        mzxid: czxid,
    }
}

impl Model for HandoffModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.steps(state, actions);
        self.faults(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Enter(index) => self.enter(&mut state, index),
            Action::ComeBack(index) => {
                state.contenders[index].is_alone = true;
                state.contenders[index].grant(Way::Alone);
            }
            Action::List(index) => self.list(&mut state, index),
            Action::ReadDirectory(index) => self.read_directory(&mut state, index),
            Action::WatchOwn(index) => self.watch_own(&mut state, index),
            Action::WatchPredecessor(index) => self.watch_predecessor(&mut state, index),
            Action::Deliver(index, at) => self.deliver(&mut state.contenders[index], index, at),
            Action::Downgrade(index) => self.downgrade(&mut state, index),
            Action::EndDowngrade(index) => Self::end_downgrade(&mut state, index),
            Action::Release { contender, marked } => {
                self.release(&mut state.contenders[contender], marked);
            }
            Action::Delete(index, at) => self.delete(&mut state, index, at),
            Action::DeleteTogether(index) => Self::delete_together(&mut state, index),
            Action::Apply => state.apply(),
            Action::Reconnect(index, side) => state.reconnect(index, side),
            Action::Bury(index) => {
                Self::end_session(&mut state, index);
                state.contenders[index].leaving.clear();
                state.contenders[index].phase = Phase::Out;
            }
            Action::GiveUp(index) => {
                state.contenders[index].leave_by(self.has(Change::MarksGivingUp));
            }
            Action::Crash(index) => Self::crash(&mut state.contenders[index]),
            Action::Expire(index) => self.expire(&mut state, index),
            Action::Disconnect(index) => self.disconnect(&mut state.contenders[index]),
            Action::OperatorDeletes(czxid) => Self::operator_deletes(&mut state, czxid),
            Action::OperatorWrites(czxid) => state.commit(&[Operation::Write(czxid)]),
            Action::Reap => state.commit(&[Operation::Reap]),
            Action::Name(czxid) => state.commit(&[Operation::Name(czxid)]),
        }
        if action.is_a_fault() {
            state.faults -= 1;
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.promises()
    }
}
