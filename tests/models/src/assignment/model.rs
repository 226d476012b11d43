//! Which steps are possible, and what they do.

use stateright::{Model, Property};

use super::setting::{AssignmentModel, Change, Event, Grace, MOST};
use super::state::{Draft, Entry, Page, Phase, Session, Set, State};

/// One step. The first number is the worker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A worker joins the group, and the election.
    Join(usize),
    /// The server expires a session, or closes it.
    Expire(usize),
    /// A member becomes the leader.
    Elect(usize),
    /// A leader reads the znodes, and computes a plan.
    Look(usize),
    /// A leader writes the plan of another worker.
    Write(usize, usize),
    /// The grace of another worker ends, by the clock of the leader.
    EndGrace(usize, usize),
    /// A worker reads its plan.
    Read(usize),
    /// A worker has warmed for a partition, and enters the queue of its lock.
    Enter(usize, usize),
    /// A worker has the lock of a partition.
    Grant(usize, usize),
    /// A worker leaves the queue of a lock.
    Leave(usize, usize),
    /// A worker begins to end its work on a partition.
    Drain(usize, usize),
    /// A worker releases the lock of a partition.
    Release(usize, usize),
    /// A worker ends its work after the release.
    EndWork(usize, usize),
    /// A worker lists what it owns.
    List(usize),
    /// An event strikes a worker.
    Strike(Event, usize),
    /// The time ends in which a worker waits for the next contender for a partition.
    Timeout(usize, usize),
    /// An operator freezes or thaws the plan.
    Freeze,
    /// An operator drains a worker, or ends that.
    OrderDrain(usize),
    /// An operator places a partition with a worker, or ends that.
    Place(usize, Option<usize>),
    /// Any plan is written for a worker.
    Scribble(usize, Page),
}

impl AssignmentModel {
    /// The steps that happen sooner or later, if no event comes.
    pub(super) fn steps(&self, state: &State, actions: &mut Vec<Action>) {
        for (index, worker) in state.workers.iter().enumerate().take(self.workers) {
            match worker.session {
                Session::Absent if worker.runs => actions.push(Action::Join(index)),
                Session::Lapsed => actions.push(Action::Expire(index)),
                Session::Joined => {
                    if worker.leaves {
                        let is_idle = worker.phases == [Phase::Idle; MOST];
                        actions.extend(is_idle.then_some(Action::Expire(index)));
                    } else {
                        self.steps_of_a_member(state, index, actions);
                    }
                    for partition in 0..self.partitions {
                        actions.extend(self.step_of_work(state, index, partition));
                    }
                }
                Session::Absent => {}
            }
            if let Some(draft) = worker.draft {
                let leads = state.leader == Some(index);
                let pieces = draft.pieces.elements();
                let is_sent = |_: &usize| leads || draft.is_old;
                actions.extend(pieces.filter(is_sent).map(|of| Action::Write(index, of)));
            }
        }
    }

    fn steps_of_a_member(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        let worker = &state.workers[index];
        if worker.seen != state.plan[index] {
            actions.push(Action::Read(index));
        }
        if state.lists_others(index) {
            actions.push(Action::List(index));
        }
        match state.leader {
            None => actions.push(Action::Elect(index)),
            Some(leader) if leader == index => {
                let is_awake = state.is_stirred || !self.looks_by_events();
                if worker.draft.is_none() && is_awake && self.next_plan(state, index) != state.plan
                {
                    actions.push(Action::Look(index));
                }
                self.graces(state, index, actions);
            }
            Some(_) => {}
        }
    }

    fn looks_by_events(&self) -> bool {
        self.has(Change::LooksNotAtOwned) || self.has(Change::LooksNotWhenElected)
    }

