//! One value for many locks, on a simulated ensemble.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use tokio::task::JoinSet;
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions, Locks};
use zookeeper_recipes_simulation::{Change, Simulation};
use zookeeper_recipes_suite::{in_time, simulated_session};

const PATH: &str = "/keys";

async fn locks(simulation: &Simulation) -> Locks {
    let session = simulated_session(simulation, "worker").await;
    Locks::new(&session, PATH).expect("a good path")
}

fn lock(locks: &Locks, name: &str) -> ExclusiveLock {
    locks.lock(name).expect("a good name")
}

/// Has the value look for idle locks, by calls for other names.
fn look_for_idle(locks: &Locks) {
    for name in 0..1_000 {
        lock(locks, &format!("other-{name}"));
    }
}

/// True if both are one value.
fn are_one(one: &ExclusiveLock, other: &ExclusiveLock) -> bool {
    std::ptr::eq(one.path().as_str(), other.path().as_str())
}

/// The most contenders for each lock that were there at a time.
fn most_contenders(simulation: &Simulation) -> Arc<Mutex<HashMap<String, (usize, usize)>>> {
    let counts = Arc::new(Mutex::new(HashMap::<String, (usize, usize)>::new()));
    let counted = counts.clone();
    simulation.on_commit(move |committed| {
        let (path, is_there) = match &committed.change {
            Change::Created { path, .. } => (path, true),
            Change::Deleted { path } => (path, false),
            _ => return,
        };
        let Some((directory, _)) = path.split_once("/_c_") else {
            return;
        };
        let mut counts = counted.lock().expect("no test panics with it");
        let (now, most) = counts.entry(directory.to_owned()).or_default();
        *now = if is_there { *now + 1 } else { *now - 1 };
        *most = (*most).max(*now);
    });
    counts
}

#[tokio::test(start_paused = true)]
async fn hold_keeps_its_lock_though_nobody_has_the_lock_any_more() {
    let simulation = Simulation::default();
    let counts = most_contenders(&simulation);
    let locks = locks(&simulation).await;
    let hold = lock(&locks, "4711").acquire().await.expect("it is free");
    look_for_idle(&locks);

    let waiting = tokio::spawn({
        let lock = lock(&locks, "4711");
        async move { lock.acquire().await.expect("it is released") }
    });
    // The waiter waits in the process, and is no contender of its own.
    tokio::task::yield_now().await;
    look_for_idle(&locks);
    hold.release().await.expect("it is held");
    let next = in_time("the next one holds", waiting).await;
    assert!(next.expect("it does not panic").is_held());
    assert_eq!(
        counts.lock().expect("no panic")[&format!("{PATH}/4711")].1,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn lock_that_a_task_still_has_is_not_made_again() {
    let simulation = Simulation::default();
    let locks = locks(&simulation).await;
    let kept = lock(&locks, "4711");
    look_for_idle(&locks);
    assert!(are_one(&kept, &lock(&locks, "4711")));
    assert!(are_one(&kept, &lock(&locks.clone(), "4711")));
}

/// How many locks the value keeps.
fn kept(locks: &Locks) -> usize {
    let printed = format!("{locks:?}");
    let (_, number) = printed.split_once("kept: ").expect("it is printed");
    let number: String = number.chars().take_while(char::is_ascii_digit).collect();
    number.parse().expect("a number")
}

#[tokio::test(start_paused = true)]
async fn idle_locks_are_forgotten_and_locks_in_use_are_not() {
    let simulation = Simulation::default();
    let locks = locks(&simulation).await;
    let names = (0..100).map(|name| name.to_string());
    let in_use: Vec<_> = names.map(|name| lock(&locks, &name)).collect();
    look_for_idle(&locks);
    assert!((100..=265).contains(&kept(&locks)), "{locks:?}");
    for (name, one) in in_use.iter().enumerate() {
        assert!(are_one(one, &lock(&locks, &name.to_string())), "{name}");
    }
    drop(in_use);
    look_for_idle(&locks);
    assert!(kept(&locks) <= 65, "{locks:?}");
}

#[tokio::test(start_paused = true)]
async fn name_that_is_no_segment_is_refused_at_once() {
    let simulation = Simulation::default();
    let locks = locks(&simulation).await;
    for name in ["", "a/b", "/a", ".", "..", "a\u{0}"] {
        let refused = locks.lock(name).expect_err("no segment");
        assert_eq!(refused.value(), name);
        let stripes = locks.striped(4).expect("four stripes");
        stripes.lock(name).expect("any text has a stripe");
    }
    assert!(locks.striped(0).is_err());
    let no_acl = LockOptions::new().acl([]);
    let session = simulated_session(&simulation, "other").await;
    assert!(Locks::with_options(&session, PATH, no_acl).is_err());
}

#[tokio::test(start_paused = true)]
async fn names_of_one_stripe_exclude_each_other_in_each_process() {
    let simulation = Simulation::default();
    let stripes = locks(&simulation).await.striped(2).expect("two stripes");
    let session = simulated_session(&simulation, "other").await;
    let others = Locks::new(&session, PATH).and_then(|locks| locks.striped(2));
    let others = others.expect("two stripes");
    let first = lock(&stripes, "a name/with a slash");
    let _hold = first.acquire().await.expect("it is free");
    for name in (0..10).map(|name| name.to_string()) {
        let lock = lock(&others, &name);
        let tried = lock.try_acquire().await.expect("the server answers");
        assert_eq!(tried.is_none(), lock.path() == first.path(), "{name}");
    }
}

/// Threads drop locks and holds while others ask for the same names, and the idle are forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_share_one_lock_for_each_name_and_exclude_each_other() {
    const TASKS: usize = 8;
    const TURNS: usize = 150;
    const NAMES: usize = 3;
    let simulation = Simulation::default();
    let most = most_contenders(&simulation);
    let locks = locks(&simulation).await;
    let held: Arc<[AtomicBool; NAMES]> = Arc::default();
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (locks, held) = (locks.clone(), held.clone());
        tasks.spawn(async move {
            for turn in 0..TURNS {
                let name = (task + turn) % NAMES;
                let hold = lock(&locks, &name.to_string()).acquire().await;
                let hold = hold.expect("the session lives");
                let is_held = held[name].swap(true, Ordering::SeqCst);
                assert!(!is_held, "two hold {name}");
                for other in 0..20 {
                    lock(&locks, &format!("{task}-{other}"));
                }
                held[name].store(false, Ordering::SeqCst);
                // A thread outside of the runtime ends the hold.
                thread::spawn(move || drop(hold)).join().expect("it drops");
            }
        });
    }
    in_time("all turns", tasks.join_all()).await;
    let most = most.lock().expect("no task panics with it");
    for name in 0..NAMES {
        let (now, most) = most[&format!("{PATH}/{name}")];
        assert_eq!(
            most, 1,
            "name {name}: the tasks of a process are one contender"
        );
        assert!(now <= 1, "{now} left");
    }
}
