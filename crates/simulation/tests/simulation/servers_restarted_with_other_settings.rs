//! Servers that are restarted with other settings give sessions other timeouts.

use crate::support::{TICK, TIMEOUT, connect, connect_alone_to, milliseconds, servers, when_ended};
use std::time::Duration;
use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::ConnectionState;
use zookeeper_recipes_simulation::ServerSettings;

fn settings(tick: Duration, most: Option<Duration>) -> ServerSettings {
    ServerSettings {
        tick,
        min_session_timeout: None,
        max_session_timeout: most,
    }
}

#[tokio::test(start_paused = true)]
async fn give_a_session_that_comes_back_less_and_its_client_ends_it() {
    let simulation = servers(1, 3);
    let session = connect(&simulation, "a").await;
    let administrator = simulation.administrator();
    assert_eq!(administrator.timeout_of(session.id), Some(TIMEOUT));
    let less = settings(TICK, Some(TIMEOUT / 2));
    simulation.faults().restart(less, milliseconds(100));
    sleep(TICK).await;
    assert_eq!(administrator.timeout_of(session.id), Some(TIMEOUT / 2));
    assert!(matches!(session.state(), ConnectionState::Ended(_)));
}

#[tokio::test(start_paused = true)]
async fn count_in_other_ticks() {
    for (tick, latest) in [(TICK / 4, TIMEOUT + TICK / 4), (TICK, TIMEOUT + TICK)] {
        let simulation = servers(2, 3);
        let session = connect_alone_to(&simulation, "a", 1).await;
        simulation.faults().restart(settings(tick, None), TICK / 2);
        sleep(TICK + milliseconds(300)).await;
        session.sync("/").await.unwrap();
        simulation.process("a").sleep(TIMEOUT * 2);
        let began = simulation.now();
        sleep(TIMEOUT * 2).await;
        let after = when_ended(&simulation, &session).unwrap() - began;
        let latest = latest + tick / 2 + milliseconds(20);
        assert!(after > TIMEOUT - milliseconds(20), "{after:?}");
        assert!(after <= latest, "tick {tick:?}: {after:?}");
    }
}
