//! The service to copy starts before its servers, forwards a report once, and is ready if it can.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};

#[path = "../../examples/leader_service/service.rs"]
mod service;

const NOBODY: &str = "no leader: send the report again";

/// Short, because an instance that is cut off notices it after a third of this time.
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// Starts an instance. Returns its address, and what ends the instance when it is dropped.
async fn start(simulation: &Simulation, id: &str) -> (String, oneshot::Sender<()>) {
    let ensemble = simulation.process(id).ensemble();
    let options = ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
    let session = Session::open_in_background(ensemble, options);
    let session = session.expect("good options");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let (end, ended) = oneshot::channel();
    let shutdown = async move { drop(ended.await) };
    let instance = service::run(session, id.to_owned(), address.clone(), listener, shutdown);
    tokio::spawn(instance);
    (address, end)
}

/// The answer to a request with these first lines.
async fn answer(address: &str, head: &str) -> String {
    let mut connection = TcpStream::connect(address).await.expect("it listens");
    let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
    let headers = format!("host: localhost\r\nconnection: close\r\n{headers}content-length: 5");
    let request = format!("{line} HTTP/1.1\r\n{headers}\r\n\r\nsales");
    let sent = connection.write_all(request.as_bytes()).await;
    sent.expect("it reads");
    let mut answer = String::new();
    let read = connection.read_to_string(&mut answer).await;
    read.expect("it answers");
    answer
}

/// Asks until the answer has this status and ends with a text that contains the other part.
async fn until(address: &str, head: &str, status: u16, part: &str) {
    let begin = format!("HTTP/1.1 {status} ");
    let mut last = String::new();
    let answered = async {
        while !(last.starts_with(&begin) && last.contains(part)) {
            last = answer(address, head).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let answered = tokio::time::timeout(Duration::from_secs(30), answered).await;
    assert!(answered.is_ok(), "{head}: {last}");
}

#[tokio::test]
async fn service_that_starts_before_its_server_serves_at_once_and_leads_later() {
    let simulation = Simulation::new(SimulationOptions::default());
    simulation.faults().stop_member(0);
    let (one, _ends_one) = start(&simulation, "one").await;
    until(&one, "GET /leader", 503, "unknown").await;
    until(&one, "GET /healthz", 200, "").await;
    until(
        &one,
        "GET /ready",
        503,
        "standby, a session is being opened",
    )
    .await;
    until(&one, "POST /reports", 503, NOBODY).await;
    simulation.faults().start_member(0);
    until(&one, "GET /leader", 200, "one ").await;
    until(&one, "GET /healthz", 200, ", leads").await;
    until(&one, "GET /ready", 200, "leader, connected in session").await;

    let (two, _ends_two) = start(&simulation, "two").await;
    until(&two, "POST /reports", 200, "one has written 5 bytes").await;
    // The other instance knows an old leader. So this one does not forward the report again.
    let forwarded = answer(&two, "POST /reports\nx-forwarded-by: three\r\n").await;
    assert!(
        forwarded.starts_with("HTTP/1.1 503 ") && forwarded.ends_with(NOBODY),
        "{forwarded}"
    );
}

#[tokio::test]
async fn standby_is_ready_until_it_is_cut_off() {
    let simulation = Simulation::new(SimulationOptions::default());
    let (one, _ends_one) = start(&simulation, "one").await;
    until(&one, "GET /ready", 200, "leader, connected").await;
    let (two, _ends_two) = start(&simulation, "two").await;
    until(&two, "GET /ready", 200, "standby, connected").await;

    simulation.process("two").partition(Duration::from_secs(6));
    until(&two, "GET /ready", 503, "standby, ").await;
    // A restart would not help.
    until(&two, "GET /healthz", 200, "").await;
    until(&one, "GET /ready", 200, "leader, connected").await;
    until(&two, "GET /ready", 200, "standby, connected").await;
}
