//! Several recipes as one.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes::common::CreateMode;
use zookeeper_recipes::lock::LockOptions;
use zookeeper_recipes::{
    AllOf, ConnectOptions, Error, ExclusiveLock, Hold, Locks, LossReason, Recipe, Session,
};
use zookeeper_recipes_simulation::{Change, Simulation};
use zookeeper_recipes_suite::{PATIENCE, in_time, queue_length, simulated_session};

const PATHS: [&str; 3] = ["/all/a", "/all/b", "/all/c"];

/// A simulation, and the sessions of two processes.
async fn simulated() -> (Simulation, Session, Session) {
    let simulation = Simulation::default();
    let ours = simulated_session(&simulation, "ours").await;
    let theirs = simulated_session(&simulation, "theirs").await;
    (simulation, ours, theirs)
}

async fn held(session: &Session, path: &str) -> Hold {
    let held = lock(session, path).acquire().await;
    held.expect("nobody is before it")
}

fn lock(session: &Session, path: &str) -> Box<dyn Recipe> {
    Box::new(ExclusiveLock::new(session, path).expect("a good path"))
}

/// Deletes the znode at a path, as an operator does.
fn delete(simulation: &Simulation, path: &str) {
    let deleted = simulation.administrator().delete(path);
    deleted.expect("it exists");
}

fn all_of(session: &Session, paths: [&str; 3]) -> AllOf {
    AllOf::new(paths.map(|path| lock(session, path))).expect("different paths")
}

async fn assert_free(session: &Session) {
    for path in PATHS {
        let free = lock(session, path).acquire_timeout(PATIENCE).await;
        let released = free.expect("it is free").release().await;
        released.expect("it is held");
    }
}

