//! Servers that are not Apache's: they close the connection at a request that they do not know, and
//! some answer a reconnect with a new session.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{Error, HoldState, Session, WaitStrategy};
use zookeeper_recipes_simulation::{Opcode, RequestKind, Simulation, SimulationOptions, TraceKind};
use zookeeper_recipes_suite::{KINDS, simulated_session};

/// Long enough to wait in earnest.
const A_MOMENT: Duration = Duration::from_millis(200);

/// The connections that a client may make because of a request that closes each of them. A client
/// that makes the request again and again makes hundreds.
const CONNECTIONS: usize = 20;

const VICTIM: &str = "victim";

/// Servers that do not know this request, with a session of the victim and one of a rival.
async fn sessions(unknown: Opcode, forgets_sessions: bool) -> (Simulation, Session, Session) {
    let simulation = Simulation::new(SimulationOptions {
        unknown: vec![unknown],
        forgets_sessions,
        trace_limit: 100_000,
        ..SimulationOptions::default()
    });
    let victim = simulated_session(&simulation, VICTIM).await;
    let rival = simulated_session(&simulation, "rival").await;
    (simulation, victim, rival)
}

/// How often the victim has connected.
fn connections(simulation: &Simulation) -> usize {
    let trace = simulation.trace();
    assert_eq!(trace.forgotten(), 0);
    let entries = trace.entries().iter();
    let of_victim = entries.filter(|it| it.process.as_deref() == Some(VICTIM));
    let connected = of_victim.filter(|it| it.kind == TraceKind::Connection);
    connected.filter(|it| it.text == "connected").count()
}

#[tokio::test(start_paused = true)]
async fn server_that_closes_at_a_removed_watch_costs_a_connection_and_no_hold() {
    for kind in KINDS {
        let (simulation, victim, rival) = sessions(Opcode::RemoveWatches, false).await;
        let hold = kind.on(&victim, "held").acquire().await;
        let hold = hold.expect("it is free");
        let first = kind.rival_on(&rival, "dropped").acquire().await;
        let waits = kind.on(&victim, "dropped");
        let dropped = timeout(A_MOMENT, waits.acquire()).await;
        assert!(dropped.is_err(), "{kind:?}: held twice");
        sleep(A_MOMENT).await;
        let again = kind.on(&victim, "again").acquire().await;
        let again = again.expect("the session lives");
        again.release().await.expect("it is released");
        assert_eq!(hold.state(), HoldState::Held, "{kind:?}");
        assert_eq!(victim.id(), Some(hold.session_id()), "{kind:?}");
        hold.release().await.expect("it is released");
        let released = first.expect("it is free").release().await;
        released.expect("it is released");
        let connections = connections(&simulation);
        assert!(connections < 5, "{kind:?}: {connections} connections");
        let removed = simulation.counters().requests(RequestKind::RemoveWatch);
        let watches = !matches!(kind.strategy(), WaitStrategy::Poll(_));
        assert_eq!(removed > 0, watches, "{kind:?}: {removed} removed");
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_closes_at_watches_set_again_costs_connections_and_no_hold() {
    let (simulation, victim, rival) = sessions(Opcode::SetWatches, false).await;
    let first = KINDS[0].on(&rival, "awaited").acquire().await;
    let waits = KINDS[0].on(&victim, "awaited");
    let waiter = tokio::spawn(async move { waits.acquire().await });
    let held = KINDS[0].on(&victim, "held").acquire().await;
    let held = held.expect("it is free");
    sleep(A_MOMENT).await;
    simulation.process(VICTIM).disconnect();
    let set_again = || simulation.counters().requests(RequestKind::SetWatches);
    while set_again() < 3 {
        sleep(A_MOMENT).await;
    }
    let released = first.expect("it is free").release().await;
    released.expect("it is released");
    let turn = waiter.await.expect("no panic").expect("it is its turn");
    assert!(held.is_held(), "{:?}", held.state());
    assert_eq!(victim.id(), Some(held.session_id()));
    turn.release().await.expect("it is released");
    let connections = connections(&simulation);
    assert!(connections < CONNECTIONS, "{connections} connections");
}

#[tokio::test(start_paused = true)]
async fn server_that_closes_at_removed_watches_and_forgets_sessions_costs_few_of_them() {
    let (simulation, victim, rival) = sessions(Opcode::RemoveWatches, true).await;
    let first = KINDS[0].on(&rival, "awaited").acquire().await;
    let waits = KINDS[0].on(&victim, "awaited");
    for _ in 0..40 {
        match waits.acquire_timeout(A_MOMENT).await {
            Err(Error::DeadlineElapsed { .. } | Error::SessionOver { .. }) => {}
            outcome => panic!("{outcome:?}"),
        }
    }
    let removed = simulation.counters().requests(RequestKind::RemoveWatch);
    // It tries again after pauses that grow.
    assert!((1..10).contains(&removed), "{removed} were removed");
    let connections = connections(&simulation);
    assert!(connections < CONNECTIONS, "{connections} connections");
    let released = first.expect("it is free").release().await;
    released.expect("it is released");
    for kind in KINDS {
        let hold = kind.on(&victim, "works").acquire().await;
        let released = hold.expect("the session lives").release().await;
        released.expect("it is released");
    }
}
