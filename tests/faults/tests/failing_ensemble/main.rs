//! Thirty contenders on each recipe, on three servers that fail one after the other and together.
//!
//! The faults come in an order that a seed decides (`FAULTS_SEED`), each once, and then on until
//! `FAULTS_SECONDS` have passed. What all the contenders say of themselves is judged meanwhile,
//! and what a store and the servers have accepted from them.

mod contender;
mod fault;
mod journal;
mod pulse;
mod settings;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use zookeeper_client::{Acls, CreateMode};
use zookeeper_recipes_core::{Session, SessionId, SessionState};
use zookeeper_recipes_suite::{
    PATIENCE, TICK, TestedRecipe, administrator, assert_directory_empty, eventually, in_time,
    number, session,
};
use zookeeper_recipes_testkit::{Ensemble, ServerOptions};

use crate::contender::{Contender, Phase};
use crate::fault::FaultInjector;
use crate::journal::Journal;
use crate::pulse::Pulse;
use crate::settings::{CONTENDERS, MEMBERS, RECIPES, SESSION_TIMEOUT, SESSIONS_OF_EACH_MEMBER};

/// A session of the contenders, with the only member that it knows, if it knows one only.
async fn open_sessions(ensemble: &Ensemble) -> Vec<(Option<usize>, Session)> {
    let all = (None, ensemble.connect_string());
    let mut sessions = Vec::new();
    for (index, member) in ensemble.members().iter().enumerate() {
        for _ in 0..SESSIONS_OF_EACH_MEMBER {
            let only = (Some(index), member.connect_string());
            for (member, connect_string) in [only, all.clone()] {
                let session = session(&connect_string, SESSION_TIMEOUT).await;
                sessions.push((member, session));
            }
        }
    }
    sessions
}

/// How many ZooKeeper sessions have been opened after the first.
fn count_reopened(session: &Session) -> tokio::task::JoinHandle<u64> {
    let mut states = session.states();
    tokio::spawn(async move {
        let mut reopened = 0;
        let mut last = None;
        while let Some(state) = states.next().await {
            if let SessionState::Connected(id) = state {
                let before = last.replace(id);
                reopened += u64::from(before.is_some_and(|before| before != id));
            }
        }
        reopened
    })
}

/// An account of each recipe, with the znode of its guarded writes.
async fn journals(ensemble: &Ensemble) -> Vec<Arc<Journal>> {
    let client = administrator(ensemble).await;
    let mut journals = Vec::new();
    for name in RECIPES {
        let recipe = TestedRecipe::named(name).expect("a recipe of that name");
        let journal = Journal::new(recipe);
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let made = client.mkdir(journal.accepted(), &options).await;
        made.expect("a znode can be created");
        journals.push(Arc::new(journal));
    }
    journals
}

/// The contenders of all recipes, each in a task of its own.
fn contenders(
    journals: &[Arc<Journal>],
    sessions: &[(Option<usize>, Session)],
    phases: &watch::Receiver<Phase>,
    rng: &mut Rng,
) -> JoinSet<()> {
    let mut contenders = JoinSet::new();
    for journal in journals {
        for (number, (member, session)) in (0..CONTENDERS).zip(sessions.iter().cycle()) {
            let name = journal.recipe().name;
            let contender = Contender {
                who: format!("{name}.{number}"),
                journal: journal.clone(),
                session: session.clone(),
                member: *member,
                phase: phases.clone(),
                rng: rng.fork(),
                past: Vec::new(),
            };
            contenders.spawn(contender.run());
        }
    }
    contenders
}

/// Takes in the guarded writes that the servers have accepted.
async fn read_accepted(ensemble: &Ensemble, journals: &[Arc<Journal>]) {
    let client = administrator(ensemble).await;
    for journal in journals {
        let accepted = client.list_children(journal.accepted()).await;
        journal.read_accepted(accepted.expect("the children can be listed"));
    }
}