    /// The graces that the leader may end.
    fn graces(&self, state: &State, leader: usize, actions: &mut Vec<Action>) {
        let timed = state.workers[leader].timed;
        let over = state.workers[leader].graces;
        let ends = |of: &usize| {
            let is_timed = timed.has(*of) || !self.has(Change::TimesOnlyWhatItSees);
            let is_planned = state.plan[*of].is_some_and(|page| page.contains(&Entry::Own));
            !state.is_member(*of) && !over.has(*of) && is_planned && is_timed
        };
        if self.grace == Grace::Ends {
            let vanished = (0..self.workers).filter(ends);
            actions.extend(vanished.map(|of| Action::EndGrace(leader, of)));
        }
    }

    /// What a worker does about a partition, by its plan as it has read it.
    fn step_of_work(&self, state: &State, index: usize, partition: usize) -> Option<Action> {
        let worker = &state.workers[index];
        let lock = state.locks[partition];
        let missing = self
            .has(Change::MissingMeansNothing)
            .then_some(Entry::Nothing);
        let entry = worker.entry(partition).or(missing);
        match worker.phases[partition] {
            Phase::Idle => {
                let acts = worker.changed.has(partition) || !self.has(Change::ActsOnChangesOnly);
                let enters = entry == Some(Entry::Own) && acts;
                enters.then_some(Action::Enter(index, partition))
            }
            Phase::Queues => {
                let leaves = entry.is_some_and(|entry| entry != Entry::Own);
                if lock.first() == Some(index) {
                    Some(Action::Grant(index, partition))
                } else {
                    (leaves && !self.has(Change::WaitsOn))
                        .then_some(Action::Leave(index, partition))
                }
            }
            Phase::Owns => {
                let waits = lock.len() < 2 && !self.has(Change::GivesAtOnce);
                let drains = match entry {
                    Some(Entry::Nothing) => true,
                    Some(Entry::Give) => !waits,
                    Some(Entry::Own) | None => false,
                };
                drains.then_some(Action::Drain(index, partition))
            }
            Phase::Drains => Some(Action::Release(index, partition)),
            Phase::DrainsReleased => Some(Action::EndWork(index, partition)),
        }
    }

    fn events(&self, state: &State, actions: &mut Vec<Action>) {
        if state.events == 0 || (self.waits && !self.is_carried_out(state)) {
            return;
        }
        for (index, worker) in state.workers.iter().enumerate().take(self.workers) {
            let is_joined = worker.session == Session::Joined && !worker.leaves;
            let leads = state.leader == Some(index);
            let may_lag = is_joined && !leads && worker.draft.is_none();
            let strikes = [
                (Event::Lapse, is_joined),
                (Event::Crash, is_joined),
                (Event::Leave, is_joined),
                (
                    Event::Return,
                    !worker.runs && worker.session == Session::Absent,
                ),
                (Event::Depose, is_joined && leads),
                (
                    Event::Lag,
                    may_lag && self.next_plan(state, index) != state.plan,
                ),
                (Event::Erase, state.plan[index].is_some()),
            ];
            let strikes = strikes
                .into_iter()
                .filter(|(event, may)| *may && self.allows(*event));
            actions.extend(strikes.map(|(event, _)| Action::Strike(event, index)));
            self.events_of_operators(state, index, actions);
        }
        if self.allows(Event::Freeze) {
            actions.push(Action::Freeze);
        }
    }

    fn events_of_operators(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        if self.allows(Event::Drain) {
            actions.push(Action::OrderDrain(index));
        }
        for partition in 0..self.partitions {
            let worker = &state.workers[index];
            let waits = worker.phases[partition] == Phase::Owns
                && worker.entry(partition) == Some(Entry::Give)
                && state.locks[partition].len() < 2;
            if waits && self.allows(Event::Timeout) {
                actions.push(Action::Timeout(index, partition));
            }
            let placed = state.orders.placed[partition].map(usize::from);
            if self.allows(Event::Place) {
                let to = Some(index).filter(|_| placed != Some(index));
                actions.push(Action::Place(partition, to));
            }
        }
        if self.allows(Event::Scribble) {
            let pages = self.all_pages().into_iter();
            let others = pages.filter(|page| Some(*page) != state.plan[index]);
            actions.extend(others.map(|page| Action::Scribble(index, page)));
        }
    }

