//! The example of a rule of one's own keeps the laws of a rule, and what every recipe promises.

use std::sync::{Arc, Mutex};

use zookeeper_recipes_core::{Queue, Recipe, Rule, Session};
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_testkit::conformance::Conformance;
use zookeeper_recipes_testkit::laws::{BrokenLaw, Laws};
use zookeeper_recipes_testkit::{Server, ServerOptions};

#[path = "../../../examples/priorities.rs"]
#[expect(dead_code, unreachable_pub)]
mod priorities;

use priorities::Priority;

fn queue(session: &Session, path: &str, rule: impl Rule + 'static) -> Queue {
    Queue::new(session, path, rule).expect("a good path")
}

#[test]
fn rule_of_ones_own_keeps_the_laws() -> Result<(), BrokenLaw> {
    let one = |labels: &[&str]| labels.len() <= 1;
    let laws = Laws::of(&[&Priority(0), &Priority(1), &Priority(255)]);
    laws.holders(&one).wakes(&one).check()
}

#[tokio::test(flavor = "multi_thread")]
async fn recipe_of_ones_own_conforms() {
    let server = Server::start(ServerOptions::new()).await;
    let server = server.expect("it starts");
    for priority in [0, 255] {
        let press = move |session: &Session, path: &str| -> Box<dyn Recipe> {
            Box::new(queue(session, path, Priority(priority)))
        };
        let press = Conformance::new(&server, press);
        press.check().await.expect("it conforms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_with_a_higher_priority_holds_first() {
    let server = EmbeddedServer::start().expect("it starts");
    let session = Session::connect(&server.connect_string()).await;
    let session = session.expect("it connects");
    let press = |priority| queue(&session, "/lock", Priority(priority));
    let hold = press(5).acquire().await.expect("a hold");
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for (at, priority) in [2, 0, 1, 255, 1, 0, 2].into_iter().enumerate() {
        let (waiter, order) = (press(priority), order.clone());
        waiters.push(tokio::spawn(async move {
            let hold = waiter.acquire().await.expect("a hold");
            order.lock().expect("no panic").push(priority);
            hold.release().await.expect("it releases");
        }));
        while press(0).contenders().await.expect("an answer").len() < at + 2 {
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
