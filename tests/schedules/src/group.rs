//! A group: who is a member by what the ensemble has committed, and who sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use zookeeper_recipes_core::{Error, HoldView, Session, SessionId};
use zookeeper_recipes_group::{Group, GroupState, Member, Membership};
use zookeeper_recipes_simulation::{Change, Committed, SimulatedProcess};

use crate::invariants::anew;
use crate::invariants::watchers::{self, Members, Watchers};
use crate::run::{Report, Variant, in_processes};
use crate::setting::Setting;
use crate::{process, trial};

const PATH: &str = "/recipe/group";

/// The names that the members share: each is wanted by more than one.
const NAMES: [&str; 3] = ["one", "two", "three"];

/// How many processes watch.
const WATCHERS: usize = 2;

/// A member: its name, its session and its data.
type Known = (String, SessionId, Vec<u8>);

/// What the judge of a run knows.
#[derive(Default)]
struct State {
    /// The members now, by name.
    members: Members,
    /// All members that there ever were, by the transactions that created them.
    ever: BTreeMap<i64, Vec<Known>>,
    /// The memberships of the processes, with what each has at present.
    memberships: Vec<(String, watch::Receiver<Option<HoldView>>)>,
    watchers: Watchers,
}

impl State {
    /// A member has come, if this created one.
    fn comes(&mut self, committed: &Committed) {
        if let Change::Created {
            path,
            ephemeral_owner: Some(session),
            data,
        } = &committed.change
        {
            let Some(name) = name_of(path) else { return };
            let known = (name.to_owned(), *session, data.clone());
            let id = (committed.zxid, *session);
            self.members.insert(name.to_owned(), id);
            self.ever.entry(committed.zxid).or_default().push(known);
        }
    }

    /// The servers have lost data, and have these members now.
    fn begin_anew(&mut self, data: &[Committed]) {
        let before = std::mem::take(&mut self.members);
        data.iter().for_each(|it| self.comes(it));
        watchers::at_loss(&mut self.watchers, &before, &self.members);
    }
}

struct Judge {
    trial: Arc<Setting>,
    state: Mutex<State>,
}

impl Judge {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what the ensemble has just committed.
    fn committed(&self, committed: &Committed) {
        self.trial.ledger.committed(committed);
        match &committed.change {
            Change::Created { path, .. } => {
                let Some(name) = name_of(path) else { return };
                self.state().comes(committed);
                let memberships = self.state().memberships.clone();
                self.look_at_name(name, committed.zxid, &memberships);
            }
            Change::Deleted { path } => {
                if let Some(name) = name_of(path) {
                    self.state().members.remove(name);
                }
            }
            Change::DataReplaced { data } => self.state().begin_anew(data),
            _ => {}
        }
    }

    /// A member of this name is there. No process is certain to be an earlier one.
    fn look_at_name(
        &self,
        name: &str,
        created: i64,
        memberships: &[(String, watch::Receiver<Option<HoldView>>)],
    ) {
        for (who, held) in memberships {
            let held = held.borrow().clone();
            let Some(hold) = held.filter(|hold| name_of(hold.node_path()) == Some(name)) else {
                continue;
            };
            if hold.fencing_token().get() != created && self.trial.ledger.is_certain(&hold) {
                let text = format!("{who} is {hold:?}, and {created:#x} is {name}, too");
                self.trial.violated("a name has one member at a time", text);
            }
        }
    }

    /// The servers have lost data, and no member has a lease from before.
    fn look_at_gone(&self) {
        let memberships = self.state().memberships.clone();
        for (who, held) in memberships {
            if let Some(hold) = held.borrow().clone() {
                let (ledger, now) = (&self.trial.ledger, self.trial.simulation.now());
                ledger.look(|state| anew::at_look(state, now, &who, &hold));
            }
        }
    }

    /// A process has joined.
    fn joined(&self, who: &str, membership: &Membership) {
        self.trial.count(|figures| figures.grants += 1);
        let mut state = self.state();
        let held = membership.holds();
        state.memberships.push((who.to_owned(), held));
    }

