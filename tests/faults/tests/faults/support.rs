//! What the tests share.

use std::collections::BTreeSet;
pub(crate) use std::sync::Arc;
pub(crate) use std::time::{Duration, Instant};

pub(crate) use futures_util::future::join_all;
pub(crate) use futures_util::stream::StreamExt;
pub(crate) use tokio::sync::watch;
use tokio::task::JoinHandle;
pub(crate) use tokio::time::timeout;
pub(crate) use zookeeper_client::Client;
pub(crate) use zookeeper_recipes_adapter::ClientEnsemble;
pub(crate) use zookeeper_recipes_core::ensemble::{
    ConnectionState, ServerSession, Watch, WatchEvent,
};
pub(crate) use zookeeper_recipes_core::{
    Acl, AuthId, ConnectOptions, CreateMode, Error, Hold, HoldState, LossReason, Permission,
    Recipe, Refusal, ServerError, Session, SessionEnd, WaitStrategy, ZookeeperEnsemble,
};
pub(crate) use zookeeper_recipes_lock::{ExclusiveLock, LockOptions};
pub(crate) use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite as suite;
pub(crate) use zookeeper_recipes_suite::{
    Address, KINDS, Kind, LATE, LONG, PATIENCE, SHORT, TICK, TestServer, administrator,
    assert_no_watch_left, children, create, eventually, in_time, on_both_servers, proxy, server,
    server_with, session,
};
pub(crate) use zookeeper_recipes_testkit::proxy::{Breakage, Direction, Fault, Operation, Proxy};
pub(crate) use zookeeper_recipes_testkit::{Ensemble, Server, ServerOptions};

/// Waits until so many contenders are in the queue, by the view of this recipe's session. A recipe
/// without a queue shows its holder only.
pub(crate) async fn queue_length(kind: Kind, recipe: &dyn Recipe, length: usize) {
    let most = if kind.recipe.queues { length } else { 1 };
    suite::queue_length(recipe, length.min(most)).await;
}

pub(crate) async fn held(recipe: Box<dyn Recipe>) -> Hold {
    let acquired = in_time("it is free", recipe.acquire()).await;
    acquired.expect("it is free")
}

pub(crate) async fn hold_all(session: &Session, scenario: &str) -> Vec<Hold> {
    let mut holds = Vec::new();
    for kind in KINDS {
        holds.push(held(kind.on(session, scenario)).await);
    }
    holds
}

/// Holds in the rival's session, and waits in the victim's.
pub(crate) async fn awaited(
    kind: Kind,
    rival: &Session,
    victim: &Session,
    scenario: &str,
) -> (Hold, Acquiring) {
    let first = held(kind.rival_on(rival, scenario)).await;
    let waiter = acquire(kind.on(victim, scenario));
    queue_length(kind, &*kind.rival_on(rival, scenario), 2).await;
    (first, waiter)
}

/// Checks that an attempt has ended with its session, for this reason.
///
/// Nobody sees a waiter without a queue begin. It may begin after the end of its session.
pub(crate) fn assert_session_over(kind: Kind, outcome: Result<Hold, Error>, expected: SessionEnd) {
    match outcome {
        Err(Error::SessionOver { reason, .. }) if reason == expected => {}
        Err(Error::NoSession { reason, .. }) if reason == expected && !kind.recipe.queues => {}
        other => panic!("{kind:?}: {other:?}"),
    }
}

pub(crate) type Acquiring = JoinHandle<Result<Hold, Error>>;

pub(crate) fn acquire(recipe: Box<dyn Recipe>) -> Acquiring {
    tokio::spawn(async move { recipe.acquire().await })
}

