//! Several recipes as one, on a real server; and on a simulated one where it is about time.

mod support;

use std::time::Duration;

use tokio::time::Instant;
use zookeeper_recipes_core::{AllOf, ConnectOptions, Error, LossReason, Queue, Recipe, Session};
use zookeeper_recipes_simulation::{Fault, FaultKind, Simulation, SimulationOptions};
use zookeeper_recipes_suite::{PATIENCE, server, simulated_session};
use zookeeper_recipes_testkit::Server;

use support::First;

async fn session(server: &Server) -> Session {
    Session::connect(&server.connect_string())
        .await
        .expect("a session opens")
}

fn lock(session: &Session, path: &str) -> Box<dyn Recipe> {
    Box::new(Queue::new(session, path, First).expect("a good path"))
}

fn all_of(session: &Session, paths: [&str; 3]) -> AllOf {
    AllOf::new(paths.map(|path| lock(session, path))).expect("different paths")
}

async fn assert_free(session: &Session, paths: [&str; 3]) {
    for path in paths {
        let hold = lock(session, path)
            .acquire_timeout(PATIENCE)
            .await
            .expect("it is free");
        hold.release().await.expect("it is released");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_take_the_same_locks_in_opposite_order_both_finish() {
    let server = server().await;
    let (first, second) = (session(&server).await, session(&server).await);
    let turns = |all: AllOf| async move {
        for _ in 0..25 {
            let holds = all.acquire().await.expect("they are acquired");
            assert!(holds.is_held() && holds.holds().len() == 3);
            holds.release().await.expect("they are released");
        }
    };
    let forth = tokio::spawn(turns(all_of(&first, ["/all/a", "/all/b", "/all/c"])));
    let back = tokio::spawn(turns(all_of(&second, ["/all/c", "/all/b", "/all/a"])));
    tokio::time::timeout(PATIENCE, async {
        forth.await.expect("no panic");
        back.await.expect("no panic");
    })
    .await
    .expect("both finish");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_on_the_third_leaves_none_held() {
    let server = server().await;
    let (ours, theirs) = (session(&server).await, session(&server).await);
    let paths = ["/all/a", "/all/b", "/all/c"];
    let all = all_of(&ours, paths);
    let third = lock(&theirs, "/all/c")
        .acquire()
        .await
        .expect("nobody is before it");

    let timeout = Duration::from_secs(5);
    let error = all
        .acquire_timeout(timeout)
        .await
        .expect_err("the third is taken");
    assert!(
        matches!(&error, Error::DeadlineElapsed { path, timeout: given }
            if path == "/all/c" && *given == timeout),
        "{error}"
    );
    assert!(all.try_acquire().await.expect("an answer").is_none());
    third.release().await.expect("it is released");
    assert_free(&theirs, paths).await;

    let all = all
        .try_acquire()
        .await
        .expect("an answer")
        .expect("all are free");
    drop(all);
    assert_free(&theirs, paths).await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_kept_where_what_is_held_cannot_be_given_back() {
    let simulation = Simulation::new(SimulationOptions::default());
    let open = async |process: &str| {
        let ensemble = simulation.ensemble(process);
        let session = Session::open(ensemble, ConnectOptions::new()).await;
        session.expect("a session opens")
    };
    let (ours, theirs) = (open("ours").await, open("theirs").await);
    let paths = ["/all/a", "/all/b", "/all/c"];
    let third = lock(&theirs, "/all/c")
        .acquire()
        .await
        .expect("nobody is before it");

    let all = all_of(&ours, paths);
    let timeout = Duration::from_millis(500);
    let began = Instant::now();
    let cut_off = async {
        tokio::time::sleep(timeout / 2).await;
        simulation.process("ours").partition(Duration::from_secs(2));
    };
    let (acquired, ()) = tokio::join!(all.acquire_timeout(timeout), cut_off);
    assert!(matches!(acquired, Err(Error::DeadlineElapsed { .. })));
    assert_eq!(began.elapsed().as_millis(), timeout.as_millis());

    third.release().await.expect("it is released");
    assert_free(&theirs, paths).await;
}

#[tokio::test(start_paused = true)]
async fn a_try_in_the_course_of_which_one_is_lost_holds_none() {
    let simulation = Simulation::new(SimulationOptions::default());
    let ours = simulated_session(&simulation, "ours").await;
    let theirs = simulated_session(&simulation, "theirs").await;
    let paths = ["/all/a", "/all/b", "/all/c"];
    assert_free(&theirs, paths).await;
    let late = Fault::new(FaultKind::RequestLate(Duration::from_secs(2)));
    simulation
        .faults()
        .inject(late.of_process("ours").under("/all/c"));

    let all = all_of(&ours, paths);
    let administrator = simulation.administrator();
    let deleted = async {
        while administrator.children("/all/b").is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(1200)).await;
        let name = &administrator.children("/all/a")[0];
        let deleted = administrator.delete(&format!("/all/a/{name}"));
        deleted.expect("it is there");
    };
    let (tried, ()) = tokio::join!(all.try_acquire(), deleted);
    assert!(matches!(tried, Err(Error::Lost { .. })), "{tried:?}");
    assert_free(&theirs, paths).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lost_is_all_lost() {
    let server = server().await;
    let (ours, theirs) = (session(&server).await, session(&server).await);
    let client = zookeeper_client::Client::connect(&server.connect_string())
        .await
        .expect("a client connects");
    let paths = ["/all/a", "/all/b", "/all/c"];
    let holds = all_of(&ours, paths)
        .acquire()
        .await
        .expect("they are acquired");
    client
        .delete(holds.holds()[1].node_path(), None)
        .await
        .expect("it is there");
    let (hold, reason) = tokio::time::timeout(PATIENCE, holds.lost())
        .await
        .expect("it is told");
    assert!(hold.node_path().starts_with("/all/b/"));
    assert_eq!(reason, LossReason::Deleted);
    assert!(!holds.is_held() && holds.remaining().is_zero());
    assert!(matches!(holds.release().await, Err(Error::Lost { .. })));
    assert_free(&theirs, paths).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lost_while_the_next_is_waited_for_ends_the_wait() {
    let server = server().await;
    let (ours, theirs) = (session(&server).await, session(&server).await);
    let client = zookeeper_client::Client::connect(&server.connect_string())
        .await
        .expect("a client connects");
    let paths = ["/all/a", "/all/b", "/all/c"];
    let third = lock(&theirs, "/all/c")
        .acquire()
        .await
        .expect("nobody is before it");
    let all = all_of(&ours, paths);
    let waiter = tokio::spawn(async move { all.acquire().await });
    let queue = lock(&theirs, "/all/c");
    while queue
        .contenders()
        .await
        .expect("the queue can be read")
        .len()
        < 2
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let first = lock(&theirs, "/all/a")
        .contenders()
        .await
        .expect("the queue can be read");
    client
        .delete(&format!("/all/a/{}", first[0].name), None)
        .await
        .expect("it is there");
    let error = tokio::time::timeout(PATIENCE, waiter)
        .await
        .expect("it ends")
        .expect("no panic");
    assert!(
        matches!(
            error,
            Err(Error::Lost {
                reason: LossReason::Deleted,
                ..
            })
        ),
        "{error:?}"
    );
    third.release().await.expect("it is released");
    assert_free(&theirs, paths).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn none_and_twice_the_same_are_refused() {
    let server = server().await;
    let session = session(&server).await;
    assert!(AllOf::new([]).is_err());
    let error = AllOf::new([lock(&session, "/all/a"), lock(&session, "/all/a")])
        .expect_err("one would wait for the other");
    assert_eq!(error.value(), "/all/a");
}