    /// A watcher was notified.
    fn sees(&self, who: &str, group: &GroupState) {
        self.trial.count(|figures| figures.news += 1);
        let members = match group {
            GroupState::Unknown => return,
            GroupState::Members(members) => members,
            GroupState::Refused(refusal) => {
                let text = format!("{who}: {refusal}");
                return self.trial.violated("nobody refuses a watcher", text);
            }
        };
        let mut state = self.state();
        let id = |member: &Member| (member.token.get(), member.session_id);
        let seen: Members = members
            .iter()
            .map(|member| (member.name.clone(), id(member)))
            .collect();
        let found = watchers::at_news(&mut state.watchers, who, seen);
        let never = members.iter().find(|member| !was(&state, member));
        let never = never.map(|member| format!("{who}: {member:?}"));
        drop(state);
        for (promise, text) in found {
            self.trial.violated(promise, text);
        }
        if let Some(text) = never {
            self.trial
                .violated("a watcher sees nobody that never was a member", text);
        }
    }

    /// What is wrong if exactly these are to be members, and each watcher is to know it.
    fn differs(&self, names: &BTreeSet<String>) -> Option<String> {
        let state = self.state();
        let members: BTreeSet<String> = state.members.keys().cloned().collect();
        if members != *names {
            return Some(format!("{members:?} are members, and not {names:?}"));
        }
        let mistaken = state
            .watchers
            .seen()
            .find(|(_, seen)| **seen != state.members);
        mistaken.map(|(who, seen)| format!("{who} sees {seen:?}, and not {:?}", state.members))
    }
}

fn name_of(path: &str) -> Option<&str> {
    path.strip_prefix(PATH)?.strip_prefix('/')
}

/// True if there was this member.
fn was(state: &State, member: &Member) -> bool {
    let known = state.ever.get(&member.token.get());
    let is_it = |(name, session, data): &Known| {
        (name, session, data) == (&member.name, &member.session_id, &member.data)
    };
    known.is_some_and(|known| known.iter().any(is_it))
}

/// Runs one seed.
pub(crate) fn run(seed: u64, trace_limit: usize, variant: &Variant) -> Report {
    trial::run((seed, trace_limit), variant, |trial, rng| async move {
        let judge = Arc::new(Judge {
            trial,
            state: Mutex::default(),
        });
        let observer = judge.clone();
        let trial = judge.trial.clone();
        trial
            .simulation
            .on_commit(move |committed| observer.committed(committed));
        participate(&judge, rng).await;
        // The receivers would keep tasks.
        *judge.state() = State::default();
    })
}

async fn participate(judge: &Arc<Judge>, mut rng: Rng) {
    let trial = &judge.trial;
    let names = (0..WATCHERS).map(|number| format!("w{number}"));
    let watches = async |process, rng| watch(judge, &process, rng).await;
    let watchers = in_processes(&trial.simulation, names, &mut rng, &watches);
    let names = (0..trial.schedule.processes).map(|number| format!("p{number}"));
    let belongs = async |process: SimulatedProcess, rng| belong(judge, process.name(), rng).await;
    let members = in_processes(&trial.simulation, names, &mut rng, &belongs);
    let meddling = trial.meddle(PATH, rng.fork(), || judge.look_at_gone());
    let all = async {
        let promise = "all join once things have ceased to go wrong";
        let joined = async { tokio::join!(biased; meddling, members).1 };
        let Some(joined) = trial.in_time(promise, joined).await else {
            return;
        };
        let (sessions, memberships): (Vec<_>, Vec<_>) = joined.into_iter().unzip();
        let names = memberships.iter().map(|it| it.name().to_owned()).collect();
        let promise = "each watcher sees each member, and nobody else";
        let wrong = || {
            let unsure = memberships.iter().find(|it| !it.is_joined());
            let unsure = unsure.map(|it| format!("{it:?} does not know that it is a member"));
            judge.differs(&names).or(unsure)
        };
        trial.settles(promise, trial.bound(), wrong).await;
        for membership in memberships {
            if let Err(error) = membership.leave().await {
                failed(judge, "a member that leaves", &error);
            }
        }
        let nobody = BTreeSet::new();
        let promise = "each watcher sees that all have left";
        trial
            .settles(promise, trial.bound(), || judge.differs(&nobody))
            .await;
        for session in sessions {
            session.close().await;
        }
    };
    tokio::select! {
        biased;
        () = all => {}
        _ = watchers => {}
    }
}

