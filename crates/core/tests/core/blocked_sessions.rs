//! Sessions that are blocked while their clients continue.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::watch;
use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::{Connector, Ensemble};
use zookeeper_recipes_core::{ConnectOptions, Error, Hold, InvalidInput, Queue, Recipe, Session};
use zookeeper_recipes_lock::SingleNodeLock;
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation, SimulationOptions};

use crate::support::First;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Servers that put a client into another session at every reconnect, as ClickHouse Keeper does.
fn forgetful() -> Simulation {
    Simulation::new(SimulationOptions {
        session_timeout: TIMEOUT,
        forgets_sessions: true,
        ..SimulationOptions::default()
    })
}

/// An ensemble whose sessions the test can block, while their clients continue.
#[derive(Debug)]
struct Stalled {
    ensemble: Arc<dyn Ensemble>,
    stands_still: watch::Receiver<bool>,
}

impl Ensemble for Stalled {
    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput> {
        self.ensemble.clone().connector(options)
    }

    fn now(&self) -> Duration {
        self.ensemble.now()
    }

    fn address(&self) -> String {
        self.ensemble.address()
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        let mut stands_still = self.stands_still.clone();
        let mut work = self.ensemble.task(work);
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

/// A session, and the switch that blocks it.
async fn open(simulation: &Simulation) -> (watch::Sender<bool>, Session) {
    let (stand_still, stands_still) = watch::channel(false);
    let ensemble = Arc::new(Stalled {
        ensemble: simulation.ensemble("one"),
        stands_still,
    });
    let session = Session::open(ensemble, ConnectOptions::new()).await;
    (stand_still, session.expect("a session opens"))
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

/// The session is blocked meanwhile, so that it has not seen the new connection when the create is
/// answered over it.
async fn assert_holds_by_its_own_session<R: Recipe>(recipe: impl Fn(&Session) -> R) {
    for create_is_lost in [false, true] {
        for moment in 0..100 {
            let simulation = forgetful();
            let (stand_still, session) = open(&simulation).await;
            let recipe = recipe(&session);
            // The directory exists from then on, and the session knows that its server creates.
            hold(&recipe).await.release().await.expect("it is held");
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
                let lost = Fault::new(FaultKind::ReplyLost).on(RequestKind::Create);
                simulation.faults().inject(lost);
            }
            let hold = hold(&recipe).await;
            let standing = simulation.administrator().tree();
            let own = standing.iter().find(|znode| znode.path == hold.node_path());
            let owner = own.map(|znode| znode.stat.ephemeral_owner);
            assert_eq!(
                owner,
                Some(hold.session_id().0),
                "moment {moment}, create lost: {create_is_lost}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn contender_that_another_session_owns_does_not_hold() {
    assert_holds_by_its_own_session(|session| {
        Queue::new(session, "/locks/a", First).expect("a good path")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn single_znode_that_another_session_owns_is_not_held() {
    assert_holds_by_its_own_session(|session| {
        SingleNodeLock::new(session, "/lock").expect("a good path")
    })
    .await;
}
