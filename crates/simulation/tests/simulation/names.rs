//! Names of servers, the addresses that they have, and name servers that are silent.

use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};

use crate::support::{comes, seconds, servers};

/// Three servers, and one name that has the addresses of all.
fn by_one_name() -> Simulation {
    Simulation::new(SimulationOptions {
        seed: 7,
        servers: 3,
        one_name: true,
        ..SimulationOptions::default()
    })
}

async fn open(simulation: &Simulation, process: &str) -> Session {
    let opened = Session::open(simulation.ensemble(process), ConnectOptions::new()).await;
    opened.expect("a session")
}

#[tokio::test(start_paused = true)]
async fn sessions_by_one_name_spread_over_its_servers() {
    let simulation = by_one_name();
    let mut of_each = [0; 3];
    let mut sessions = Vec::new();
    for process in 0..30 {
        let session = open(&simulation, &format!("p{process}")).await;
        let id = session.id().expect("it is open");
        let server = simulation.administrator().server_of(id);
        of_each[server.expect("a server")] += 1;
        sessions.push(session);
    }
    assert!(of_each.iter().all(|number| *number >= 4), "{of_each:?}");
}

#[tokio::test(start_paused = true)]
async fn session_follows_servers_that_all_move() {
    let simulation = by_one_name();
    let session = open(&simulation, "a").await;
    let id = session.id();
    for _ in 0..3 {
        for server in 0..3 {
            simulation.faults().move_member(server);
        }
        tokio::time::sleep(seconds(1)).await;
        assert!(session.is_connected());
    }
    assert_eq!(session.id(), id);
}

#[tokio::test(start_paused = true)]
async fn session_reconnects_to_known_addresses_while_the_name_servers_are_silent() {
    let simulation = by_one_name();
    let session = open(&simulation, "a").await;
    let id = session.id().expect("it is open");
    simulation.faults().silence_name_servers(seconds(60));
    for _ in 0..3 {
        simulation.faults().disconnect(id);
        tokio::time::sleep(seconds(1)).await;
        assert!(session.is_connected());
    }
}

#[tokio::test(start_paused = true)]
async fn session_is_opened_once_the_name_servers_answer() {
    let simulation = servers(7, 3);
    simulation.faults().silence_name_servers(seconds(30));
    let connector = simulation.ensemble("a").connector(&ConnectOptions::new());
    let connector = connector.expect("good options");
    assert!(!comes(seconds(29), connector.connect()).await);
    let obstacle = connector.obstacle().expect("it is known").to_string();
    assert!(obstacle.contains("was not looked up within"), "{obstacle}");
    assert!(comes(seconds(4), connector.connect()).await);
}
