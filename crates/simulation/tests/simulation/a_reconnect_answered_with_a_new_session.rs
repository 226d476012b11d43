//! A reconnect that is answered with a new session ends the session of the client.

use crate::support::{TIMEOUT, connect, create_ephemeral, milliseconds, servers};
use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::{ConnectionState, SessionEnd, WatchEvent};
use zookeeper_recipes_simulation::{FaultRates, Simulation};

const EXPIRED: ConnectionState = ConnectionState::Ended(SessionEnd::Expired);

async fn ends_the_session(simulation: Simulation, forget: bool) {
    let session = connect(&simulation, "a").await;
    create_ephemeral(&session, "/old").await;
    let (id, watching) = (session.id, session.get_and_watch("/old").await.unwrap().2);
    if forget {
        simulation.faults().forget(id);
    }
    simulation.process("a").disconnect();
    sleep(milliseconds(100)).await;

    assert_eq!(session.state(), EXPIRED);
    assert_eq!(watching.await, WatchEvent::Unwatched);
    let sessions = simulation.administrator().sessions();
    assert!(sessions.contains(&id), "the old session lives on");
    sleep(TIMEOUT * 2).await;
    assert_eq!(simulation.administrator().sessions(), []);
}

#[tokio::test(start_paused = true)]
async fn ends_the_session_at_servers_that_forget_sessions() {
    let simulation = Simulation::with(|it| it.forgets_sessions = true);
    ends_the_session(simulation, false).await;
}

#[tokio::test(start_paused = true)]
async fn ends_the_session_once_it_is_forgotten() {
    ends_the_session(servers(2, 3), true).await;
}

#[tokio::test(start_paused = true)]
async fn comes_by_chance_to_those_that_have_expired() {
    let simulation = servers(3, 1);
    let session = connect(&simulation, "a").await;
    simulation.faults().set_rates(FaultRates {
        replaced: 1.0,
        ..Default::default()
    });
    simulation.process("a").disconnect();
    sleep(milliseconds(100)).await;
    assert_eq!(simulation.administrator().sessions(), [session.id]);
    assert!(session.connection().is_some());
    simulation.process("a").partition(TIMEOUT);
    sleep(TIMEOUT / 2).await;
    simulation.administrator().expire(session.id);
    sleep(TIMEOUT).await;
    assert_eq!(session.state(), EXPIRED);
}
