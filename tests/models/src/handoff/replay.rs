//! The replay of a run: can the model take the steps that were observed?
//!
//! A run shows the transactions, the requests with their replies, the events, and what the callers
//! were granted. It does not show when a server answered a request, or when the follower applied an
//! operation. So the replay follows all moments that the run may be at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ahash::AHashSet;
use stateright::Model;

use super::action::Action;
use super::contender::{Phase, Way};
use super::server::{Event, Operation, Zxid};
use super::setting::{Fault, HandoffModel};
use super::state::State;

/// An observation. The number is that of the contender, and a name is that of a znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    Connected(usize),
    /// The connection of a contender is broken.
    Disconnected(usize),
    Asks(usize),
    Granted(usize),
    /// A caller releases the hold, or gives the attempt up.
    Leaves(usize),
    /// A contender sends a request.
    Sent(usize, Read),
    Listed(usize, BTreeSet<String>),
    /// The reply to a read of a znode or of the directory arrives. True if it stands.
    Found(usize, bool),
    /// An event of a znode arrives. True if the znode is deleted.
    Notified(usize, String, bool),
    /// A transaction has created the znode of a contender.
    Created(usize, String),
    /// A transaction of a contender has deleted its znode.
    Deleted {
        contender: usize,
        name: String,
        marked: bool,
    },
    /// A transaction has replaced the znode of a writer by this one of a reader.
    Downgraded(usize, String),
    /// One transaction of a contender has deleted these znodes of its own.
    DeletedTogether(usize, BTreeSet<String>),
    /// An operator has deleted a znode.
    DeletedByHand(String),
    Ended(usize),
    /// The server has deleted the empty directory.
    Reaped,
    /// The directory's data names this znode as the successor.
    Named(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    List,
    /// A read of this znode, with a watch.
    Watch(String),
    /// A read of the directory's data.
    Directory,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Names(BTreeSet<String>),
    Stands(bool),
}

/// A moment that the run may be at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Moment {
    state: State,
    /// The requests of each contender without a reply, with the answers that are on their way.
    reads: Vec<VecDeque<(Read, Option<Answer>)>>,
}

#[derive(Debug)]
pub struct Replay {
    model: HandoffModel,
    /// Most of the time of a replay is the hashing of these, which are large.
    moments: AHashSet<Moment>,
    names: BTreeMap<Zxid, String>,
    is_connected: Vec<bool>,
    is_asked_for: Vec<bool>,
}

impl Replay {
    /// The beginning of a run of these contenders. None is connected.
    pub fn new(model: HandoffModel) -> Replay {
        let contenders = model.parties.len();
        let model = HandoffModel {
            rounds: u8::MAX,
            in_background: true,
            kinds: vec![Fault::GiveUp, Fault::Expire, Fault::Disconnect],
            ..model
        };
        let mut state = State::new(&model);
        for contender in &mut state.contenders {
            contender.at = None;
        }
        let reads = vec![VecDeque::new(); contenders];
        Replay {
            model,
            moments: [Moment { state, reads }].into_iter().collect(),
            names: BTreeMap::new(),
            is_connected: vec![false; contenders],
            is_asked_for: vec![false; contenders],
        }
    }

    /// How many moments the run may be at.
    pub fn moments(&self) -> usize {
        self.moments.len()
    }

    /// The ways by which this contender may have come to hold.
    pub fn ways(&self, index: usize) -> Vec<Way> {
        let may_hold_by = |way: &Way| {
            let mut moments = self.moments.iter();
            moments.any(|moment| moment.state.contenders[index].phase == Phase::Holds(*way))
        };
        Way::ALL.into_iter().filter(may_hold_by).collect()
    }

    /// Takes the next observation. False if the model cannot take it.
    pub fn take(&mut self, observed: &Observed) -> bool {
        self.let_servers_work();
        match observed {
            Observed::Connected(index) => self.is_connected[*index] = true,
            Observed::Disconnected(index) => self.is_connected[*index] = false,
            Observed::Asks(index) => self.is_asked_for[*index] = true,
            Observed::Leaves(index) => self.is_asked_for[*index] = false,
            _ => {}
        }
        let moments = std::mem::take(&mut self.moments);
        let created = moments.iter().next().map(|moment| moment.state.next_zxid());
        for mut moment in moments {
            moment.state.faults = u8::MAX;
            for contender in &mut moment.state.contenders {
                contender.rounds = u8::MAX;
            }
            let next = self.next(moment, observed);
            self.moments.extend(next);
        }
        let created_name = match observed {
            Observed::Created(_, name) | Observed::Downgraded(_, name) => Some(name),
            _ => None,
        };
        if let (Some(name), Some(zxid)) = (created_name, created) {
            // A directory that is made again takes a transaction of its own.
            let last = self.moments.iter().next();
            let zxid = last.map_or(zxid, |moment| moment.state.leader.zxid);
            self.names.insert(zxid, name.clone());
        }
        !self.moments.is_empty()
    }

