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
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::{TestedRecipe, resize, simulated_session};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The lease lapses, and the session does not expire.
const OUTAGE: Duration = Duration::from_secs(8);
const CALLS: usize = 500;
/// More than what a session sends by itself meanwhile, and what one abandoned create costs.
const FEW: u64 = 40;

type Call = Box<dyn Fn(Session) -> BoxFuture<'static, ()>>;

/// A call whose result does not matter.
fn call<F: Future + Send + 'static>(call: impl Fn(Session) -> F + 'static) -> Call
where
    F::Output: Send,
{
    Box::new(move |session| call(session).map(drop).boxed())
}

fn calls_of(recipe: TestedRecipe) -> Vec<(String, Call)> {
    let make = move |session: &Session| {
        let weight = recipe.weights[0];
        recipe.at(session, &format!("/{}", recipe.name), weight)
    };
    let calls = [
        (
            "acquire",
            call(move |it| async move { make(&it).acquire().await }),
        ),
        (
            "acquire_timeout",
            call(move |it| async move { make(&it).acquire_timeout(TIMEOUT).await }),
        ),
        (
            "try_acquire",
            call(move |it| async move { make(&it).try_acquire().await }),
        ),
        (
            "contenders",
            call(move |it| async move { make(&it).contenders().await }),
        ),
    ];
    let named = |(name, call)| (format!("{name} of {}", recipe.name), call);
    calls.into_iter().map(named).collect()
}

fn calls_of_elections_and_groups() -> Vec<(&'static str, Call)> {
    let election = |it: Session| LeaderElection::new(&it, "/leader", "one").expect("a good path");
    let group = |it: Session| Group::new(&it, "/group").expect("a good path");
    vec![
        (
            "leader",
            call(move |it| async move { election(it).leader().await }),
        ),
        (
            "watch_leader",
            call(move |it| async move { election(it).watch_leader().changed().await }),
        ),
        (
            "members",
            call(move |it| async move { group(it).members().await }),
        ),
        (
            "watch",
            call(move |it| async move { group(it).watch().changed().await }),
        ),
        (
            "join",
            call(move |it| async move { group(it).join("one", "").await }),
        ),
        (
            "try_join",
            call(move |it| async move { group(it).try_join("one", "").await }),
        ),
    ]
}

fn calls_of_jobs() -> Vec<(&'static str, Call)> {
    let job = |it: Session| OncePerSlot::new(&it, "/job", TIMEOUT * 360).expect("a good path");
    let operator = |it: Session| AssignmentOperator::new(&it, "/queues").expect("a good path");
    vec![
        (
            "recorded",
            call(move |it| async move { job(it).recorded().await }),
        ),
        (
            "begin",
            call(move |it| async move { job(it).begin().await }),
        ),
        (
            "try_begin",
            call(move |it| async move { job(it).try_begin().await }),
        ),
        (
            "resize",
            call(move |it| async move { resize(&it, "/permits", 3).await }),
        ),
        (
            "status",
            call(move |it| async move { operator(it).status().await }),
        ),
        (
            "routing",
            call(move |it| async move { operator(it).routing().await }),
        ),
        (
            "watch_status",
            call(move |it| async move { operator(it).watch_status().await }),
        ),
    ]
}

fn requests() -> Vec<(&'static str, Call)> {
    vec![
        (
            "list",
            call(move |it| async move { server(it).await.list("/").await }),
        ),
        (
            "get",
            call(move |it| async move { server(it).await.get("/").await }),
        ),
        (
            "get_each",
            call(move |it| async move { server(it).await.get_each(&["/".into()]).await }),
        ),
        (
            "sync",
            call(move |it| async move { server(it).await.sync("/").await }),
        ),
        (
            "get_and_watch",
            call(move |it| async move { server(it).await.get_and_watch("/").await }),
        ),
        (
            "exists_and_watch",
            call(move |it| async move { server(it).await.exists_and_watch("/").await }),
        ),
        (
            "list_and_watch",
            call(move |it| async move { server(it).await.list_and_watch("/").await }),
        ),
    ]
}

async fn server(session: Session) -> Arc<dyn ServerSession> {
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
    let others = others.into_iter().flatten();
    let calls = calls.chain(others.map(|(name, call)| (name.to_owned(), call)));
    let mut many = Vec::new();
    for (name, call) in calls {
        let simulation = Simulation::new(SimulationOptions {
            session_timeout: TIMEOUT,
            ..SimulationOptions::default()
        });
        let sent = sent_after(&simulation, &call, CALLS).await;
        let children = simulation.administrator().children("/");
        assert_eq!(children, ["zookeeper"], "{name}");
        if sent > FEW {
            many.push((name, sent));
        }
    }
    assert_eq!(many, [], "each has sent so many requests");
}