    fn all_pages(&self) -> Vec<Page> {
        let mut pages = vec![Page::default()];
        for partition in 0..self.partitions {
            let with = |page: &Page| {
                [Entry::Nothing, Entry::Own, Entry::Give].map(|entry| {
                    let mut page = *page;
                    page[partition] = entry;
                    page
                })
            };
            pages = pages.iter().flat_map(with).collect();
        }
        pages
    }

    fn join(state: &mut State, index: usize) {
        state.workers[index].session = Session::Joined;
        state.workers[index].phases = [Phase::Idle; MOST];
        for worker in &mut state.workers {
            worker.graces.put(index, false);
            worker.timed.put(index, false);
        }
    }

    fn expire(state: &mut State, index: usize) {
        if let Some(leader) = state.leader {
            state.workers[leader].timed.put(index, true);
        }
        if state.leader == Some(index) {
            state.leader = None;
        }
        for queue in state.locks.iter_mut().chain(&mut state.listed) {
            queue.leave(index);
        }
        let worker = &mut state.workers[index];
        worker.session = Session::Absent;
        worker.leaves = false;
        worker.draft = None;
        worker.seen = None;
        worker.changed = Set::default();
    }

    /// The client ends its work, and relies on the session no more. What it has sent may arrive.
    fn lapse(&self, state: &mut State, index: usize) {
        let worker = &mut state.workers[index];
        worker.session = Session::Lapsed;
        if !self.has(Change::HasNoLease) {
            worker.phases = [Phase::Idle; MOST];
        }
        worker.graces = Set::default();
        worker.timed = Set::default();
    }

    fn look(&self, state: &State, index: usize) -> Draft {
        let plan = self.next_plan(state, index);
        let mut pieces = Set::default();
        for (of, page) in plan.iter().enumerate().take(self.workers) {
            pieces.put(of, *page != state.plan[of]);
        }
        Draft {
            plan,
            pieces,
            is_old: false,
        }
    }

    fn write(&self, state: &mut State, index: usize, of: usize) {
        let leads = state.leader == Some(index);
        let worker = &mut state.workers[index];
        let Some(mut draft) = worker.draft else {
            return;
        };
        let is_guarded = !self.has(Change::WritesUnguarded);
        if is_guarded && (draft.is_old || !leads) {
            worker.draft = None;
            return;
        }
        draft.pieces.put(of, false);
        worker.draft = Some(draft).filter(|draft| !draft.pieces.is_empty());
        state.plan[of] = draft.plan[of];
        state.has_old_plan |= draft.is_old;
        if self.most.is_some() {
            state.writes = state.writes.saturating_add(1);
        }
    }

    fn read(state: &mut State, index: usize) {
        let plan = state.plan[index];
        let worker = &mut state.workers[index];
        for (partition, entry) in plan.unwrap_or_default().into_iter().enumerate() {
            let is_new = entry == Entry::Own && worker.entry(partition) != Some(Entry::Own);
            let is_idle = worker.phases[partition] == Phase::Idle;
            worker.changed.put(partition, is_new && is_idle);
        }
        worker.seen = plan;
    }

    fn enter(&self, state: &mut State, index: usize, partition: usize) {
        state.locks[partition].enter(index);
        let worker = &mut state.workers[index];
        worker.phases[partition] = match self.has(Change::OwnsByPlan) {
            true => Phase::Owns,
            false => Phase::Queues,
        };
        worker.changed.put(partition, false);
    }

    fn release(state: &mut State, index: usize, partition: usize) {
        state.locks[partition].leave(index);
        state.has_gap |= state.locks[partition].is_empty();
        state.workers[index].phases[partition] = Phase::Idle;
    }

    fn drain(&self, state: &mut State, index: usize, partition: usize) {
        state.workers[index].phases[partition] = match self.has(Change::ReleasesBeforeItDrains) {
            true => {
                state.locks[partition].leave(index);
                Phase::DrainsReleased
            }
            false => Phase::Drains,
        };
    }

