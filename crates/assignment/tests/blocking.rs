//! Work that blocks its thread, on a server over TCP and in real time.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use zookeeper_recipes_assignment::{
    Assignment, AssignmentOperator, Error, Partition, Partitions, Routing, Session,
};
use zookeeper_recipes_simulation::EmbeddedServer;

const PATH: &str = "/app/queues";
const LONG: Duration = Duration::from_secs(60);

/// A gate that stops the threads that come to it, until it is dropped.
struct Gate(Arc<Closed>);

/// True once the gate is open.
#[derive(Default)]
struct Closed(Mutex<bool>, Condvar);

impl Closed {
    fn pass(&self) {
        let is_open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.1.wait_while(is_open, |is_open| !*is_open));
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

struct Running {
    shutdown: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Error>>,
}

impl Running {
    /// Starts a worker whose work on partition 0 stops its thread at the gate.
    async fn start(server: &EmbeddedServer, worker: &'static str, gate: Arc<Closed>) -> Running {
        let session = Session::connect(&server.connect_string()).await;
        let session = session.expect("a session opens");
        let partitions = Partitions::numbered(4);
        let assignment = Assignment::new(&session, PATH, partitions, worker).expect("good input");
        let work = move |owned: Partition| {
            let gate = gate.clone();
            async move {
                if owned.id() == "0" {
                    gate.pass();
                }
                owned.draining().await;
                Ok::<(), Infallible>(())
            }
        };
        let (shutdown, asked) = oneshot::channel();
        let task = tokio::spawn(async move {
            let asked = async { drop(asked.await) };
            let ran = assignment.run(asked, work).await;
            session.close().await;
            ran
        });
        Running { shutdown, task }
    }

    async fn end(self) {
        self.shutdown.send(()).expect("it runs");
        let ended = timeout(LONG, self.task).await.expect("in time");
        ended.expect("no panic").expect("no error");
    }
}

/// Waits until the numbers of partitions by worker are as expected. Returns the routing.
async fn shown(
    routing: &mut watch::Receiver<Routing>,
    expected: impl Fn(&BTreeMap<&str, usize>) -> bool,
) -> Routing {
    let is_shown = |routing: &Routing| {
        let mut counts = BTreeMap::new();
        for (_, owner) in routing.iter() {
            *counts.entry(&*owner.worker).or_default() += 1;
        }
        expected(&counts)
    };
    let shown = timeout(LONG, routing.wait_for(is_shown)).await;
    shown.expect("in time").expect("open").clone()
}

/// The worker that blocks leads. Its partition 0 cannot be given, and the others can. The plan moves
/// two partitions, and partition 0 may be one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn work_that_blocks_delays_neither_the_plans_nor_the_work_on_other_partitions() {
    let server = EmbeddedServer::start().expect("it starts");
    let observer = Session::connect(&server.connect_string())
        .await
        .expect("it opens");
    let operator = AssignmentOperator::new(&observer, PATH).expect("a good path");
    let mut routing = operator.routing().await.expect("it opens");
    let closed = Arc::new(Closed::default());
    let gate = Gate(closed.clone());
    let a = Running::start(&server, "a", closed.clone()).await;
    shown(&mut routing, |counts| counts.get("a") == Some(&4)).await;
    let b = Running::start(&server, "b", closed).await;
    let moved = shown(&mut routing, |counts| counts.contains_key("b")).await;
    assert_eq!(moved.get("0").map(|owner| &*owner.worker), Some("a"));
    drop(gate);
    a.end().await;
    shown(&mut routing, |counts| counts.get("b") == Some(&4)).await;
    b.end().await;
    observer.close().await;
}
