//! Servers that come back without their data, on a simulated ensemble.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::{HoldState, LossReason, Queue, Session};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::simulated_session;

use crate::support::First;

const TIMEOUT: Duration = Duration::from_secs(4);
const TICK: Duration = Duration::from_millis(500);
const SOON: Duration = Duration::from_secs(1);

fn lock(session: &Session) -> Queue {
    Queue::new(session, "/lock", First).expect("a good path")
}

async fn another_session(session: &Session) -> Duration {
    let (began, before) = (Instant::now(), session.id());
    while session.id().is_none() || session.id() == before {
        sleep(Duration::from_millis(10)).await;
        assert!(began.elapsed() < TIMEOUT * 20, "{:?}", session.state());
    }
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn session_continues_in_a_new_one_if_the_servers_have_lost_their_data() {
    for seed in 0..20 {
        let servers = [1, 3][seed as usize % 2];
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers,
            session_timeout: TIMEOUT,
            tick: TICK,
            ..SimulationOptions::default()
        });
        let session = simulated_session(&simulation, "one").await;
        for _ in 0..10 {
            let hold = lock(&session).acquire().await.expect("it is free");
            hold.release().await.expect("it is held");
        }
        let hold = lock(&session).acquire().await.expect("it is free");
        simulation.faults().lose_data(SOON);
        let took = another_session(&session).await;
        assert!(
            took <= 2 * TIMEOUT + SOON + TIMEOUT,
            "seed {seed}: {took:?}"
        );
        assert_eq!(hold.state(), HoldState::Lost(LossReason::LeaseElapsed));
        let next = lock(&session).acquire().await.expect("it is free");
        assert!(next.is_held());
    }
}

/// The servers have the session again, and lose no znode of it.
#[tokio::test(start_paused = true)]
async fn session_is_kept_for_any_length_of_an_outage_without_a_quorum() {
    let simulation = Simulation::new(SimulationOptions {
        servers: 3,
        session_timeout: TIMEOUT,
        tick: TICK,
        ..SimulationOptions::default()
    });
    let session = simulated_session(&simulation, "one").await;
    let hold = lock(&session).acquire().await.expect("it is free");
    let id = session.id();
    simulation.faults().elect(1, 60 * TIMEOUT);
    sleep(59 * TIMEOUT).await;
    assert_eq!(session.id(), id);
    assert_eq!(hold.state(), HoldState::Lost(LossReason::LeaseElapsed));
    sleep(2 * TIMEOUT).await;
    assert!(session.is_connected());
    assert_eq!(session.id(), id);
}
