//! Creates that the server applies twice, and znodes that look like a contender's own.

use std::pin::Pin;

use zookeeper_recipes_protocol::CreateRequest;

use crate::support::*;

const TIME: Duration = Duration::from_secs(60);

/// A queue whose creates come second, after one of this kind. The outcome of both is unknown.
async fn queue_behind(simulation: &Simulation, before: CreateMode) -> Queue {
    doubled(simulation.ensemble("one"), before).await
}

async fn doubled(ensemble: Arc<dyn Ensemble>, before: CreateMode) -> Queue {
    let ensemble = sending(ensemble, move |raw, request| {
        let RequestBody::Create2(create) = request else {
            return raw.send(request);
        };
        let first = CreateRequest {
            mode: before,
            ..create.clone()
        };
        let (first, raw) = (raw.send(RequestBody::Create2(first)), raw.clone());
        boxed_reply(async move {
            let is_refused = |answer: &Answer| answer.reply.header.error != ErrorCode::Ok;
            let (answer, watch) = first.await?;
            if is_refused(&answer) {
                return Ok((answer, watch));
            }
            let (answer, watch) = raw.send(RequestBody::Create2(create)).await?;
            match is_refused(&answer) {
                true => Ok((answer, watch)),
                false => Err(unknown()),
            }
        })
    });
    lock(&open(ensemble, ConnectOptions::new()).await, "/lock")
}

/// The paths of the contenders that were created.
fn created(simulation: &Simulation) -> Vec<String> {
    let history = simulation.history().into_iter();
    let created = history.filter_map(|commit| match commit.change {
        Change::Created { path, .. } => path.starts_with("/lock/").then_some(path),
        _ => None,
    });
    created.collect()
}

/// The contender takes the first of its two znodes, and leaves neither behind.
#[tokio::test(start_paused = true)]
async fn contender_whose_create_is_applied_twice_keeps_nobody_waiting() {
    let simulation = Simulation::default();
    let queue = queue_behind(&simulation, CreateMode::EphemeralSequential).await;
    let hold = timeout(TIME, queue.acquire()).await;
    let hold = hold.expect("in time").expect("it is free");
    let created = created(&simulation);
    assert_eq!(created.len(), 2, "it is applied twice");
    assert_eq!(hold.node_path(), created[0]);
    hold.release().await.expect("it is held");
    let other = lock_of(&simulation, "other", "/lock").await;
    let next = timeout(TIME, other.acquire()).await;
    let next = next.expect("nobody is before it").expect("it is free");
    next.release().await.expect("it is held");
}

/// At the end of the count all znodes of one identity have the same name.
#[tokio::test(start_paused = true)]
async fn contender_whose_name_is_there_already_holds_by_its_znode() {
    let simulation = Simulation::default();
    make(&simulation, "/lock");
    end_the_count(&simulation, "/lock");
    let queue = queue_behind(&simulation, CreateMode::EphemeralSequential).await;
    let hold = timeout(TIME, queue.acquire()).await;
    let hold = hold.expect("in time").expect("its znode is there");
    assert_eq!(created(&simulation), [hold.node_path()]);
    hold.release().await.expect("it is held");
    assert_eq!(left(&simulation), [""; 0]);
}

/// As in two copies of a virtual machine, whose processes draw the same identities.
#[tokio::test(start_paused = true)]
async fn znode_of_the_same_identity_that_another_owns_is_not_taken_for_ones_own() {
    let simulation = Simulation::default();
    let queue = queue_behind(&simulation, CreateMode::PersistentSequential).await;
    let waiting = spawned(&queue);
    sleep(TIME).await;
    assert!(!waiting.is_finished(), "another is before it");
    let created = created(&simulation);
    delete(&simulation, &created[0]);
    let hold = timeout(TIME, waiting).await.expect("in time");
    let hold = hold.expect("no panic").expect("its turn");
    assert_eq!(hold.node_path(), created[1]);
}

/// The children of the queue's directory.
fn left(simulation: &Simulation) -> Vec<String> {
    let left = simulation.administrator().children("/lock").into_iter();
    left.map(|name| format!("/lock/{name}")).collect()
}

/// Polls an attempt until its create is applied, and not further.
async fn begin(simulation: &Simulation, mut attempt: Pin<&mut impl Future>) {
    while created(simulation).len() < 2 {
        let given_up = timeout(Duration::from_micros(10), &mut attempt).await;
        assert!(given_up.is_err(), "another is before it");
    }
}

/// The attempt does not know if its create was applied, and deletes what may be its own.
#[tokio::test(start_paused = true)]
async fn znode_of_the_same_identity_that_another_owns_is_not_deleted() {
    for closes in [false, true] {
        let simulation = Simulation::default();
        make(&simulation, "/lock");
        // Nothing but its deletions would end the znodes of a session that is closed.
        let ensemble: Arc<dyn Ensemble> = match closes {
            true => {
                let client = users_client(&simulation, "one").await;
                Arc::new(users_ensemble(&simulation, client))
            }
            false => simulation.ensemble("one"),
        };
        let queue = doubled(ensemble, CreateMode::PersistentSequential).await;
        let mut attempt = Box::pin(queue.acquire());
        begin(&simulation, attempt.as_mut()).await;
        match closes {
            true => in_time("close", queue.session().clone().close()).await,
            false => drop(attempt),
        }
        sleep(TIME).await;
        assert_eq!(left(&simulation), created(&simulation)[..1], "{closes}");
    }
}
