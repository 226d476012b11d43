//! The model and the code are held together: what the recipes do on a simulated ensemble, the model
//! of the handoff can do, too.
//!
//! The trace of a run shows the transactions, the requests with their replies, and the events. The
//! callers add what they ask for and what they are granted.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use zookeeper_recipes_models::handoff::{Observed, Replay, Way};
use zookeeper_recipes_simulation::FaultRates;

use super::observations::observations;
use super::runs::{CONTENDERS, Contended, Run, Workload};

const SEEDS: u64 = 4;

#[derive(Debug, Default)]
struct Replayed {
    /// The first observation that the model cannot take.
    refused: Option<usize>,
    /// The most moments of the run at once.
    moments: usize,
    /// The number of grants by the ways that are possible. Mostly just one is.
    grants: BTreeMap<String, usize>,
    /// The number of transactions that delete several znodes of the queue.
    joint_deletions: usize,
}

impl Replayed {
    fn new(contended: Contended, observed: &[Observed]) -> Replayed {
        let mut replay = Replay::new(contended.model());
        let mut seen = Replayed::default();
        for (at, observation) in observed.iter().enumerate() {
            if !replay.take(observation) {
                seen.refused = Some(at);
                break;
            }
            seen.moments = seen.moments.max(replay.moments());
            match observation {
                Observed::Granted(index) => {
                    *seen.grants.entry(name(&replay.ways(*index))).or_default() += 1;
                }
                Observed::DeletedTogether(..) => seen.joint_deletions += 1,
                _ => {}
            }
        }
        seen
    }

    fn add(&mut self, other: Replayed) {
        self.moments = self.moments.max(other.moments);
        self.joint_deletions += other.joint_deletions;
        for (ways, grants) in other.grants {
            *self.grants.entry(ways).or_default() += grants;
        }
    }

    /// Asserts that a contender has certainly held by each of these ways.
    fn assert_held_by(&self, ways: &[Way]) {
        for way in ways {
            assert!(
                self.grants.contains_key(&name(&[*way])),
                "no grant by {way:?}: {self:?}"
            );
        }
    }
}

fn name(ways: &[Way]) -> String {
    format!("{ways:?}")
}

/// Asserts that the model can take all observations of a run with these seeds.
fn replayed(run: &Run, seeds: Range<u64>) -> Replayed {
    let (mut all, mut steps) = (Replayed::default(), 0);
    for seed in seeds {
        let trace = run.trace(seed);
        let observed = observations(&trace);
        let replayed = Replayed::new(run.contended, &observed);
        if let Some(at) = replayed.refused {
            let before = &observed[at.saturating_sub(40)..=at];
            panic!("seed {seed}: the model cannot take the last of {before:#?}\n{trace}");
        }
        steps += observed.len();
        all.add(replayed);
    }
    println!("{run}: {steps} observations, {all:?}");
    all
}

/// A test of each row: the model can do what the code does in these runs, and a contender has certainly
/// held by each of these ways.
macro_rules! replays {
    ($($name:ident: $run:expr, [$($way:ident)*];)+) => {
        $(
            #[test]
            fn $name() {
                let seen = replayed(&$run, 0..SEEDS);
                seen.assert_held_by(&[$(Way::$way),*]);
            }
        )+
    };
}

fn come_back(contended: Contended) -> Run {
    Run::new(contended).of(Workload::ComeBack)
}

replays! {
    what_the_lock_does_the_model_can_do:
        Run::new(Contended::Lock), [List Marked OnlyOne];
    what_the_lock_does_under_faults_the_model_can_do:
        Run::new(Contended::Lock).under(faults()), [List Marked OnlyOne];
    what_the_read_write_lock_does_the_model_can_do:
        Run::new(Contended::ReadWrite), [List Marked OnlyOne];
    what_the_read_write_lock_does_under_faults_the_model_can_do:
        Run::new(Contended::ReadWrite).under(faults()), [List Marked OnlyOne];
    what_the_election_does_the_model_can_do:
        Run::new(Contended::Leadership), [List];
    what_a_lock_that_comes_back_does_the_model_can_do:
        come_back(Contended::Lock), [List Alone];
    what_a_lock_that_comes_back_does_under_faults_the_model_can_do:
        come_back(Contended::Lock).under(faults()), [List Alone];
    what_a_read_write_lock_that_comes_back_does_the_model_can_do:
        come_back(Contended::ReadWrite), [List Alone];
    what_a_candidate_that_comes_back_does_the_model_can_do:
        come_back(Contended::Leadership), [List Alone];
}

fn election_under_faults() -> Run {
    Run::new(Contended::Leadership).under(faults())
}

#[test]
fn what_the_election_does_under_faults_the_model_can_do() {
    replayed(&election_under_faults(), 0..SEEDS - 1).assert_held_by(&[Way::List]);
}

/// The last run has so many moments at once that it takes 30 times as long as each of the others.
mod at_night {
    use super::*;

    #[test]
    fn what_the_election_does_in_the_longest_run_the_model_can_do() {
        replayed(&election_under_faults(), SEEDS - 1..SEEDS);
    }
}

/// No single request is lost. The session sends 272 requests at once, and each lost one would break
/// its connection.
#[test]
fn what_a_session_that_drops_many_holds_does_the_model_can_do() {
    let breaks = FaultRates {
        disconnected: 5.0,
        ..FaultRates::default()
    };
    for rates in [FaultRates::default(), breaks] {
        let run = Run::new(Contended::Lock).of(Workload::DropAtOnce);
        let seen = replayed(&run.under(rates), 0..SEEDS);
        assert!(seen.joint_deletions > 0, "{seen:?}");
    }
}