    fn depose(state: &mut State, index: usize) {
        state.leader = None;
        let worker = &mut state.workers[index];
        worker.graces = Set::default();
        worker.timed = Set::default();
        if let Some(draft) = &mut worker.draft {
            draft.is_old = true;
        }
    }

    fn strike(&self, state: &mut State, event: Event, index: usize) {
        state.struck.put(index, true);
        match event {
            Event::Lapse => self.lapse(state, index),
            Event::Crash => {
                self.lapse(state, index);
                state.workers[index].runs = false;
            }
            Event::Return => state.workers[index].runs = true,
            Event::Leave => {
                if state.leader == Some(index) {
                    Self::depose(state, index);
                }
                state.workers[index].leaves = true;
                state.workers[index].runs = false;
            }
            Event::Depose => Self::depose(state, index),
            Event::Lag => state.workers[index].draft = Some(self.look(state, index)),
            Event::Erase => state.plan[index] = None,
            Event::Timeout | Event::Freeze | Event::Drain | Event::Place | Event::Scribble => {}
        }
    }

    fn order(&self, state: &mut State, action: Action) {
        match action {
            Action::Strike(event, index) => self.strike(state, event, index),
            Action::Timeout(index, partition) => self.drain(state, index, partition),
            Action::Freeze => state.orders.frozen = !state.orders.frozen,
            Action::OrderDrain(index) => {
                let is_drained = state.orders.drained.has(index);
                state.orders.drained.put(index, !is_drained);
                state.struck.put(index, true);
            }
            Action::Place(partition, to) => {
                state.orders.placed[partition] = to.and_then(|to| u8::try_from(to).ok());
            }
            Action::Scribble(index, page) => state.plan[index] = Some(page),
            _ => return,
        }
        state.events -= 1;
        state.writes = 0;
        state.grants = 0;
    }

    /// True if a leader that looks at events only is woken.
    fn stirs(&self, action: Action) -> bool {
        match action {
            Action::List(_) => !self.has(Change::LooksNotAtOwned),
            Action::Elect(_) => !self.has(Change::LooksNotWhenElected),
            Action::Join(_)
            | Action::Expire(_)
            | Action::EndGrace(..)
            | Action::Freeze
            | Action::OrderDrain(_)
            | Action::Place(..) => true,
            _ => false,
        }
    }
}

impl Model for AssignmentModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.steps(state, actions);
        self.events(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Join(index) => Self::join(&mut state, index),
            Action::Expire(index) => Self::expire(&mut state, index),
            Action::Elect(index) => {
                state.leader = Some(index);
                // A plan that was under way belongs to the leadership before.
                let draft = &mut state.workers[index].draft;
                *draft = draft.filter(|draft| !draft.is_old);
            }
            Action::Look(index) => {
                state.workers[index].draft = Some(self.look(last, index));
                state.is_stirred = false;
            }
            Action::Write(index, of) => self.write(&mut state, index, of),
            Action::EndGrace(index, of) => state.workers[index].graces.put(of, true),
            Action::Read(index) => Self::read(&mut state, index),
            Action::Enter(index, partition) => self.enter(&mut state, index, partition),
            Action::Grant(index, partition) => {
                state.workers[index].phases[partition] = Phase::Owns;
                if self.most.is_some() {
                    state.grants = state.grants.saturating_add(1);
                }
            }
            Action::Leave(index, partition) => {
                state.locks[partition].leave(index);
                state.workers[index].phases[partition] = Phase::Idle;
            }
            Action::Drain(index, partition) => self.drain(&mut state, index, partition),
            Action::Release(index, partition) => Self::release(&mut state, index, partition),
            Action::EndWork(index, partition) => {
                state.workers[index].phases[partition] = Phase::Idle;
            }
            Action::List(index) => state.list(index),
            event => self.order(&mut state, event),
        }
        state.is_stirred |= self.stirs(action) || !self.looks_by_events();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.promises()
    }
}
