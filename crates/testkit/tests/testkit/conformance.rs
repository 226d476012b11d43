//! The conformance suite finds what is broken on purpose.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use tokio::sync::oneshot;
use zookeeper_recipes_core::{
    BoxFuture, Error, Hold, InvalidInput, NodePath, Queue, QueueEntry, QueueView, Recipe, Rule,
    Session, Verdict,
};
use zookeeper_recipes_lock::SingleNodeLock;
use zookeeper_recipes_suite::server;
use zookeeper_recipes_testkit::conformance::Conformance;

fn queue(session: &Session, path: &str, rule: impl Rule + 'static) -> Queue {
    Queue::new(session, path, rule).expect("a good path")
}

/// The promise that a recipe breaks.
async fn broken_promise(conformance: Conformance<'_>) -> &'static str {
    conformance.check().await.expect_err("it is broken").promise
}

/// Lets two in where it promises one.
#[derive(Clone, Debug)]
struct Lax;

impl Rule for Lax {
    fn label(&self) -> Cow<'_, str> {
        "lax-".into()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let me = view.place();
        Ok(match me {
            0 | 1 => Verdict::Hold,
            _ => Verdict::wait_on(me - 1),
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_lets_two_in_is_found() {
    let server = server().await;
    let lax = |session: &Session, path: &str| Box::new(queue(session, path, Lax)) as _;
    assert_eq!(
        broken_promise(Conformance::new(&server, lax)).await,
        "never more hold than may, and all get through"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipe_without_the_order_it_claims_is_found() {
    let server = server().await;
    let make = |session: &Session, path: &str| {
        Box::new(SingleNodeLock::new(session, path).expect("a good path")) as Box<dyn Recipe>
    };
    let broken = broken_promise(Conformance::new(&server, make)).await;
    assert_eq!(broken, "first come, first served");
    Conformance::new(&server, make)
        .unordered()
        .check()
        .await
        .expect("it claims none");
}

/// Holds when nobody is before it.
#[derive(Clone, Debug)]
struct First;

impl Rule for First {
    fn label(&self) -> Cow<'_, str> {
        "first-".into()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let me = view.place();
        Ok(match me {
            0 => Verdict::Hold,
            _ => Verdict::wait_on(me - 1),
        })
    }
}

/// Holds also if other contenders are before it.
#[derive(Clone, Copy, Debug)]
struct Heedless;

impl Rule for Heedless {
    fn label(&self) -> Cow<'_, str> {
        "heedless-".into()
    }

    fn decide(&self, _view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        Ok(Verdict::Hold)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_recipe_that_minds_nobody_is_found() {
    let server = server().await;
    let shared = |session: &Session, path: &str| Box::new(queue(session, path, Heedless)) as _;
    let alone = |session: &Session, path: &str| Box::new(queue(session, path, First)) as _;
    let conformance = Conformance::new(&server, shared).shared(alone);
    assert_eq!(
        broken_promise(conformance).await,
        "never more hold than may, and all get through"
    );
}

type Acquired = BoxFuture<'static, Result<Hold, Error>>;

/// A queue with another `acquire`.
struct Altered {
    queue: Queue,
    acquire: fn(Queue) -> Acquired,
}

impl fmt::Debug for Altered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(formatter)
    }
}

impl Recipe for Altered {
    fn acquire(&self) -> BoxFuture<'_, Result<Hold, Error>> {
        (self.acquire)(self.queue.clone())
    }

    fn acquire_timeout(&self, timeout: Duration) -> BoxFuture<'_, Result<Hold, Error>> {
        Box::pin(self.queue.acquire_timeout(timeout))
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<Hold>, Error>> {
        Box::pin(self.queue.try_acquire())
    }

    fn contenders(&self) -> BoxFuture<'_, Result<Vec<QueueEntry>, Error>> {
        Box::pin(self.queue.contenders())
    }

    fn path(&self) -> &NodePath {
        self.queue.path()
    }

    fn session(&self) -> &Session {
        self.queue.session()
    }
}

/// Continues to acquire when the future is dropped, and keeps the hold.
fn leaky(queue: Queue) -> Box<dyn Recipe> {
    let acquire = |queue: Queue| -> Acquired {
        Box::pin(async move {
            let (wanted, hold) = oneshot::channel();
            tokio::spawn(async move {
                if let Err(hold) = wanted.send(queue.acquire().await) {
                    std::mem::forget(hold);
                }
            });
            hold.await.expect("the task answers")
        })
    };
    Box::new(Altered { queue, acquire })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipe_that_leaks_when_it_is_cancelled_is_found() {
    let server = server().await;
    let make = |session: &Session, path: &str| leaky(queue(session, path, First));
    assert_eq!(
        broken_promise(Conformance::new(&server, make)).await,
        "dropped at any await, an acquisition leaves nothing"
    );
}
