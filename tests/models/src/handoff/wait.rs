//! How a contender looks at the queue, sets its watches, and takes events.

use super::contender::{Contender, Phase, Wait, Watch, Way};
use super::queue::{Verdict, decide};
use super::server::{Event, Label, Zxid};
use super::setting::{Change, HandoffModel, Kind};
use super::state::State;

fn armed(on: Zxid) -> Option<Watch> {
    Some(Watch { on, armed: true })
}

/// A watch that has fired, and is not set again.
const ASLEEP: Option<Watch> = Some(Watch {
    on: 0,
    armed: false,
});

impl HandoffModel {
    pub(super) fn list(&self, state: &mut State, index: usize) {
        if !self.begin_read(state, index) {
            return;
        }
        let Some(tree) = state.tree_of(index) else {
            return;
        };
        let mut queue = self.queue(tree);
        let contender = &mut state.contenders[index];
        let own = contender.own.map(|own| own.czxid);
        if self.has(Change::OverlooksItsOldZnode) {
            queue.retain(|it| Some(it.czxid) == own || usize::from(it.owner) != index);
        }
        let Some(me) = queue.iter().position(|znode| Some(znode.czxid) == own) else {
            // A contender that looks too soon creates another znode.
            let is_new = contender.phase == Phase::Entered && !contender.is_unbroken;
            contender.leave();
            contender.rounds += u8::from(is_new && self.has(Change::LooksWithoutSync));
            return;
        };
        let is_library = self.parties[index].kind == Kind::Library;
        match decide(&queue[..=me]) {
            Verdict::Hold => {
                let behind = &queue[me + 1..];
                let reads = is_library
                    && queue[me].label == Label::Candidate
                    && !self.has(Change::ReadsNoDirectory);
                if reads && !behind.is_empty() {
                    contender.behind = behind.iter().map(|znode| znode.czxid).collect();
                    contender.phase = Phase::AsksForSuccessor;
                    return;
                }
                contender.is_alone = queue.len() == 1 || self.has(Change::IsAloneBesideOthers);
                contender.grant(Way::List);
            }
            Verdict::Wait(place) => {
                let place = if is_library && self.has(Change::AsksNoRule) {
                    0
                } else {
                    place
                };
                let on = &queue[place];
                let rule =
                    self.has(Change::AsksNoRule) || decide(&queue[place + 1..=me]) == Verdict::Hold;
                let only = (place, me) == (0, 1) || self.has(Change::BelievesEveryDeletion);
                let stays = match on.label {
                    Label::Lock | Label::Read => true,
                    Label::Write => self.has(Change::ForgetsReplacements),
                    Label::Candidate => self.has(Change::ReadsNoDirectory),
                };
                contender.phase = Phase::Waits(Wait {
                    on: on.czxid,
                    grants_on_mark: is_library
                        && rule
                        && (on.marks || self.has(Change::BelievesEveryWrite)),
                    stands_alone: is_library && rule && only && stays,
                });
            }
        }
    }

    /// Holds, or leaves the queue to a successor behind it.
    pub(super) fn read_directory(&self, state: &mut State, index: usize) {
        if !self.begin_read(state, index) {
            return;
        }
        let successor = state.tree_of(index).and_then(|tree| tree.successor);
        let contender = &mut state.contenders[index];
        if successor.is_some_and(|named| contender.behind.contains(&named)) {
            contender.leave_by(false);
            contender.rounds = contender.rounds.saturating_add(1);
        } else {
            contender.grant(Way::List);
        }
    }

    /// Takes the events that come before the answer to a read. False if they end the attempt.
    fn begin_read(&self, state: &mut State, index: usize) -> bool {
        let Some(zxid) = state.tree_of(index).map(|tree| tree.zxid) else {
            return false;
        };
        let contender = &mut state.contenders[index];
        for event in std::mem::take(&mut contender.events) {
            self.take(contender, event);
        }
        contender.missed = 0;
        contender.seen = zxid;
        contender.phase != Phase::Out
    }

    pub(super) fn watch_own(&self, state: &mut State, index: usize) {
        if !self.begin_read(state, index) {
            return;
        }
        let own = state.contenders[index].own.map_or(0, |own| own.czxid);
        let stands = state
            .tree_of(index)
            .is_some_and(|tree| tree.get(own).is_some());
        let contender = &mut state.contenders[index];
        match stands {
            true => {
                contender.own_watch = armed(own);
                contender.is_unbroken |= contender.watch.is_none();
            }
            false => drop(contender.leave()),
        }
    }

    pub(super) fn watch_predecessor(&self, state: &mut State, index: usize) {
        if !self.begin_read(state, index) {
            return;
        }
        let Phase::Waits(wait) = state.contenders[index].phase else {
            return;
        };
        let stands = state
            .tree_of(index)
            .is_some_and(|tree| tree.get(wait.on).is_some());
        let contender = &mut state.contenders[index];
        contender.is_unbroken = true;
        if stands {
            contender.watch = armed(wait.on);
        } else if self.has(Change::IgnoresAMissingPredecessor) {
            contender.watch = ASLEEP;
        } else if wait.stands_alone {
            self.has_its_turn(contender, Way::OnlyOne);
        } else {
            contender.phase = Phase::Looks;
        }
    }

    /// Nobody is left before the contender. It holds if its own znode certainly stands.
    fn has_its_turn(&self, contender: &mut Contender, way: Way) {
        let is_watched = contender.own_watch.is_some() || self.has(Change::WatchesNotItsOwn);
        let is_ordered = contender.is_unbroken || self.has(Change::TrustsAReconnect);
        match is_watched && is_ordered {
            true => contender.grant(way),
            false => contender.phase = Phase::Looks,
        }
    }

    /// Takes an event that is not about the predecessor.
    fn take(&self, contender: &mut Contender, event: Event) {
        match event {
            Event::Own { deleted: true } => drop(contender.leave()),
            Event::Own { deleted: false } => contender.own_watch = None,
            Event::Predecessor { .. } => contender.watch = None,
        }
    }

    pub(super) fn deliver(&self, contender: &mut Contender, index: usize, at: usize) {
        let event = contender.events.remove(at);
        contender.missed = contender.missed.saturating_sub(1);
        self.take(contender, event);
        let (Event::Predecessor { deleted }, Phase::Waits(wait)) = (event, contender.phase) else {
            return;
        };
        match (self.parties[index].kind, deleted) {
            (Kind::Latch, false) => contender.watch = ASLEEP,
            (Kind::Library, true) if wait.stands_alone => {
                self.has_its_turn(contender, Way::OnlyOne);
            }
            (Kind::Library, false) if wait.grants_on_mark => {
                self.has_its_turn(contender, Way::Marked);
            }
            (Kind::Library, false) => {}
            _ => contender.phase = Phase::Looks,
        }
    }
}
