//! Sessions that are blocked while their clients continue.

use std::net::SocketAddr;

use tokio::sync::watch;
use zookeeper_recipes_connection::{Connecting, Host, Network};
use zookeeper_recipes_testkit::altered::{altered, passing};
use zookeeper_recipes_testkit::fake::FakeEnsemble;

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(10);

/// The environment of a process, whose tasks stand still at times. Its clients continue.
#[derive(Debug)]
struct StandingStill {
    environment: Arc<dyn Environment>,
    stands_still: watch::Receiver<bool>,
}

impl Network for StandingStill {
    fn connect(&self, host: &Host, address: SocketAddr, within: Duration) -> Connecting {
        self.environment.connect(host, address, within)
    }

    fn now(&self) -> Duration {
        self.environment.now()
    }
}

impl Environment for StandingStill {
    fn network(&self, options: &ConnectOptions) -> Result<Arc<dyn Network>, InvalidInput> {
        self.environment.network(options)
    }

    fn random(&self) -> u128 {
        self.environment.random()
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        let mut work = self.environment.task(work);
        let mut stands_still = self.stands_still.clone();
        let in_turns = async move {
            loop {
                let _ = stands_still.wait_for(|it| !it).await;
                tokio::select! {
                    biased;
                    Ok(_) = stands_still.wait_for(|it| *it) => {}
                    () = &mut work => return,
                }
            }
        };
        in_turns.boxed()
    }
}

/// The ensemble, for sessions whose tasks stand still while this is true.
fn standing_still(
    ensemble: Arc<dyn Ensemble>,
    stands_still: watch::Receiver<bool>,
) -> Arc<dyn Ensemble> {
    let facts = ensemble.facts().clone();
    let environment = facts.environment.clone();
    Arc::new(FakeEnsemble {
        facts: EnsembleFacts {
            environment: Arc::new(StandingStill {
                environment,
                stands_still,
            }),
            ..facts
        },
        ..altered(ensemble, |_, raw| passing(raw))
    })
}

/// Acquires, again where that comes to nothing because the session is over.
async fn hold(recipe: &impl Recipe) -> Hold {
    loop {
        match recipe.acquire_timeout(TIMEOUT * 6).await {
            Err(Error::SessionOver { .. }) => {}
            outcome => return outcome.expect("it is free in the end"),
        }
    }
}

/// The servers put a client into another session at every reconnect, as ClickHouse Keeper does. The
/// session is blocked meanwhile, so that it has not seen the new connection when the create is
/// answered over it.
async fn assert_holds_by_its_own_session<R: Recipe>(recipe: impl Fn(&Session) -> R) {
    for create_is_lost in [false, true] {
        for moment in 0..100 {
            let simulation = simulation!(session_timeout: TIMEOUT, forgets_sessions: true);
            let (stand_still, stands_still) = watch::channel(false);
            let ensemble = standing_still(simulation.ensemble("one"), stands_still);
            let recipe = recipe(&open(ensemble, ConnectOptions::new()).await);
            // The directory exists from then on, and the session knows that its server creates.
            take_turn(&recipe).await;
            sleep(Duration::from_millis(moment * 17)).await;
            stand_still.send_replace(true);
            tokio::spawn(async move {
                sleep(Duration::from_secs(1)).await;
                stand_still.send_replace(false);
                stand_still.closed().await;
            });
            simulation.process("one").disconnect();
            sleep(Duration::from_millis(moment)).await;
            if create_is_lost {
                inject(&simulation, FaultKind::ReplyLost, RequestKind::Create);
            }
            let hold = hold(&recipe).await;
            let standing = simulation.administrator().tree();
            let own = standing.iter().find(|znode| znode.path == hold.node_path());
            let owner = own.map(|znode| znode.stat.ephemeral_owner);
            let case = format!("moment {moment}, create lost: {create_is_lost}");
            assert_eq!(owner, Some(hold.session_id().0), "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn contender_that_another_session_owns_does_not_hold() {
    assert_holds_by_its_own_session(|session| lock(session, "/locks/a")).await;
}

#[tokio::test(start_paused = true)]
async fn single_znode_that_another_session_owns_is_not_held() {
    assert_holds_by_its_own_session(|session| single_node(session, "/lock")).await;
}