    /// Adds the moments after steps that the run does not show.
    fn let_servers_work(&mut self) {
        let mut new: Vec<Moment> = self.moments.iter().cloned().collect();
        while let Some(moment) = new.pop() {
            let mut next = self.unseen(&moment);
            next.retain(|moment| self.moments.insert(moment.clone()));
            new.extend(next);
        }
    }

    fn unseen(&self, moment: &Moment) -> Vec<Moment> {
        let mut possible = Vec::new();
        self.model.actions(&moment.state, &mut possible);
        let is_unseen = |action: &Action| match action {
            Action::Apply => true,
            Action::Reconnect(index, _) => self.is_connected[*index],
            _ => false,
        };
        let unseen = possible.into_iter().filter(is_unseen);
        let mut next: Vec<Moment> = unseen
            .filter_map(|action| self.then(moment, action))
            .collect();
        for index in 0..moment.reads.len() {
            next.extend(self.answer(moment, index));
        }
        next
    }

    /// The moment after a step, if the model can take it.
    fn after(&self, moment: &Moment, action: Action) -> Option<Moment> {
        let mut possible = Vec::new();
        self.model.actions(&moment.state, &mut possible);
        if !possible.contains(&action) {
            return None;
        }
        self.then(moment, action)
    }

    /// The moment after a step that the model can take, if the step changes anything.
    fn then(&self, moment: &Moment, action: Action) -> Option<Moment> {
        let state = self.model.next_state(&moment.state, action)?;
        Some(Moment {
            state,
            reads: moment.reads.clone(),
        })
    }

    /// The moments after the server of a contender has answered its next read.
    ///
    /// The contender may not go by the answer.
    fn answer(&self, moment: &Moment, index: usize) -> Vec<Moment> {
        let Some(tree) = moment.state.tree_of(index) else {
            return Vec::new();
        };
        let mut reads = moment.reads[index].iter();
        let Some(at) = reads.position(|(_, answer)| answer.is_none()) else {
            return Vec::new();
        };
        let contender = &moment.state.contenders[index];
        let own = contender.own.map(|own| own.czxid);
        let (answer, action) = match &moment.reads[index][at].0 {
            Read::List => {
                let names = tree.znodes.iter().map(|znode| self.name(znode.czxid));
                (Answer::Names(names.collect()), Some(Action::List(index)))
            }
            Read::Directory => {
                let decides = contender.phase == Phase::AsksForSuccessor;
                let action = decides.then_some(Action::ReadDirectory(index));
                (Answer::Stands(tree.exists), action)
            }
            Read::Watch(name) => {
                let czxid = self.names.iter().find(|(_, known)| *known == name);
                let czxid = czxid.map(|(czxid, _)| *czxid);
                let stands = czxid.is_some_and(|czxid| tree.get(czxid).is_some());
                let action = match contender.phase {
                    Phase::Waits(_) if czxid == own => Some(Action::WatchOwn(index)),
                    Phase::Waits(wait) if czxid == Some(wait.on) => {
                        Some(Action::WatchPredecessor(index))
                    }
                    _ => None,
                };
                (Answer::Stands(stands), action)
            }
        };
        let gone_by = action.and_then(|action| self.after(moment, action));
        // After a break a contender lists the queue twice: to find its znode, and to look.
        let may_be_idle = contender.phase == Phase::Entered && !contender.is_unbroken;
        let mut next: Vec<Moment> = gone_by.into_iter().collect();
        if next.is_empty() || may_be_idle {
            next.push(moment.clone());
        }
        for moment in &mut next {
            moment.reads[index][at].1 = Some(answer.clone());
        }
        next
    }

    fn name(&self, czxid: Zxid) -> String {
        self.names.get(&czxid).cloned().unwrap_or_default()
    }

    fn next(&self, mut moment: Moment, observed: &Observed) -> Vec<Moment> {
        match observed {
            Observed::Connected(_) | Observed::Asks(_) => vec![moment],
            Observed::Disconnected(index) => {
                moment.reads[*index].clear();
                if moment.state.contenders[*index].at.is_some() {
                    self.model.disconnect(&mut moment.state.contenders[*index]);
                }
                vec![moment]
            }
            Observed::Sent(index, read) => {
                moment.reads[*index].push_back((read.clone(), None));
                vec![moment]
            }
            Observed::Listed(index, names) => {
                self.replied(moment, *index, &Answer::Names(names.clone()))
            }
            Observed::Found(index, stands) => {
                self.replied(moment, *index, &Answer::Stands(*stands))
            }
            Observed::Granted(index) => self.granted(moment, *index),
            Observed::Leaves(index) => self.leaves(moment, *index),
            Observed::Notified(index, name, deleted) => {
                let event = self.event_of(&moment, *index, name, *deleted);
                self.notified(moment, *index, event)
            }
            Observed::Created(index, _) => self.created(moment, *index),
            Observed::Downgraded(index, _) => {
                Vec::from_iter(self.after(&moment, Action::Downgrade(*index)))
            }
            Observed::Deleted {
                contender,
                name,
                marked,
            } => self.deleted(&moment, *contender, name, *marked),
            Observed::DeletedTogether(index, names) => {
                self.deleted_together(&moment, *index, names)
            }
            Observed::DeletedByHand(name) => self.operated(moment, name, |state, czxid| {
                HandoffModel::operator_deletes(state, czxid);
            }),
            Observed::Named(name) => self.operated(moment, name, |state, czxid| {
                state.commit(&[Operation::Name(czxid)]);
            }),
            Observed::Ended(index) => {
                self.model.expire(&mut moment.state, *index);
                vec![moment]
            }
            Observed::Reaped => Vec::from_iter(self.then(&moment, Action::Reap)),
        }
    }

