//! The service to copy works in each order in which the service and its server start.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};

#[path = "../examples/leader_service/service.rs"]
mod service;

const PATIENCE: Duration = Duration::from_secs(30);

/// The status line and the text of a page.
async fn page(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let sent = connection.write_all(request.as_bytes()).await;
    sent.expect("it reads");
    let mut answer = String::new();
    let read = connection.read_to_string(&mut answer).await;
    read.expect("it answers");
    let (head, text) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    format!("{}: {text}", head.lines().next().unwrap_or_default())
}

async fn until_page(address: &str, path: &str, part: &str) {
    let shown = async {
        while !page(address, path).await.contains(part) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let shown = timeout(PATIENCE, shown).await;
    assert!(shown.is_ok(), "{}", page(address, path).await);
}

async fn serves_and_leads(server_starts_first: bool) {
    let simulation = Simulation::new(SimulationOptions::default());
    if !server_starts_first {
        simulation.faults().stop_member(0);
    }
    let ensemble = simulation.ensemble("service");
    let session = Session::open_in_background(ensemble, ConnectOptions::new());
    let session = session.expect("the options are good");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let (end, ended) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = ended.await;
    };
    let running = tokio::spawn(service::run(session, "one".into(), listener, shutdown));

    if !server_starts_first {
        until_page(&address, "/leader", "503 Service Unavailable: unknown").await;
        until_page(&address, "/healthz", "200 OK").await;
        simulation.faults().start_member(0);
    }
    until_page(&address, "/leader", "200 OK: one ").await;
    until_page(&address, "/healthz", ", leads").await;
    drop(end);
    let ran = timeout(PATIENCE, running).await.expect("it ends in time");
    ran.expect("no panic").expect("it ends well");
}

#[tokio::test]
async fn service_that_starts_after_its_server_leads() {
    serves_and_leads(true).await;
}

#[tokio::test]
async fn service_that_starts_before_its_server_serves_at_once_and_leads_later() {
    serves_and_leads(false).await;
}
