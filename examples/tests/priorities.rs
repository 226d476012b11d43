//! The example of a lock with priorities keeps the laws of a rule, and what every recipe promises.
//! A higher priority goes first.

use std::sync::{Arc, Mutex};

use zookeeper_recipes_core::{Queue, Recipe, Session};
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_testkit::conformance::Conformance;
use zookeeper_recipes_testkit::laws::{BrokenLaw, Laws};
use zookeeper_recipes_testkit::{Server, ServerOptions};

#[path = "../examples/priorities.rs"]
#[expect(dead_code, unreachable_pub)]
mod priorities;

use priorities::Priority;

fn queue(session: &Session, path: &str, priority: u8) -> Queue {
    Queue::new(session, path, Priority(priority)).expect("a good path")
}

#[test]
fn rule_with_priorities_keeps_the_laws() -> Result<(), BrokenLaw> {
    let one = |labels: &[&str]| labels.len() <= 1;
    let laws = Laws::of(&[&Priority(0), &Priority(1), &Priority(255)]);
    laws.holders(&one).wakes(&one).check()
}

#[tokio::test(flavor = "multi_thread")]
async fn recipe_with_priorities_conforms() {
    let server = Server::start(ServerOptions::new())
        .await
        .expect("it starts");
    for priority in [0, 255] {
        let recipe = move |session: &Session, path: &str| -> Box<dyn Recipe> {
            Box::new(queue(session, path, priority))
        };
        let conformance = Conformance::new(&server, recipe);
        conformance.check().await.expect("it conforms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_with_a_higher_priority_holds_first() {
    let server = EmbeddedServer::start().expect("it starts");
    let session = Session::connect(&server.connect_string()).await;
    let session = session.expect("it connects");
    let hold = queue(&session, "/lock", 5).acquire().await.expect("a hold");
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for (at, priority) in [2, 0, 1, 255, 1, 0, 2].into_iter().enumerate() {
        let (waiter, order) = (queue(&session, "/lock", priority), order.clone());
        waiters.push(tokio::spawn(async move {
            let hold = waiter.acquire().await.expect("a hold");
            order.lock().expect("no panic").push(priority);
            hold.release().await.expect("it releases");
        }));
        let queue = queue(&session, "/lock", 0);
        while queue.contenders().await.expect("an answer").len() < at + 2 {
            tokio::task::yield_now().await;
        }
    }
    hold.release().await.expect("it releases");
    for waiter in waiters {
        waiter.await.expect("no panic");
    }
    let order = order.lock().expect("no panic").clone();
    assert_eq!(order, [255, 2, 2, 1, 1, 0, 0]);
}
