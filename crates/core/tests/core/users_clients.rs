//! A session over a user's client closes while another thread acquires. The client lives on, so only
//! deletions end the znodes of the session.

use std::sync::mpsc;

use crate::support::*;

const SOON: Duration = Duration::from_secs(5);

/// The client of a user, and the ensemble of it.
async fn users(simulation: &Simulation) -> (ServerSession, Arc<dyn Ensemble>) {
    make(simulation, "/lock");
    let client = users_client(simulation, "one").await;
    let ensemble = users_ensemble(simulation, client.clone());
    (client, Arc::new(ensemble))
}

async fn users_queue(ensemble: Arc<dyn Ensemble>) -> Queue {
    let session = open(ensemble, ConnectOptions::new()).await;
    let queue = lock(&session, "/lock");
    // From now on, an acquisition begins with the create of its znode.
    take_turn(&queue).await;
    queue
}

/// Acquires in a thread of its own. The receiver has the result.
fn acquire_in_a_thread(queue: &Queue) -> mpsc::Receiver<Result<Hold, Error>> {
    let (result, acquired) = mpsc::channel();
    let queue = queue.clone();
    std::thread::spawn(move || {
        let _ = result.send(runtime(false).block_on(queue.acquire()));
    });
    acquired
}

fn assert_over(acquired: Result<Hold, Error>) {
    assert_fails!(acquired, Error::SessionOver);
}

async fn close(queue: &Queue) {
    let closed = timeout(SOON, queue.session().clone().close());
    closed.await.expect("it closes in time");
}

#[tokio::test]
async fn thread_that_stands_still_before_its_create_leaves_nothing_when_the_session_closes() {
    let simulation = Simulation::default();
    let (client, ensemble) = users(&simulation).await;
    let before_create = Call::default();
    let call = before_create.clone();
    let ensemble = sending(ensemble, move |raw, request| {
        if matches!(request, RequestBody::Create2(_)) {
            call.make();
        }
        raw.send(request)
    });
    let queue = users_queue(ensemble).await;
    let (still, stands_still) = oneshot::channel();
    let (go_on, goes_on) = mpsc::channel();
    before_create.set(move || {
        still.send(()).expect("it is awaited");
        goes_on.recv().expect("the session closes");
    });
    let acquired = acquire_in_a_thread(&queue);
    stands_still.await.expect("it sends a create");
    close(&queue).await;
    go_on.send(()).expect("the thread stands still");
    assert_over(acquired.recv_timeout(SOON).expect("in time"));
    // The client's requests are answered in the order in which they were sent.
    let later = client.sync("/").await;
    later.expect("its session is open");
    assert_eq!(simulation.administrator().children("/lock"), [""; 0]);
}

#[tokio::test]
async fn waiter_that_fails_while_its_session_closes_leaves_nothing() {
    let simulation = Simulation::default();
    let at_close = Call::default();
    let ensemble = users(&simulation).await.1;
    let queue = users_queue(calling_at_close(ensemble, &at_close)).await;
    let holder = lock_of(&simulation, "other", "/lock").await;
    let held = holder.acquire().await.expect("it is free");
    let acquired = acquire_in_a_thread(&queue);
    let children = || simulation.administrator().children("/lock");
    let both = async {
        while children().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, both).await.expect("it waits");
    let (failed, has_failed) = mpsc::channel();
    at_close.set(move || {
        let acquired = acquired.recv_timeout(SOON).expect("in time");
        failed.send(acquired).expect("it is awaited");
    });
    close(&queue).await;
    assert_over(has_failed.recv().expect("it has ended"));
    assert_eq!(children().len(), 1);
    held.release().await.expect("it is held");
}

#[tokio::test]
async fn runtime_that_shuts_down_while_its_session_closes_sends_the_deletions() {
    let simulation = Simulation::default();
    let stalls = Arc::<AtomicBool>::default();
    let stalled = stalls.clone();
    // It is connected in another runtime than that of the session.
    let ensemble = sending(users(&simulation).await.1, move |raw, request| {
        let is_delete = matches!(request, RequestBody::Delete(_));
        match is_delete && stalled.swap(false, Ordering::Relaxed) {
            true => boxed_reply(pending()),
            false => raw.send(request),
        }
    });
    let closing = tokio::task::spawn_blocking(move || {
        runtime(false).block_on(async {
            let session = open(ensemble, ConnectOptions::new()).await;
            let queue = lock(&session, "/lock");
            let hold = queue.acquire().await.expect("it is free");
            stalls.store(true, Ordering::Relaxed);
            let close = session.close();
            let until_it_stalls = async {
                while stalls.load(Ordering::Relaxed) {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                () = close => panic!("a deletion has no answer"),
                () = until_it_stalls => {}
            }
            hold
        })
    });
    let hold = closing.await.expect("no panic");
    assert!(!hold.is_held());
    let nobody_is_left = async {
        while !simulation.administrator().children("/lock").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, nobody_is_left).await.expect("it is deleted");
}

/// Nobody knows when a server last answered. So one answer confirms no lease.
#[tokio::test(start_paused = true)]
async fn hold_of_a_session_that_was_opened_earlier_waits_for_a_second_answer() {
    let simulation = Simulation::default();
    let ensembles = [simulation.ensemble("new"), users(&simulation).await.1];
    for (is_earlier, queues) in [(false, true), (false, false), (true, true), (true, false)] {
        let ensemble = ensembles[usize::from(is_earlier)].clone();
        let session = open(ensemble, ConnectOptions::new()).await;
        let recipe: Box<dyn Recipe> = match queues {
            true => Box::new(lock(&session, "/lock")),
            false => Box::new(single_node(&session, "/single")),
        };
        let began = tokio::time::Instant::now();
        let hold = recipe.acquire().await.expect("it is free");
        let waited = began.elapsed() > SOON / 10;
        assert_eq!(waited, is_earlier, "{queues}: {:?}", began.elapsed());
        assert!(hold.is_held());
        hold.release().await.expect("it is held");
    }
    // Each znode that is created too early would be deleted again.
    let history = simulation.history().into_iter();
    let created = history.filter(|commit| match &commit.change {
        Change::Created { path, .. } => path == "/single",
        _ => false,
    });
    assert_eq!(created.count(), 2, "one for each hold");
}

/// Each of these can be implemented. By default an ensemble is one server.
#[tokio::test(start_paused = true)]
async fn ensemble_that_says_no_more_is_one_server_that_takes_no_options() {
    let simulation = Simulation::default();
    let facts = EnsembleFacts::new("here");
    assert_eq!(facts.servers, [facts.address]);
    assert_eq!(facts.chroot, "/");
    let options = ConnectOptions::new().session_timeout(4 * SOON);
    let refused = Session::open(users(&simulation).await.1, options).await;
    let error = refused.expect_err("the option cannot be kept");
    assert!(matches!(error, Error::InvalidInput(_)), "{error}");
}