    /// An operator does something to a znode, which may have gone.
    fn operated(
        &self,
        mut moment: Moment,
        name: &str,
        act: impl FnOnce(&mut State, Zxid),
    ) -> Vec<Moment> {
        if let Some((czxid, _)) = self.names.iter().find(|(_, known)| *known == name) {
            act(&mut moment.state, *czxid);
        }
        vec![moment]
    }

    /// The reply to the oldest request arrives.
    fn replied(&self, mut moment: Moment, index: usize, reply: &Answer) -> Vec<Moment> {
        let answered = moment.reads[index].pop_front();
        match answered {
            Some((_, Some(answer))) if answer == *reply => vec![moment],
            _ => Vec::new(),
        }
    }

    fn granted(&self, moment: Moment, index: usize) -> Vec<Moment> {
        match moment.state.contenders[index].phase {
            Phase::Holds(_) => vec![moment],
            _ => Vec::from_iter(self.after(&moment, Action::ComeBack(index))),
        }
    }

    fn leaves(&self, moment: Moment, index: usize) -> Vec<Moment> {
        if moment.state.contenders[index].phase == Phase::Out {
            return vec![moment];
        }
        let contender = index;
        let releases = [false, true].map(|marked| Action::Release { contender, marked });
        let ways = releases.into_iter().chain([Action::GiveUp(index)]);
        ways.filter_map(|way| self.after(&moment, way)).collect()
    }

    /// The event of a znode, as the contender takes it. `None` if it is about neither its own znode
    /// nor its predecessor.
    fn event_of(&self, moment: &Moment, index: usize, name: &str, deleted: bool) -> Option<Event> {
        let contender = &moment.state.contenders[index];
        let own = contender.own.map(|own| self.name(own.czxid));
        let on = match contender.phase {
            Phase::Waits(wait) => Some(self.name(wait.on)),
            _ => None,
        };
        match (own.as_deref(), on.as_deref()) {
            (Some(own), _) if own == name => Some(Event::Own { deleted }),
            (_, Some(on)) if on == name => Some(Event::Predecessor { deleted }),
            _ => None,
        }
    }

    /// An event arrives. It may be about a watch that the contender has no use for any more.
    fn notified(&self, moment: Moment, index: usize, event: Option<Event>) -> Vec<Moment> {
        let events = moment.state.contenders[index].events.iter().enumerate();
        let at = events.filter(|(_, queued)| Some(**queued) == event);
        let delivered = at.filter_map(|(at, _)| self.after(&moment, Action::Deliver(index, at)));
        let mut next: Vec<Moment> = delivered.collect();
        next.push(moment);
        next
    }

    fn created(&self, mut moment: Moment, index: usize) -> Vec<Moment> {
        if moment.state.contenders[index].phase != Phase::Out {
            return Vec::new();
        }
        self.model.enter(&mut moment.state, index);
        // The create may be that of an earlier attempt, which was given up.
        let mut given_up = moment.clone();
        given_up.state.contenders[index].leave_by(false);
        match self.is_asked_for[index] {
            true => vec![moment, given_up],
            false => vec![given_up],
        }
    }

    fn deleted(&self, moment: &Moment, index: usize, name: &str, marked: bool) -> Vec<Moment> {
        let leaving = moment.state.contenders[index].leaving.iter().enumerate();
        let found = leaving.filter(|(_, leaving)| {
            leaving.marked == marked && self.name(leaving.own.czxid) == name
        });
        let next = found.filter_map(|(at, _)| self.after(moment, Action::Delete(index, at)));
        next.collect()
    }

    fn deleted_together(
        &self,
        moment: &Moment,
        index: usize,
        names: &BTreeSet<String>,
    ) -> Vec<Moment> {
        let leaving = moment.state.contenders[index].leaving.iter();
        let leaving: BTreeSet<String> = leaving.map(|it| self.name(it.own.czxid)).collect();
        let next = (leaving == *names).then(|| self.after(moment, Action::DeleteTogether(index)));
        next.flatten().into_iter().collect()
    }
}