pub(crate) async fn acquired(what: &str, acquiring: Acquiring) -> Hold {
    in_time(what, acquiring)
        .await
        .expect("no panic")
        .unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Each kind can be acquired and released within this time, though the session may have to be
/// opened anew for that.
pub(crate) async fn works_with_each_kind(session: &Session, scenario: &str, most: Duration) {
    for &kind in KINDS {
        let acquiring = async {
            loop {
                match kind.on(session, scenario).acquire().await {
                    Err(Error::SessionOver { .. }) => {}
                    acquired => return acquired,
                }
            }
        };
        let Ok(acquired) = tokio::time::timeout(most, acquiring).await else {
            panic!("{} {scenario}: not acquired within {most:?}", kind.name);
        };
        let hold = acquired.unwrap_or_else(|error| panic!("{} {scenario}: {error}", kind.name));
        assert!(
            hold.is_held(),
            "{} {scenario}: {:?}",
            kind.name,
            hold.state()
        );
        hold.release().await.expect("it is released");
    }
}

/// A hold that is to be lost, and an attempt that waits for its end.
pub(crate) struct Succession {
    what: String,
    loss: JoinHandle<(Instant, LossReason, Arc<Hold>)>,
    grant: JoinHandle<(Instant, Hold)>,
}

/// A hold that was lost, and the next one, which came later.
pub(crate) struct Succeeded {
    pub(crate) granted_at: Instant,
    pub(crate) lost: Arc<Hold>,
    pub(crate) next: Hold,
}

impl Succession {
    /// Waits for the loss and for the grant in the runtime that this is called in.
    pub(crate) fn begin(
        what: impl Into<String>,
        hold: impl Into<Arc<Hold>>,
        next: Acquiring,
    ) -> Succession {
        let hold = hold.into();
        Succession {
            what: what.into(),
            loss: tokio::spawn(async move {
                let reason = hold.lost().await;
                (Instant::now(), reason, hold)
            }),
            grant: tokio::spawn(async move {
                let next = next.await.expect("no panic").expect("it is acquired");
                (Instant::now(), next)
            }),
        }
    }

    /// Checks that the holder learns of the loss before the next one holds.
    pub(crate) async fn in_order(self) -> Succeeded {
        let what = self.what;
        let grant = in_time(&format!("{what}: the next one"), self.grant).await;
        let (granted_at, next) = grant.expect("no panic");
        let loss = in_time(&format!("{what}: the loss"), self.loss).await;
        let (lost_at, reason, lost) = loss.expect("no panic");
        assert!(
            lost_at < granted_at,
            "{what}: the loss ({reason}) is reported {:?} after the next one holds",
            lost_at - granted_at
        );
        assert!(!lost.is_held(), "{what}: what is lost stays lost");
        assert!(next.is_held(), "{what}: {:?}", next.state());
        assert!(lost.fencing_token() < next.fencing_token(), "{what}");
        Succeeded {
            granted_at,
            lost,
            next,
        }
    }
}

/// Has each kind held in one session and waited for in another.
pub(crate) async fn held_and_awaited(
    victim: &Session,
    rival: &Session,
    scenario: &str,
) -> Vec<(Kind, Succession)> {
    let mut successions = Vec::new();
    for &kind in KINDS {
        let hold = kind.on(victim, scenario).acquire().await;
        let next = acquire(kind.rival_on(rival, scenario));
        queue_length(kind, &*kind.rival_on(rival, scenario), 2).await;
        let hold = hold.expect("it is free");
        successions.push((kind, Succession::begin(kind.name, hold, next)));
    }
    successions
}

/// How many contenders were ever created.
pub(crate) async fn creates(client: &Client, kind: Kind, scenario: &str) -> i32 {
    let stat = client
        .check_stat(&kind.directory(scenario))
        .await
        .expect("an answer")
        .expect("the directory is there");
    // The server counts creates and deletes, and shows twice the former less the children.
    (stat.cversion + stat.num_children) / 2
}

/// Waits until the waiter of this session, behind this proxy, waits for the znode of this path to
/// go.
pub(crate) async fn waits_in_earnest(
    kind: Kind,
    server: &TestServer,
    (waiter, proxy): (&Session, &Proxy),
    path: &str,
) {
    let lists = || proxy.counters().of(Operation::GetChildren).replies;
    let before = lists();
    eventually("it waits in earnest", || async {
        let watches = server.watches().await.expect("an answer");
        match kind.strategy() {
            WaitStrategy::Predecessor => {
                // The holder watches its znode too, once it has held for a while.
                let id = waiter.id().map(|id| id.0);
                let watching = watches.get(path);
                watching.is_some_and(|sessions| id.is_some_and(|id| sessions.contains(&id)))
            }
            WaitStrategy::Parent => {
                // Those on children are counted, and not listed.
                let listed: usize = watches.values().map(BTreeSet::len).sum();
                let monitor = server.monitor().await.expect("an answer");
                monitor.watches > listed as u64
            }
            _ => lists() > before + 1,
        }
    })
    .await;
}

/// Waits until no contender and no watch is left on the server.
pub(crate) async fn assert_nothing_left(
    server: &impl Address,
    client: &Client,
    kind: Kind,
    scenario: &str,
) {
    suite::assert_nothing_left_in(server, client, &kind.directory(scenario)).await;
}

pub(crate) async fn assert_no_contender_left(client: &Client, kind: Kind, scenario: &str) {
    suite::assert_directory_empty(client, &kind.directory(scenario)).await;
}
