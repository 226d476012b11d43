//! What is promised, and what is seen.

use stateright::Property;

use super::contender::{Phase, Way};
use super::server::Label;
use super::setting::{HandoffModel, Kind};
use super::state::State;

impl HandoffModel {
    /// No two contenders hold that exclude each other.
    pub const EXCLUSION: &str = "no two hold that exclude each other";
    /// A contender holds only after all before it have left.
    pub const ORDER: &str = "nobody holds before its turn";
    /// A candidate steps back for the successor.
    pub const SUCCESSOR: &str = "nobody leads past the successor";
    /// If no step is possible, no contender waits, and no znode is left.
    pub const PROGRESS: &str = "nobody waits for ever, and no znode is left";

    pub fn seen(way: Way) -> &'static str {
        match way {
            Way::List => "a contender holds by a list",
            Way::Marked => "a contender holds by a marked release",
            Way::OnlyOne => "a contender holds by the deletion of the only one before",
            Way::Alone => "a contender holds by the number of its znode",
            Way::Downgrade => "a contender holds by a downgrade",
        }
    }

    pub(super) fn promises(&self) -> Vec<Property<Self>> {
        let mut promises = vec![
            Property::always(Self::EXCLUSION, |_, state: &State| state.is_exclusive()),
            Property::always(Self::ORDER, |_, state: &State| state.is_in_order()),
            Property::always(Self::SUCCESSOR, Self::leads_no_other),
            Property::always(Self::PROGRESS, Self::progresses),
        ];
        let [list, marked, only_one, alone, downgrade] = Way::ALL.map(Self::seen);
        promises.extend([
            Property::sometimes(list, |_, state: &State| state.is_held(Way::List)),
            Property::sometimes(marked, |_, state: &State| state.is_held(Way::Marked)),
            Property::sometimes(only_one, |_, state: &State| state.is_held(Way::OnlyOne)),
            Property::sometimes(alone, |_, state: &State| state.is_held(Way::Alone)),
            Property::sometimes(downgrade, |_, state: &State| state.is_held(Way::Downgrade)),
        ]);
        promises
    }

    fn leads_no_other(&self, state: &State) -> bool {
        let contenders = state.contenders.iter().zip(&self.parties);
        let mut leaders = contenders
            .filter(|(contender, party)| contender.holds() && party.kind == Kind::Library);
        leaders.all(|(leader, _)| {
            let Some(named) = leader.passed_over else {
                return true;
            };
            state.leader.successor != Some(named) || state.leader.get(named).is_none()
        })
    }

    fn progresses(&self, state: &State) -> bool {
        let mut steps = Vec::new();
        self.steps(state, &mut steps);
        let is_over =
            |contender: &super::Contender| contender.phase == Phase::Out && contender.rounds == 0;
        !steps.is_empty()
            || (state.contenders.iter().all(is_over) && state.leader.znodes.is_empty())
    }
}

impl State {
    fn is_exclusive(&self) -> bool {
        let held = self.contenders.iter();
        let held = held.filter(|contender| contender.holds() && !contender.is_disregarded);
        let labels: Vec<Label> = held
            .map(|contender| match contender.phase {
                Phase::Replaces => Label::Read,
                _ => contender.own.map_or(Label::Read, |own| own.label),
            })
            .collect();
        let mut pairs = labels.iter().enumerate();
        pairs.all(|(at, one)| labels[at + 1..].iter().all(|other| one.shares(*other)))
    }

    fn is_in_order(&self) -> bool {
        let mut held = self.contenders.iter().filter(|contender| contender.holds());
        held.all(|contender| contender.had_turn)
    }

    fn is_held(&self, way: Way) -> bool {
        let mut contenders = self.contenders.iter();
        contenders.any(|contender| contender.phase == Phase::Holds(way))
    }
}