/// The contender that deletes its znode though its caller still asks for the hold.
fn steps_back(observed: &[Observed]) -> Option<(usize, usize)> {
    let mut asks = [false; CONTENDERS];
    observed.iter().enumerate().find_map(|(at, it)| match it {
        Observed::Asks(index) => {
            asks[*index] = true;
            None
        }
        Observed::Leaves(index) => {
            asks[*index] = false;
            None
        }
        Observed::Deleted { contender, .. } => asks[*contender].then_some((at, *contender)),
        _ => None,
    })
}

#[test]
fn a_leader_past_the_successor_is_refused() {
    let election = Contended::Leadership;
    let run = Run::new(election);
    let mut runs = (0..).map(|seed| observations(&run.trace(seed)));
    let stepping_back = runs.find_map(|observed| {
        let (at, candidate) = steps_back(&observed)?;
        // Its list shows that the leader has gone. If the successor was named before that, the read
        // after the list shows the name.
        let last = |is_so: fn(&Observed) -> bool| observed[..at].iter().rposition(is_so);
        let gone = last(|it| matches!(it, Observed::Deleted { .. }));
        if gone < last(|it| matches!(it, Observed::Named(_))) {
            return None;
        }
        // Other runs may be at up to 50,000 moments, which takes ten seconds.
        let mut replay = Replay::new(election.model());
        let mut before = observed[..at].iter();
        let is_short = before.all(|it| replay.take(it) && replay.moments() < 3_000);
        is_short.then_some((at, candidate, observed))
    });
    let (at, candidate, mut observed) = stepping_back.expect("a candidate steps back");
    observed[at] = Observed::Granted(candidate);
    assert_eq!(Replayed::new(election, &observed).refused, Some(at));
}

fn faults() -> FaultRates {
    FaultRates {
        request_lost: 0.01,
        reply_lost: 0.01,
        disconnected: 0.3,
        event_late: 0.1,
        late_by: Duration::from_millis(30),
        ..FaultRates::default()
    }
}

/// The observations of a run without faults, and the place of a grant after a wait.
fn wait() -> (Vec<Observed>, usize) {
    let run = Run::new(Contended::Lock);
    let runs = (0..SEEDS).map(|seed| observations(&run.trace(seed)));
    let mut waits = runs.filter_map(|observed| {
        let is_grant = |at: &usize| {
            matches!(observed[*at], Observed::Granted(_))
                && matches!(observed[at - 1], Observed::Notified(_, _, false))
        };
        let at = (1..observed.len()).find(is_grant)?;
        Some((observed, at))
    });
    waits.next().expect("a wait that a marked release ends")
}

#[test]
fn a_grant_before_the_event_is_refused() {
    let (mut observed, at) = wait();
    observed.swap(at - 1, at);
    let refused = Replayed::new(Contended::Lock, &observed).refused;
    assert_eq!(refused, Some(at - 1));
}

/// The observations of a contender that comes back alone, and the place of its grant.
///
/// Nothing but the deletion of its last znode, its call and its create is observed just before.
fn comes_back() -> (Vec<Observed>, usize) {
    let run = Run::new(Contended::Lock).of(Workload::ComeBack);
    let mut runs = (0..SEEDS).map(|seed| observations(&run.trace(seed)));
    let found = runs.find_map(|observed| {
        let mut replay = Replay::new(Contended::Lock.model());
        let granted = (0..observed.len()).find(|at| {
            assert!(replay.take(&observed[*at]), "the run is refused");
            let is_alone = matches!(&observed[*at], Observed::Granted(index)
                if replay.ways(*index) == [Way::Alone]);
            let before = &observed[..*at];
            let is_bare = matches!(
                before,
                [
                    ..,
                    Observed::Deleted { .. },
                    Observed::Asks(_),
                    Observed::Created(..)
                ]
            );
            is_alone && is_bare
        });
        Some((observed, granted?))
    });
    found.expect("a contender comes back alone")
}

#[test]
fn a_contender_that_comes_back_past_another_one_is_refused() {
    let (mut observed, granted) = comes_back();
    let other = Observed::Created(CONTENDERS - 1, "other".to_owned());
    observed.insert(granted - 1, other);
    let refused = Replayed::new(Contended::Lock, &observed).refused;
    assert_eq!(refused, Some(granted + 1));
}

/// The observations of a session that deletes znodes together, and the place of the transaction.
fn joint_deletion() -> (Vec<Observed>, usize) {
    let run = Run::new(Contended::Lock).of(Workload::DropAtOnce);
    let mut runs = (0..SEEDS).map(|seed| observations(&run.trace(seed)));
    let is_joint = |it: &Observed| matches!(it, Observed::DeletedTogether(..));
    let found = runs.find_map(|observed| Some((observed.iter().position(is_joint)?, observed)));
    let (at, observed) = found.expect("a deletion of several znodes in one transaction");
    (observed, at)
}

#[test]
fn a_joint_deletion_of_another_znode_is_refused() {
    let (mut observed, at) = joint_deletion();
    if let Observed::DeletedTogether(_, names) = &mut observed[at] {
        names.pop_first();
        names.insert("other".to_owned());
    }
    assert_eq!(Replayed::new(Contended::Lock, &observed).refused, Some(at));
}
