//! The service to copy works in each order in which the service and its server start.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};

#[path = "../examples/leader_service/service.rs"]
mod service;

const PATIENCE: Duration = Duration::from_secs(30);

/// The status line and the text of a page.
async fn page(address: &str, path: &str) -> String {
    ask(address, &format!("GET {path}"), "").await
}

/// The status line and the text of the answer to a report with this header.
async fn report(address: &str, header: &str) -> String {
    ask(address, "POST /reports", header).await
}

async fn ask(address: &str, what: &str, header: &str) -> String {
    let mut connection = TcpStream::connect(address).await.expect("it listens");
    let headers = format!("host: localhost\r\nconnection: close\r\n{header}");
    let request = format!("{what} HTTP/1.1\r\n{headers}content-length: 5\r\n\r\nsales");
    let sent = connection.write_all(request.as_bytes()).await;
    sent.expect("it reads");
    let mut answer = String::new();
    let read = connection.read_to_string(&mut answer).await;
    read.expect("it answers");
    let (head, text) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    format!("{}: {text}", head.lines().next().unwrap_or_default())
}

async fn until_page(address: &str, path: &str, part: &str) {
    until(part, async || page(address, path).await).await;
}

async fn until(part: &str, answer: impl AsyncFn() -> String) {
    let shown = async {
        while !answer().await.contains(part) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let shown = timeout(PATIENCE, shown).await;
    assert!(shown.is_ok(), "{}", answer().await);
}

/// An instance of the service, which ends with `end`.
struct Running {
    address: String,
    end: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    async fn start(simulation: &Simulation, id: &str) -> Running {
        let ensemble = simulation.ensemble(id);
        let session = Session::open_in_background(ensemble, ConnectOptions::new());
        let session = session.expect("the options are good");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (end, ended) = oneshot::channel::<()>();
        let shutdown = async {
            let _ = ended.await;
        };
        let task = tokio::spawn(service::run(session, id.into(), listener, shutdown));
        Running { address, end, task }
    }

    async fn end(self) {
        drop(self.end);
        let ran = timeout(PATIENCE, self.task).await.expect("it ends in time");
        ran.expect("no panic").expect("it ends well");
    }
}

async fn serves_and_leads(server_starts_first: bool) {
    let simulation = Simulation::new(SimulationOptions::default());
    if !server_starts_first {
        simulation.faults().stop_member(0);
    }
    let running = Running::start(&simulation, "one").await;
    let address = &running.address;

    if !server_starts_first {
        until_page(address, "/leader", "503 Service Unavailable: unknown").await;
        until_page(address, "/healthz", "200 OK").await;
        simulation.faults().start_member(0);
    }
    until_page(address, "/leader", "200 OK: one ").await;
    until_page(address, "/healthz", ", leads").await;
    running.end().await;
}

#[tokio::test]
async fn service_that_starts_after_its_server_leads() {
    serves_and_leads(true).await;
}

#[tokio::test]
async fn service_that_starts_before_its_server_serves_at_once_and_leads_later() {
    serves_and_leads(false).await;
}

#[tokio::test]
async fn instance_that_does_not_lead_forwards_to_the_leader() {
    let simulation = Simulation::new(SimulationOptions::default());
    simulation.faults().stop_member(0);
    let one = Running::start(&simulation, "one").await;
    let nobody = "503 Service Unavailable: no leader: send the report again";
    until(nobody, async || report(&one.address, "").await).await;
    simulation.faults().start_member(0);
    let by_one = "200 OK: one has written 5 bytes with token ";
    until(by_one, async || report(&one.address, "").await).await;

    let two = Running::start(&simulation, "two").await;
    until(by_one, async || report(&two.address, "").await).await;
    // An instance does not forward what another one has forwarded to it.
    let forwarded = report(&two.address, "x-forwarded-by: three\r\n").await;
    assert!(forwarded.contains(nobody), "{forwarded}");

    one.end().await;
    let by_two = "200 OK: two has written 5 bytes with token ";
    until(by_two, async || report(&two.address, "").await).await;
    two.end().await;
}
