//! A reconnect that is answered with a new session is taken over in silence.

use crate::support::{TICK, TIMEOUT, connect, create_ephemeral, milliseconds, servers};
use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::ensemble::ConnectionState;
use zookeeper_recipes_simulation::{FaultRates, Simulation, SimulationOptions};

async fn is_taken_over_in_silence(simulation: Simulation, forget: bool) {
    let session = connect(&simulation, "a").await;
    create_ephemeral(&*session, "/old").await;
    let (id, watching) = (session.id(), session.get_and_watch("/old").await.unwrap().2);
    if forget {
        simulation.faults().forget(id);
    }
    simulation.process("a").disconnect();
    sleep(milliseconds(50)).await;

    assert_eq!(session.state(), ConnectionState::Connected);
    assert_eq!(session.id(), id, "it is told of nothing");
    let sessions = simulation.administrator().sessions();
    assert_eq!((sessions.len(), sessions[0]), (2, id));
    create_ephemeral(&*session, "/new").await;
    let stat = session.get("/new").await.unwrap().1;
    assert_eq!(stat.ephemeral_owner, sessions[1].0);

    let began = Instant::now();
    watching.await;
    assert!(began.elapsed() <= TIMEOUT + TICK, "the watch was set anew");
    assert!(began.elapsed() > TIMEOUT / 2, "the old session lived on");
    assert_eq!(simulation.administrator().sessions(), [sessions[1]]);
    assert_eq!(session.list("/").await.unwrap(), ["new", "zookeeper"]);
    assert_eq!(session.state(), ConnectionState::Connected);
}

#[tokio::test(start_paused = true)]
async fn is_taken_over_in_silence_from_servers_that_forget_sessions() {
    let simulation = Simulation::new(SimulationOptions {
        forgets_sessions: true,
        ..Default::default()
    });
    is_taken_over_in_silence(simulation, false).await;
}

#[tokio::test(start_paused = true)]
async fn is_taken_over_in_silence_once() {
    is_taken_over_in_silence(servers(2, 3), true).await;
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
    sleep(milliseconds(50)).await;
    assert_eq!(simulation.administrator().sessions(), [session.id()]);
    simulation.process("a").partition(TIMEOUT);
    sleep(TIMEOUT / 2).await;
    simulation.administrator().expire(session.id());
    sleep(TIMEOUT * 2).await;
    assert_eq!(session.state(), ConnectionState::Connected);
    assert_ne!(simulation.administrator().sessions(), [session.id()]);
}
