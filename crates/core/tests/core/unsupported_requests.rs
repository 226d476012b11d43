//! Servers that close the connection at requests that they do not know.

use zookeeper_recipes_protocol::Reply;

use crate::support::*;

/// Acquires and releases the lock at the path, however many sessions that takes.
async fn works(session: &Session, path: &str) {
    let queue = lock(session, path);
    loop {
        match queue.acquire().await {
            Ok(hold) => return hold.release().await.expect("it is released"),
            Err(Error::SessionOver { .. } | Error::OutcomeUnknown { .. }) => {}
            Err(error) => panic!("{path}: {error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn containers_that_each_end_the_session_are_given_up_by_all_its_recipes() {
    let simulation = simulation!(unknown: vec![Opcode::CreateContainer], forgets_sessions: true);
    let session = simulated_session(&simulation, "p").await;
    let paths = ["/locks/a", "/locks/b", "/other/locks/c", "/other/locks/d"];
    let all = join_all(paths.iter().map(|path| works(&session, path)));
    timeout(20 * SECOND, all).await.expect("they work in time");
    let sessions = simulation.administrator().sessions();
    assert!(sessions.len() < 10, "{} sessions", sessions.len());
}

#[tokio::test(start_paused = true)]
async fn containers_are_created_on_though_one_break_met_many_of_them() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "p").await;
    let paths = ["/a", "/b", "/c", "/d", "/e"];
    // The contenders of all meet no directory, then five containers are asked for.
    // No container is answered before the last create breaks the connection.
    let fault = |kind| Fault::new(kind).on(RequestKind::Create);
    let slow = fault(FaultKind::ReplyLate(SECOND)).nth(6);
    simulation.faults().inject(slow);
    let last = fault(FaultKind::RequestLost).nth(10);
    simulation.faults().inject(last);
    let all = join_all(paths.iter().map(|path| works(&session, path)));
    timeout(20 * SECOND, all).await.expect("they work in time");
    assert_eq!(simulation.faults().waiting(), 0, "the fault has happened");
    assert_eq!(simulation.administrator().reap_containers(), paths);
}

/// A server before 3.5.3 refuses them, and keeps the connection.
#[tokio::test(start_paused = true)]
async fn server_that_refuses_containers_gets_persistent_directories() {
    let simulation = Simulation::default();
    let session = altered(&simulation, "p", |raw, request| match request {
        RequestBody::CreateContainer(_) => answered(Reply::failed(1, 1, ErrorCode::Unimplemented)),
        request => raw.send(request),
    });
    works(&session.await, "/locks/a").await;
    let administrator = simulation.administrator();
    assert_eq!(administrator.reap_containers(), [""; 0]);
    assert_eq!(administrator.children("/locks"), ["a"]);
}

/// It closes the connection at each create.
#[tokio::test(start_paused = true)]
async fn server_that_does_not_know_creates_is_an_error_that_says_so() {
    let simulation = simulation!(unknown: vec![Opcode::Create]);
    let queue = lock_of(&simulation, "p", "/queue").await;
    let acquired = timeout(60 * SECOND, queue.acquire()).await;
    let error = acquired.expect("in time").expect_err("no create");
    let is_clear =
        matches!(&error, Error::Refused { refusal, .. } if *refusal == Refusal::Unimplemented);
    assert!(is_clear, "{error}");
}

/// Connections broke at three creates for another reason.
#[tokio::test(start_paused = true)]
async fn containers_are_created_again_after_a_while() {
    const MINUTE: Duration = Duration::from_secs(60);
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "p").await;
    // The contender of a new path meets no directory. Then a container is asked for, with the
    // contender behind it.
    for nth in [2, 4, 6] {
        let lost = Fault::new(FaultKind::RequestLost)
            .on(RequestKind::Create)
            .under("/first");
        simulation.faults().inject(lost.nth(nth));
    }
    works(&session, "/first").await;
    assert_eq!(simulation.faults().waiting(), 0, "the faults have happened");
    works(&session, "/soon").await;
    sleep(11 * MINUTE).await;
    works(&session, "/later").await;
    assert_eq!(simulation.administrator().reap_containers(), ["/later"]);
    let stand = simulation.administrator().children("/");
    assert_eq!(stand, ["first", "soon", "zookeeper"]);
}

/// At the end of the count the znode has the name that it would get again.
#[tokio::test(start_paused = true)]
async fn create_that_is_applied_after_its_session_was_replaced_keeps_nobody_waiting() {
    let simulation = simulation!(forgets_sessions: true);
    make(&simulation, "/queue");
    end_the_count(&simulation, "/queue");
    let session = simulated_session(&simulation, "p").await;
    let queue = lock(&session, "/queue");
    let late = FaultKind::RequestLate(Duration::from_millis(800));
    let create = Fault::new(late).on(RequestKind::Create);
    simulation.faults().inject(create.under("/queue/"));
    let acquiring = spawned(&queue);
    until(|| simulation.faults().waiting() != 1).await;
    simulation.process("p").disconnect();
    let outcome = acquiring.await.expect("no panic");
    assert_fails!(outcome, Error::SessionOver);
    works(&session, "/queue").await;
}

/// A server that does not know the request closes the connection at once.
#[tokio::test(start_paused = true)]
async fn creates_that_are_lost_with_slow_connections_are_created_again() {
    const LOST: usize = 10;
    let simulation = Simulation::default();
    let queue = lock_of(&simulation, "p", "/queue").await;
    let faults = simulation.faults();
    for nth in 1..=LOST as u64 {
        let late = Fault::new(FaultKind::RequestLate(60 * SECOND));
        faults.inject(late.on(RequestKind::Create).nth(nth));
    }
    let acquiring = spawned(&queue);
    for left in (0..LOST).rev() {
        until(|| faults.waiting() <= left || acquiring.is_finished()).await;
        sleep(2 * SECOND).await;
        simulation.process("p").disconnect();
    }
    let acquired = in_time("a hold", acquiring).await.expect("no panic");
    release(acquired.expect("the server knows creates")).await;
}

#[tokio::test(start_paused = true)]
async fn server_that_has_refused_a_create_knows_creates() {
    let simulation = Simulation::default();
    make_granting(&simulation, "/lock", Permission::READ);
    let queue = lock_of(&simulation, "p", "/lock").await;
    let refused = queue.acquire().await;
    assert_fails!(refused, Error::Refused);
    grant(&simulation, "/lock", Permission::ALL);
    let faults = simulation.faults();
    for nth in 1..=10 {
        let lost = Fault::new(FaultKind::RequestLost).on(RequestKind::Create);
        faults.inject(lost.nth(nth));
    }
    let hold = timeout(60 * SECOND, queue.acquire()).await;
    assert_eq!(faults.waiting(), 0, "all that was to be lost is");
    assert!(hold.expect("in time").expect("it knows creates").is_held());
}
