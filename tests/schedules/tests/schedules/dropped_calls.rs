//! Calls without a connection, each dropped soon: nothing of them is sent later, and none is left.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::time::{sleep, timeout};
use zookeeper_recipes_assignment::AssignmentOperator;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{NodePath, Session};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_group::Group;
use zookeeper_recipes_lock::OncePerSlot;
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::{TestedRecipe, resize, simulated_session};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The lease lapses, and the session does not expire.
const OUTAGE: Duration = Duration::from_secs(8);
const CALLS: usize = 500;
/// More than what a session sends by itself meanwhile, and what one abandoned create costs.
const FEW: u64 = 40;

type Call = Box<dyn Fn(Session) -> BoxFuture<'static, ()>>;

/// Calls whose results do not matter, each with its name.
macro_rules! calls {
    ($($name:expr, $session:ident => $call:expr;)*) => {
        vec![$({
            let call = move |$session: Session| async move { drop($call.await) };
            ($name.to_string(), Box::new(move |it| call(it).boxed()) as Call)
        }),*]
    };
}

fn calls_of(recipe: TestedRecipe) -> Vec<(String, Call)> {
    let make = move |session: &Session| {
        let weight = recipe.weights[0];
        recipe.at(session, &format!("/{}", recipe.name), weight)
    };
    let named = |call: &str| format!("{call} of {}", recipe.name);
    calls! {
        named("acquire"), it => make(&it).acquire();
        named("acquire_timeout"), it => make(&it).acquire_timeout(TIMEOUT);
        named("try_acquire"), it => make(&it).try_acquire();
        named("contenders"), it => make(&it).contenders();
    }
}

fn calls_of_elections_and_groups() -> Vec<(String, Call)> {
    let election = |it: Session| LeaderElection::new(&it, "/leader", "one").expect("a good path");
    let group = |it: Session| Group::new(&it, "/group").expect("a good path");
    calls! {
        "leader", it => election(it).leader();
        "watch_leader", it => election(it).watch_leader().changed();
        "members", it => group(it).members();
        "watch", it => group(it).watch().changed();
        "join", it => group(it).join("one", "");
        "try_join", it => group(it).try_join("one", "");
    }
}

fn calls_of_jobs() -> Vec<(String, Call)> {
    let job = |it: Session| OncePerSlot::new(&it, "/job", TIMEOUT * 360).expect("a good path");
    let operator = |it: Session| AssignmentOperator::new(&it, "/queues").expect("a good path");
    calls! {
        "recorded", it => job(it).recorded();
        "begin", it => job(it).begin();
        "try_begin", it => job(it).try_begin();
        "resize", it => resize(&it, "/permits", 3);
        "status", it => operator(it).status();
        "routing", it => operator(it).routing();
        "watch_status", it => operator(it).watch_status();
    }
}

fn requests() -> Vec<(String, Call)> {
    calls! {
        "list", it => server(it).await.list("/");
        "list_with_stat", it => server(it).await.list_with_stat("/");
        "get", it => server(it).await.get("/");
        "get_each", it => server(it).await.get_each(&["/".into()]);
        "sync", it => server(it).await.sync("/");
        "get_and_watch", it => server(it).await.get_and_watch("/");
        "get_and_keep_watch", it => server(it).await.get_and_keep_watch("/");
        "exists_and_watch", it => server(it).await.exists_and_watch("/");
        "list_and_watch", it => server(it).await.list_and_watch("/");
    }
}

async fn server(session: Session) -> Arc<ServerSession> {
    let path = NodePath::new("/any").expect("a good path");
    session.server(&path).await.expect("a session is open")
}

/// Makes a call again and again without a connection, and drops each. Returns how many requests the
/// process sends afterwards.
async fn sent_after(simulation: &Simulation, call: &Call, calls: usize) -> u64 {
    let session = simulated_session(simulation, "one").await;
    let (id, before) = (session.id(), simulation.counters().watches());
    let process = simulation.process("one");
    process.partition(OUTAGE);
    process.disconnect();
    let sent = simulation.counters().requests_of("one");
    for _ in 0..calls {
        // Some before the lease has lapsed, and some after that.
        let _ = timeout(OUTAGE / 500, call(session.clone())).await;
    }
    session.wait_connected().await.expect("a session is open");
    sleep(TIMEOUT).await;
    assert_eq!(session.id(), id, "it has not expired");
    assert_eq!(simulation.counters().watches(), before);
    let sent = simulation.counters().requests_of("one") - sent;
    session.close().await;
    sent
}

#[tokio::test(start_paused = true)]
async fn nothing_remains_of_a_call_that_is_dropped_without_a_connection() {
    let calls = TestedRecipe::ALL.into_iter().flat_map(calls_of);
    let others = [calls_of_elections_and_groups(), calls_of_jobs(), requests()];
    let mut many = Vec::new();
    for (name, call) in calls.chain(others.into_iter().flatten()) {
        let simulation = Simulation::with(|it| it.session_timeout = TIMEOUT);
        let sent = sent_after(&simulation, &call, CALLS).await;
        let children = simulation.administrator().children("/");
        assert_eq!(children, ["zookeeper"], "{name}");
        if sent > FEW {
            many.push((name, sent));
        }
    }
    assert_eq!(many, [], "each has sent so many requests");
}
