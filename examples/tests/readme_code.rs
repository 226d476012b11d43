//! The README's code that is in no example.

use std::time::Duration;

use zookeeper_recipes_core::{ConnectOptions, Error, Recipe, Session};
use zookeeper_recipes_election::{LeaderElection, RunError, Term};
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};

async fn lead(
    election: &LeaderElection,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError<std::io::Error>> {
    let work = async |term: Term| write_reports(term.fencing_token().get()).await;
    election.run(shutdown, work).await // campaigns again after each loss, until shutdown
}

async fn publish(recipe: &dyn Recipe) -> Result<(), Error> {
    let hold = recipe.acquire_timeout(Duration::from_secs(60)).await?;
    let write = hold.transaction().set_data("/report", b"done"); // a znode that exists
    write.commit().await?; // the server refuses it unless the holder's znode exists
    hold.release().await
}

async fn write_reports(token: i64) -> Result<(), std::io::Error> {
    assert!(token > 0);
    std::future::pending().await
}

async fn session() -> (Simulation, Session) {
    let simulation = Simulation::new(SimulationOptions::default());
    let ensemble = simulation.ensemble("readme");
    let session = Session::open(ensemble, ConnectOptions::new()).await;
    (simulation, session.expect("a session opens"))
}

#[tokio::test]
async fn leads_until_shutdown() {
    let (_simulation, session) = session().await;
    let election = LeaderElection::new(&session, "/leader", "node-1").expect("a good path");
    let leads = async {
        let mut leader = election.watch_leader();
        let led = leader.wait_for(|state| state.leader().is_some()).await;
        assert!(led.is_ok() && election.is_leader());
    };
    let led = lead(&election, leads).await;
    assert!(led.is_ok() && !election.is_leader(), "{led:?}");
}

#[tokio::test]
async fn publishes_under_any_recipe() {
    let (simulation, session) = session().await;
    let lock = ExclusiveLock::new(&session, "/lock").expect("a good path");
    let election = LeaderElection::new(&session, "/leader", "node-1").expect("a good path");
    let refused = publish(&lock).await;
    assert!(refused.is_err(), "/report does not exist yet");

    let hold = lock.acquire().await.expect("it was released");
    let create = zookeeper_recipes_core::CreateMode::Persistent;
    let created = hold.transaction().create("/report", b"", create).commit();
    created.await.expect("it is created");
    hold.release().await.expect("it is released");

    let recipes: [&dyn Recipe; 2] = [&lock, &election];
    for recipe in recipes {
        publish(recipe).await.expect("it is published");
        let names = simulation.administrator().children(recipe.path().as_str());
        assert!(names.is_empty(), "it was released");
    }
}