#[tokio::test(start_paused = true)]
async fn recipes_are_listed_in_the_order_in_which_they_are_acquired() {
    let (_simulation, ours, _theirs) = simulated().await;
    let all = all_of(&ours, ["/all/c", "/all/a", "/all/b"]);
    let listed: Vec<String> = all.recipes().map(|it| it.path().to_string()).collect();
    assert_eq!(listed, PATHS);
    let holds = all.acquire().await.expect("nobody holds one");
    let tokens = holds.holds().iter().map(|hold| hold.fencing_token());
    assert!(tokens.is_sorted(), "{holds:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_on_the_third_leaves_none_held() {
    let (_simulation, ours, theirs) = simulated().await;
    let all = all_of(&ours, PATHS);
    let third = held(&theirs, "/all/c").await;

    let timeout = Duration::from_secs(5);
    let taken = all.acquire_timeout(timeout).await;
    assert!(
        matches!(&taken, Err(Error::DeadlineElapsed { path, timeout: given })
            if path == "/all/c" && *given == timeout),
        "{taken:?}"
    );
    assert!(all.try_acquire().await.expect("an answer").is_none());
    third.release().await.expect("it is released");
    assert_free(&theirs).await;

    let all = all.try_acquire().await.expect("an answer");
    drop(all.expect("all are free"));
    assert_free(&theirs).await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_kept_where_what_is_held_cannot_be_given_back() {
    let (simulation, ours, theirs) = simulated().await;
    let third = held(&theirs, "/all/c").await;

    let all = all_of(&ours, PATHS);
    let timeout = Duration::from_millis(500);
    let began = Instant::now();
    let cut_off = async {
        sleep(timeout / 2).await;
        simulation.process("ours").partition(Duration::from_secs(2));
    };
    let (acquired, ()) = tokio::join!(all.acquire_timeout(timeout), cut_off);
    assert!(matches!(acquired, Err(Error::DeadlineElapsed { .. })));
    assert_eq!(began.elapsed().as_millis(), timeout.as_millis());

    third.release().await.expect("it is released");
    assert_free(&theirs).await;
}

#[tokio::test(start_paused = true)]
async fn one_lost_is_all_lost() {
    let (simulation, ours, theirs) = simulated().await;
    let holds = all_of(&ours, PATHS).acquire().await;
    let holds = holds.expect("they are acquired");
    delete(&simulation, holds.holds()[1].node_path());
    let lost = timeout(PATIENCE, holds.lost()).await;
    let (hold, reason) = lost.expect("it is reported");
    assert!(hold.node_path().starts_with("/all/b/"));
    assert_eq!(reason, LossReason::Deleted);
    assert!(!holds.is_held() && holds.remaining().is_zero());
    assert!(matches!(holds.release().await, Err(Error::Lost { .. })));
    assert_free(&theirs).await;
}

#[tokio::test(start_paused = true)]
async fn one_lost_while_the_next_is_waited_for_ends_the_wait() {
    let (simulation, ours, theirs) = simulated().await;
    let third = held(&theirs, "/all/c").await;
    let all = all_of(&ours, PATHS);
    let waiter = tokio::spawn(async move { all.acquire().await });
    queue_length(&*lock(&theirs, "/all/c"), 2).await;
    let first = &simulation.administrator().children("/all/a")[0];
    delete(&simulation, &format!("/all/a/{first}"));
    let outcome = in_time("the end", waiter).await.expect("no panic");
    assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
    third.release().await.expect("it is released");
    assert_free(&theirs).await;
}

#[tokio::test(start_paused = true)]
async fn all_last_as_long_as_the_first_that_ends() {
    let (_simulation, session, _) = simulated().await;
    let limit = Duration::from_secs(2);
    let options = LockOptions::new().max_hold(limit);
    let short = ExclusiveLock::with_options(&session, "/all/b", options);
    let short: Box<dyn Recipe> = Box::new(short.expect("good options"));
    let all = AllOf::new([lock(&session, "/all/a"), short]).expect("two locks");
    let all = all.acquire().await.expect("nobody is before it");
    assert!(all.remaining() <= limit && !all.remaining().is_zero());
    let lasts = all.holds()[0].remaining();
    assert!(lasts > limit, "{lasts:?}");
}

#[tokio::test(start_paused = true)]
async fn none_and_twice_the_same_are_refused() {
    let (_simulation, session, _) = simulated().await;
    assert!(AllOf::new([]).is_err());
    let error = AllOf::new([lock(&session, "/all/a"), lock(&session, "/all/a")])
        .expect_err("one would wait for the other");
    assert_eq!(error.value(), "/all/a");
    let locks = Locks::new(&session, "/keys").and_then(|locks| locks.striped(1));
    let locks = locks.expect("one stripe");
    let of_one_stripe = ["one", "other"].map(|name| {
        let lock = locks.lock(name).expect("a good name");
        Box::new(lock) as Box<dyn Recipe>
    });
    assert!(AllOf::new(of_one_stripe).is_err());
}

/// A simulation with two chroots, and the sessions of a process under `/`, `/app` and `/zoo`.
async fn under_chroots(seed: u64) -> (Simulation, [Session; 3]) {
    let simulation = Simulation::with(|it| it.seed = seed);
    for path in ["/app", "/zoo"] {
        let administrator = simulation.administrator();
        let made = administrator.create(path, b"", CreateMode::Persistent);
        made.expect("there is none");
    }
    let under = async |process: &str, chroot: &str| {
        let process = simulation.process(process).with_chroot(chroot);
        let opened = Session::open(process.ensemble(), ConnectOptions::new()).await;
        opened.expect("a session opens")
    };
    let plain = simulated_session(&simulation, "plain").await;
    let [app, zoo] = [under("app", "/app").await, under("zoo", "/zoo").await];
    (simulation, [plain, app, zoo])
}

#[tokio::test(start_paused = true)]
async fn processes_with_different_chroots_do_not_wait_for_each_other() {
    for seed in 0..20 {
        let (_simulation, [plain, app, zoo]) = under_chroots(seed).await;
        // The paths below the chroots are in the other order.
        let each = [
            AllOf::new([lock(&plain, "/app/z"), lock(&plain, "/zoo/a")]),
            AllOf::new([lock(&app, "/z"), lock(&zoo, "/a")]),
        ];
        let turns = each.map(|all| async {
            let all = all.expect("two locks");
            let holds = all.acquire_timeout(PATIENCE).await?;
            sleep(Duration::from_millis(10)).await;
            holds.release().await
        });
        let done = join_all(turns).await;
        assert!(done.iter().all(Result::is_ok), "{seed}: {done:?}");
    }
}

#[tokio::test]
async fn ensemble_is_the_same_by_each_list_of_its_hosts() {
    let at = |connect_string: &str, path: &str| {
        let options = ConnectOptions::new();
        let session = Session::connect_in_background(connect_string, options);
        lock(&session.expect("a connect string"), path)
    };
    for other in ["zk2.invalid:2181,zk1.invalid:2181/app", "ZK2.invalid/app"] {
        let one = at("zk1.invalid,zk2.invalid", "/app/lock");
        let error = AllOf::new([one, at(other, "/lock")]).expect_err("one lock");
        assert_eq!(error.value(), "/app/lock");
    }
    let order = |hosts: [&str; 2]| {
        let all = AllOf::new(hosts.map(|host| at(host, "/lock"))).expect("two ensembles");
        let addresses = all
            .recipes()
            .map(|it| it.session().ensemble().facts().address.clone());
        addresses.collect::<Vec<_>>()
    };
    let (one, other) = ("zk1.invalid", "zk2.invalid");
    assert_eq!(order([one, other]), order([other, one]));
}

/// A waiter for the first of them, which then asks for the next, finds that free, too.
#[tokio::test(start_paused = true)]
async fn holds_that_are_dropped_are_released_in_the_opposite_order() {
    let (simulation, ours, _theirs) = simulated().await;
    let holds = all_of(&ours, PATHS).acquire().await.expect("all are free");
    drop(holds);
    sleep(Duration::from_secs(1)).await;
    let history = simulation.history().into_iter();
    let released = history.filter_map(|commit| match commit.change {
        Change::Deleted { path, .. } => Some(path.rsplit_once('/')?.0.to_owned()),
        _ => None,
    });
    let reversed = ["/all/c", "/all/b", "/all/a"];
    assert_eq!(released.collect::<Vec<_>>(), reversed);
}