fn assert_promises_are_kept(journals: &[Arc<Journal>], live: &[SessionId], lag: Duration) {
    let mut violations = Vec::new();
    for journal in journals {
        println!("{journal}");
        violations.extend(journal.judge(live, lag));
    }
    let (found, first) = (violations.len(), violations.iter().take(20));
    assert!(
        found == 0,
        "{found} violations: {:#?}",
        first.collect::<Vec<_>>()
    );
    for journal in journals {
        assert!(journal.is_telling(), "it proves too little: {journal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn promises_are_kept_and_work_continues_whatever_becomes_of_the_members() {
    let seed = number("FAULTS_SEED").unwrap_or_else(|| fastrand::u64(..));
    let lasts = Duration::from_secs(number("FAULTS_SECONDS").unwrap_or(0));
    println!("FAULTS_SEED={seed} FAULTS_SECONDS={}", lasts.as_secs());
    let mut rng = Rng::with_seed(seed);
    let options = ServerOptions::new()
        .tick_time(TICK)
        .start_timeout(2 * PATIENCE);
    let ensemble = Ensemble::start(MEMBERS, options)
        .await
        .expect("an ensemble");

    let journals = journals(&ensemble).await;
    let pulse = Pulse::start();
    let sessions = open_sessions(&ensemble).await;
    let reopened: Vec<_> = sessions
        .iter()
        .map(|(_, session)| count_reopened(session))
        .collect();
    let (phase, phases) = watch::channel(Phase::Busy);
    let mut contenders = contenders(&journals, &sessions, &phases, &mut rng);
    let began = Instant::now();
    let faults = FaultInjector {
        ensemble,
        journals: &journals,
        phase,
        rng,
        began,
    };
    let ensemble = faults.run(lasts).await;

    let all = async {
        while let Some(ended) = contenders.join_next().await {
            ended.expect("no contender panics");
        }
    };
    let all = async {
        all.await;
        println!("all have come through");
        nothing_is_left(&ensemble, &journals).await;
    };
    if timeout(PATIENCE, all).await.is_err() {
        let remains = what_remains(&ensemble, &journals, &sessions).await;
        panic!("something is left though nothing goes wrong any more\n{remains}");
    }
    read_accepted(&ensemble, &journals).await;
    let live: Vec<_> = sessions
        .iter()
        .filter_map(|(_, session)| session.id())
        .collect();
    for (_, session) in sessions {
        in_time("a session closes", session.close()).await;
    }
    let mut expired = 0;
    for count in reopened {
        expired += in_time("the states end", count).await.expect("no panic");
    }
    let lag = pulse.stop();
    println!("{expired} sessions expired; a task was at most {lag:?} late");
    assert!(expired > 0, "no session has expired, which proves nothing");
    assert_promises_are_kept(&journals, &live, lag);
}

/// Who hangs where.
async fn what_remains(
    ensemble: &Ensemble,
    journals: &[Arc<Journal>],
    sessions: &[(Option<usize>, Session)],
) -> String {
    let client = administrator(ensemble).await;
    let mut text = String::new();
    for (member, session) in sessions {
        text += &format!("session that knows {member:?}: {:?}\n", session.state());
    }
    for journal in journals {
        let directory = journal.directory();
        text += &format!("{directory}:\n");
        for child in client.list_children(&directory).await.unwrap_or_default() {
            let stat = client.check_stat(&format!("{directory}/{child}")).await;
            let owner = stat.map(|stat| stat.map(|stat| SessionId(stat.ephemeral_owner)));
            text += &format!("  {child} of {owner:?}\n");
        }
        text += &journal.unfinished();
    }
    for member in ensemble.members() {
        text += &format!(
            "watched by way of a member: {:#x?}\n",
            member.watches().await
        );
    }
    text
}

/// Waits until no contender's znode and no watch is left.
async fn nothing_is_left(ensemble: &Ensemble, journals: &[Arc<Journal>]) {
    let client = &administrator(ensemble).await;
    for journal in journals {
        assert_directory_empty(client, &journal.directory()).await;
    }
    for member in ensemble.members() {
        eventually("no watch and no contender is left", || async move {
            let watches = member.monitor().await.expect("the server answers").watches;
            let ephemerals = member.ephemerals().await.expect("the server answers");
            watches == 0 && ephemerals.is_empty()
        })
        .await;
    }
}