/// Watches who is in the group, for good; begins anew now and then while things go wrong.
async fn watch(judge: &Judge, process: &SimulatedProcess, mut rng: Rng) {
    let (trial, who) = (&judge.trial, process.name());
    let session = process::open(trial, process).await;
    let group = Group::new(&session, PATH).expect("a good path");
    loop {
        let until = Instant::now() + Duration::from_millis(rng.u64(500..=20_000));
        let is_last = until >= trial.quiet_from;
        let mut watched = group.watch();
        loop {
            let changed = watched.changed();
            let ended = match is_last {
                true => changed.await,
                false => match timeout_at(until, changed).await {
                    Ok(ended) => ended,
                    Err(_) => break,
                },
            };
            if ended.is_err() {
                let promise = "a watch continues for any length of time";
                return trial.violated(promise, who.to_owned());
            }
            let state = watched.borrow_and_update().clone();
            trial.simulation.remark(format!("{who} sees {state:?}"));
            judge.sees(who, &state);
        }
    }
}

/// Joins and leaves in one session after the other, and is a member in the end.
async fn belong(judge: &Judge, who: &str, mut rng: Rng) -> (Session, Membership) {
    let begin = |session: &Session| Group::new(session, PATH).expect("a good path");
    let round = async |group: &Group, who: &str, rng: &mut Rng| {
        join_and_leave(judge, who, group, rng).await;
    };
    let (session, group) = judge.trial.in_sessions(who, &mut rng, begin, round).await;
    let membership = stay(judge, who, &group).await;
    (session, membership)
}

/// Joins for good.
async fn stay(judge: &Judge, who: &str, group: &Group) -> Membership {
    loop {
        match group.join(who, who).await {
            Ok(membership) => {
                judge.joined(who, &membership);
                return membership;
            }
            Err(error) => failed(judge, who, &error),
        }
    }
}

async fn join_and_leave(judge: &Judge, who: &str, group: &Group, rng: &mut Rng) {
    let trial = &judge.trial;
    trial.pause(rng, 600).await;
    let name = *rng.choice(&NAMES).unwrap_or(&NAMES[0]);
    let data = format!("{who} {}", rng.u32(..));
    let patience = Duration::from_millis(rng.u64(0..=8_000));
    let joined = match rng.u8(..3) {
        0 => group.try_join(name, data).await,
        _ => match timeout(patience, group.join(name, data)).await {
            Ok(joined) => joined,
            Err(_) => return trial.count(|figures| figures.aborted += 1),
        },
    };
    let membership = match joined {
        Ok(membership) => membership,
        Err(error) => return failed(judge, who, &error),
    };
    judge.joined(who, &membership);
    trial.pause(rng, 5_000).await;
    match rng.u8(..3) {
        0 => drop(membership),
        1 => {
            // If the call is dropped half-way, the member leaves all the same.
            let patience = Duration::from_millis(rng.u64(0..=20));
            let _ = timeout(patience, membership.leave()).await;
        }
        _ => {
            if let Err(error) = membership.leave().await {
                trial.count(|figures| figures.losses += 1);
                failed(judge, who, &error);
            }
        }
    }
}

/// A call has failed: there is a reason.
fn failed(judge: &Judge, who: &str, error: &Error) {
    use zookeeper_recipes_core::Refusal::{NodeExists, Throttled};
    let has_reason = match error {
        Error::Refused { refusal, .. } => matches!(refusal, NodeExists | Throttled),
        Error::SessionOver { .. } | Error::Lost { .. } | Error::NoSession { .. } => true,
        Error::OutcomeUnknown { .. } => true,
        _ => false,
    };
    judge.trial.failed(who, error, has_reason);
}
