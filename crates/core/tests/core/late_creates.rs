//! Creates that a server applies after it has answered that it does not know their outcome.

use tokio::sync::Mutex;

use crate::support::*;

const TIME: Duration = Duration::from_secs(60);
const LATE: Duration = Duration::from_millis(500);

/// A session whose server does not know the outcome of its first create below `/lock`, and applies
/// it late. The server applies no later write before it.
async fn applying_late(simulation: &Simulation) -> Session {
    // True once a create was applied late. Each write that waits for it locks this.
    let writes = Arc::<Mutex<bool>>::default();
    let session = altered(simulation, "one", move |raw, request| {
        let is_write = match &request {
            RequestBody::Create2(create) => create.path.starts_with("/lock/"),
            RequestBody::Multi(operations) => matches!(&operations[..], [Operation::Check(_)]),
            _ => false,
        };
        if !is_write {
            return raw.send(request);
        }
        let (raw, writes) = (raw.clone(), writes.clone());
        let first = matches!(request, RequestBody::Create2(_)).then(|| writes.clone());
        let first = first.and_then(|writes| writes.try_lock_owned().ok());
        let Some(mut was_late) = first.filter(|was_late| !**was_late) else {
            return boxed_reply(async move {
                let _before = writes.lock().await;
                raw.send(request).await
            });
        };
        *was_late = true;
        tokio::spawn(async move {
            sleep(LATE).await;
            let _ = raw.send(request).await;
            drop(was_late);
        });
        fails(unknown())
    });
    session.await
}

/// A queue or a lock of a single znode, whose first create is applied late.
async fn recipe(simulation: &Simulation, queues: bool) -> Box<dyn Recipe> {
    make(simulation, "/lock");
    let session = applying_late(simulation).await;
    match queues {
        true => Box::new(lock(&session, "/lock")),
        false => Box::new(single_node(&session, "/lock/one")),
    }
}

#[tokio::test(start_paused = true)]
async fn contender_whose_create_is_applied_late_holds_by_it() {
    for queues in [true, false] {
        let simulation = Simulation::default();
        let recipe = recipe(&simulation, queues).await;
        let hold = timeout(TIME, recipe.acquire()).await;
        let hold = hold.expect("nobody is before it").expect("it is free");
        assert_eq!(simulation.administrator().children("/lock").len(), 1);
        hold.release().await.expect("it is held");
        assert_eq!(simulation.administrator().children("/lock"), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn create_that_is_applied_after_its_attempt_leaves_no_znode() {
    let deadlines = [1, 10, 100].map(Duration::from_millis);
    let both = |deadline| [(true, deadline), (false, deadline)];
    for (queues, deadline) in deadlines.into_iter().flat_map(both) {
        let simulation = Simulation::default();
        let recipe = recipe(&simulation, queues).await;
        let early = recipe.acquire_timeout(deadline).await;
        assert!(early.expect_err("no write is applied").is_timeout());
        sleep(LATE * 4).await;
        assert_eq!(simulation.administrator().children("/lock"), [""; 0]);
    }
}

/// The outcome of its first create is unknown, a member that lags behind does not show the znode,
/// and the second create has no answer yet.
#[tokio::test(start_paused = true)]
async fn attempt_that_is_dropped_in_its_second_create_leaves_neither_znode() {
    let simulation = Simulation::default();
    let (session, lists) = with_lists(&simulation, "one").await;
    let queue = lock(&session, "/lock");
    take_turn(&queue).await;
    *lists.lock().expect("no panic") = Some(Vec::new());
    let faults = [FaultKind::ReplyLost, FaultKind::ReplyLate(LATE)];
    for (nth, fault) in (1..).zip(faults) {
        let fault = Fault::new(fault).on(RequestKind::Create).nth(nth);
        simulation.faults().inject(fault);
    }
    let children = || simulation.administrator().children("/lock");
    let mut attempt = Box::pin(queue.acquire());
    while children().len() < 2 {
        let early = timeout(Duration::from_millis(1), &mut attempt).await;
        early.expect_err("it finds no znode of its own");
    }
    drop(attempt);
    *lists.lock().expect("no panic") = None;
    sleep(LATE * 4).await;
    assert_eq!(children(), [""; 0]);
}
