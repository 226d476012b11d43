//! Circles: planted ones are found, and nothing else is shown as one.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::time::sleep;
use zookeeper_recipes::AllOf;
use zookeeper_recipes_core::{Hold, Recipe, Session, SessionId};
use zookeeper_recipes_overview::{ContenderState, LiveOverview, Overview, QueueStatus};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation};
use zookeeper_recipes_suite::{
    ELECTION, LOCK, LONG, RWLOCK, SEMAPHORE, TestServer, TestedRecipe, WRITER, in_time, session,
    simulated_session,
};

use crate::support::{CURATOR, Waiter, client, create, look, queue, until_queued, viewer, waiter};

/// What a session of a planted circle holds, and what another one then wants of the same.
const RESOURCES: [(TestedRecipe, u64, u64); 6] = [
    (LOCK, 1, 1),
    (RWLOCK, 1, WRITER),
    (SEMAPHORE.of(1), 1, 1),
    (RWLOCK, WRITER, 1),
    (SEMAPHORE.of(3), 2, 3),
    (ELECTION, 1, 1),
];

/// Sessions that each hold a resource, and then want that of the next one.
struct Planted {
    sessions: Vec<Session>,
    holds: Vec<Hold>,
    waiters: Vec<Waiter>,
}

fn path(number: usize) -> String {
    format!("/deep/{number}/resource")
}

async fn plant(simulation: &Simulation, number: usize) -> Planted {
    let mut planted = Planted {
        sessions: Vec::new(),
        holds: Vec::new(),
        waiters: Vec::new(),
    };
    for one in 0..number {
        let session = simulated_session(simulation, &format!("session {one}")).await;
        let (recipe, weight, _) = RESOURCES[one % RESOURCES.len()];
        let hold = recipe.at(&session, &path(one), weight).acquire().await;
        planted.holds.push(hold.expect("it is free"));
        planted.sessions.push(session);
    }
    for one in 0..number {
        let next = (one + 1) % number;
        let (recipe, _, weight) = RESOURCES[next % RESOURCES.len()];
        let wanted = recipe.at(&planted.sessions[one], &path(next), weight);
        planted.waiters.push(waiter(wanted));
        until_queued(simulation, &path(next), 2).await;
    }
    planted
}

fn sessions_of(overview: &Overview) -> Vec<BTreeSet<SessionId>> {
    let circles = overview.circles().iter();
    let sessions = circles.map(|circle| circle.waits.iter().map(|it| it.waiter.session_id));
    sessions.map(Iterator::collect).collect()
}

#[tokio::test(start_paused = true)]
async fn planted_deadlocks_are_found_and_their_way_out_breaks_them() {
    for number in [2, 3, 10] {
        let simulation = Simulation::default();
        let viewer = viewer(&simulation).await;
        let planted = plant(&simulation, number).await;
        let expected = planted.sessions.iter().filter_map(Session::id).collect();
        let overview = look(&viewer).await;
        assert_eq!(sessions_of(&overview), [expected], "{number} sessions");
        let circle = &overview.circles()[0];
        for (wait, next) in circle.waits.iter().zip(circle.waits.iter().cycle().skip(1)) {
            assert_eq!(wait.blocker.session_id, next.waiter.session_id);
            assert_eq!(wait.blocker.state, ContenderState::Holds);
            let queue = overview.queue(&wait.path).expect("its queue is shown");
            let names: Vec<_> = queue.contenders().map(|it| it.name).collect();
            assert_eq!(names, [&*wait.blocker.name, &*wait.waiter.name]);
        }
        let youngest = circle.waits.iter().map(|wait| wait.waiter.created).max();
        assert_eq!(Some(circle.since()), youngest);

        let out = circle.way_out().expect("a way out");
        let node = format!("{}/{}", out.path, out.blocker.name);
        assert_eq!(out.blocker.session_id, circle.waits[0].waiter.session_id);
        simulation
            .administrator()
            .delete(&node)
            .expect("it is there");
        assert!(look(&viewer).await.circles().is_empty());
        drop((planted.holds, planted.waiters));
    }
}

/// A waiter between two of the circle is a part of the wait.
#[tokio::test(start_paused = true)]
async fn waiters_behind_and_between_do_not_hide_a_deadlock() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, third, last] = sessions(&simulation).await;
    let _holds = [hold(&one, "/a").await, hold(&other, "/b").await];
    let _between = wait(&simulation, &third, "/b", 2).await;
    let _closes = [
        wait(&simulation, &one, "/b", 3).await,
        wait(&simulation, &other, "/a", 2).await,
    ];
    let _behind = wait(&simulation, &last, "/a", 3).await;
    let overview = look(&viewer).await;
    let found = sessions_of(&overview);
    let expected: BTreeSet<_> = [&one, &other, &third]
        .iter()
        .filter_map(|it| it.id())
        .collect();
    assert_eq!(found, [expected]);
}

#[tokio::test(start_paused = true)]
async fn two_deadlocks_are_two_circles() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let sessions = sessions(&simulation).await;
    let mut kept = Vec::new();
    for (pair, [a, b]) in sessions.chunks(2).zip([["/a", "/b"], ["/c", "/d"]]) {
        let holds = [hold(&pair[0], a).await, hold(&pair[1], b).await];
        let first = wait(&simulation, &pair[0], b, 2).await;
        kept.push((holds, first, wait(&simulation, &pair[1], a, 2).await));
        sleep(Duration::from_secs(1)).await;
    }
    let found = sessions_of(&look(&viewer).await);
    let pairs = sessions.chunks(2);
    let expected: Vec<BTreeSet<_>> = pairs
        .map(|pair| pair.iter().filter_map(Session::id).collect())
        .collect();
    assert_eq!(found, expected, "the oldest one first");
}

async fn sessions(simulation: &Simulation) -> [Session; 4] {
    let names = ["one", "other", "third", "last"];
    let mut sessions = Vec::new();
    for name in names {
        sessions.push(simulated_session(simulation, name).await);
    }
    sessions.try_into().expect("four of them")
}

async fn hold(session: &Session, path: &str) -> Hold {
    let held = LOCK.at(session, path, 1).acquire().await;
    held.expect("it is free")
}

async fn wait(simulation: &Simulation, session: &Session, path: &str, place: usize) -> Waiter {
    let waiter = waiter(LOCK.at(session, path, 1));
    until_queued(simulation, path, place).await;
    waiter
}

/// A waiter for a semaphore holds once one of several holders leaves.
#[tokio::test(start_paused = true)]
async fn waiter_for_a_semaphore_is_stuck_only_if_all_holders_before_it_are() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, third, last] = sessions(&simulation).await;
    let permit = |session: &Session| SEMAPHORE.of(2).at(session, "/permits", 1);
    let first = permit(&one).acquire().await.expect("a permit");
    let second = permit(&other).acquire().await.expect("a permit");
    let _lock = hold(&third, "/lock").await;
    let _third = waiter(permit(&third));
    until_queued(&simulation, "/permits", 3).await;
    let _one = wait(&simulation, &one, "/lock", 2).await;
    assert!(
        look(&viewer).await.circles().is_empty(),
        "the other one can release"
    );
    // The queue in which the other one waits is looked at last.
    let _last = hold(&last, "/z").await;
    let until_last = wait(&simulation, &other, "/z", 2).await;
    assert!(
        look(&viewer).await.circles().is_empty(),
        "the last one can release, and then the other one"
    );
    until_last.abort();
    let _other = wait(&simulation, &other, "/lock", 3).await;
    assert_eq!(look(&viewer).await.circles().len(), 1);
    second.release().await.expect("it is held");
    assert!(look(&viewer).await.circles().is_empty());
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn session_that_waits_behind_itself_is_no_circle() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, ..] = sessions(&simulation).await;
    let _held = hold(&one, "/lock").await;
    let _own = wait(&simulation, &one, "/lock", 2).await;
    let _other = wait(&simulation, &other, "/lock", 3).await;
    assert!(look(&viewer).await.circles().is_empty());
}

/// Queues are judged in the order of their paths. That the holder of `/d` can release is seen last,
/// after each session before it has seemed stuck.
#[tokio::test(start_paused = true)]
async fn chain_of_waits_that_ends_in_the_last_queue_is_no_circle() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, third, fourth] = sessions(&simulation).await;
    let last = simulated_session(&simulation, "the last of all").await;
    let permit = |session: &Session| SEMAPHORE.of(2).at(session, "/b", 1);
    let _permits = [
        permit(&one).acquire().await.expect("a permit"),
        permit(&other).acquire().await.expect("a permit"),
    ];
    let _holds = [
        hold(&third, "/a").await,
        hold(&fourth, "/c").await,
        hold(&last, "/d").await,
    ];
    let _waits_for_permit = waiter(permit(&third));
    until_queued(&simulation, "/b", 3).await;
    let _waits = [
        wait(&simulation, &one, "/a", 2).await,
        wait(&simulation, &other, "/c", 2).await,
        wait(&simulation, &fourth, "/d", 2).await,
    ];
    let overview = look(&viewer).await;
    assert!(overview.circles().is_empty(), "{:?}", overview.circles());
    let _closes = wait(&simulation, &last, "/a", 3).await;
    assert_eq!(look(&viewer).await.circles().len(), 1);
}

/// Two processes with several tasks each share a lock, as many services do.
#[tokio::test(start_paused = true)]
async fn tasks_that_queue_for_one_lock_are_no_circle() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, ..] = sessions(&simulation).await;
    let _held = hold(&one, "/lock").await;
    let mut waiters = Vec::new();
    for place in 2..8 {
        let session = if place % 2 == 0 { &other } else { &one };
        waiters.push(wait(&simulation, session, "/lock", place).await);
    }
    let overview = look(&viewer).await;
    assert!(overview.circles().is_empty(), "{:?}", overview.circles());
    // With a second queue, one of the tasks may be what the other queue waits for.
    let _second = hold(&other, "/second").await;
    let _waits = wait(&simulation, &one, "/second", 2).await;
    let overview = look(&viewer).await;
    let [circle] = overview.circles() else {
        panic!("{:?}", overview.circles())
    };
    let paths: Vec<&str> = circle.waits.iter().map(|wait| &*wait.path).collect();
    assert_eq!(paths, ["/second", "/lock"]);
}

/// Each session has a task in each queue. The holders can release.
#[tokio::test(start_paused = true)]
async fn tasks_that_wait_for_two_locks_in_opposite_order_are_no_circle() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, third, last] = sessions(&simulation).await;
    let _holds = [hold(&third, "/a").await, hold(&last, "/b").await];
    let _waits = [
        wait(&simulation, &one, "/a", 2).await,
        wait(&simulation, &other, "/a", 3).await,
        wait(&simulation, &other, "/b", 2).await,
        wait(&simulation, &one, "/b", 3).await,
    ];
    let overview = look(&viewer).await;
    assert!(overview.circles().is_empty(), "{:?}", overview.circles());
}

/// Another task of a stuck session waits behind a victim.
#[tokio::test(start_paused = true)]
async fn tasks_that_wait_behind_a_deadlock_are_no_part_of_it() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, victim, _] = sessions(&simulation).await;
    let _holds = [hold(&one, "/a").await, hold(&other, "/b").await];
    let _waits = [
        wait(&simulation, &one, "/b", 2).await,
        wait(&simulation, &other, "/a", 2).await,
        wait(&simulation, &victim, "/a", 3).await,
        wait(&simulation, &one, "/a", 4).await,
    ];
    let overview = look(&viewer).await;
    let [circle] = overview.circles() else {
        panic!("{:?}", overview.circles())
    };
    let paths: Vec<&str> = circle.waits.iter().map(|wait| &*wait.path).collect();
    assert_eq!(paths, ["/a", "/b"]);
}

/// The wait for `/z` has ended before the wait for `/a` begins, and both are listed.
#[tokio::test(start_paused = true)]
async fn circle_of_two_moments_is_not_shown() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, ..] = sessions(&simulation).await;
    let (_a, _z) = (hold(&one, "/a").await, hold(&other, "/z").await);
    let until = LOCK.at(&one, "/z", 1);
    let given_up = tokio::spawn(async move { drop(until.acquire().await) });
    until_queued(&simulation, "/z", 2).await;
    let faults = simulation.faults();
    // Lists are sent in the order from last to first.
    faults.inject(late_list(1));
    let looking = tokio::spawn(async move { look(&viewer).await });
    while faults.waiting() > 0 {
        sleep(Duration::from_millis(10)).await;
    }
    given_up.abort();
    until_queued(&simulation, "/z", 1).await;
    let _late = wait(&simulation, &other, "/a", 2).await;
    let overview = looking.await.expect("no panic");
    assert_eq!(
        overview.queue("/a").map(QueueStatus::len),
        Some(2),
        "it is listed late"
    );
    assert!(overview.circles().is_empty(), "{:?}", overview.circles());
}

/// The list of `/a` by the viewer, the first one or a later one, arrives a second later.
fn late_list(nth: u64) -> Fault {
    let late = Fault::new(FaultKind::RequestLate(Duration::from_secs(1)));
    late.of_process("viewer")
        .on(RequestKind::List)
        .under("/a")
        .nth(nth)
}

/// The second list of `/a` is that of the second look.
#[tokio::test(start_paused = true)]
async fn circle_that_has_ended_before_the_second_look_is_not_shown() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, ..] = sessions(&simulation).await;
    let (_a, _b) = (hold(&one, "/a").await, hold(&other, "/b").await);
    let _one = wait(&simulation, &one, "/b", 2).await;
    let until = LOCK.at(&other, "/a", 1);
    let given_up = tokio::spawn(async move { drop(until.acquire().await) });
    until_queued(&simulation, "/a", 2).await;
    let faults = simulation.faults();
    let late = Fault::new(FaultKind::RequestLate(Duration::from_secs(1)));
    faults.inject(
        late.of_process("viewer")
            .on(RequestKind::List)
            .under("/a")
            .nth(2),
    );
    let looking = tokio::spawn(async move { look(&viewer).await });
    while faults.waiting() > 0 {
        sleep(Duration::from_millis(10)).await;
    }
    given_up.abort();
    until_queued(&simulation, "/a", 1).await;
    // As soon as the other one waits again, it is in another place of the queue.
    let _again = wait(&simulation, &other, "/a", 2).await;
    let overview = looking.await.expect("no panic");
    assert!(overview.circles().is_empty(), "{:?}", overview.circles());
}

/// Nobody can say who waits for a permit whose number is not recorded.
#[tokio::test(start_paused = true)]
async fn circle_over_an_unknown_number_is_not_guessed() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other] = [
        client(&simulation, "one").await,
        client(&simulation, "other").await,
    ];
    for path in ["/lock", "/leases"] {
        create(&simulation, path, "");
    }
    queue(&one, &format!("/lock/{CURATOR}lock-"), "one").await;
    queue(&other, &format!("/leases/{CURATOR}lease-"), "other").await;
    queue(&other, &format!("/lock/{CURATOR}lock-"), "other").await;
    queue(&one, &format!("/leases/{CURATOR}lease-"), "one").await;
    assert!(look(&viewer).await.circles().is_empty());
}

/// How long the holders of a load stay, how often it is looked at, and with which pause.
#[derive(Clone, Copy)]
struct Load {
    stay: u64,
    looks: usize,
    pause: Duration,
}

const QUICK: Load = Load {
    stay: 20,
    looks: 30,
    pause: Duration::from_millis(7),
};

/// Acquires several recipes in one order, as `AllOf` does, again and again. Tries for one more.
async fn acquire_in_order(session: Session, load: Load, mut rng: Rng) {
    loop {
        let mut drawn = rng.choose_multiple(RESOURCES.into_iter().enumerate(), 4);
        let mut draw = |(number, (recipe, one, other)): (usize, (TestedRecipe, u64, u64))| {
            let weight = if rng.bool() { one } else { other };
            recipe.at(&session, &path(number), weight)
        };
        let one_more = drawn.pop().map(&mut draw).expect("there are four");
        let recipes: Vec<Box<dyn Recipe>> = drawn.into_iter().map(draw).collect();
        let all = AllOf::new(recipes).expect("they have different paths");
        let holds = all.acquire().await.expect("it holds");
        if rng.u8(..3) == 0 {
            drop(one_more.try_acquire().await.expect("an answer"));
        }
        sleep(Duration::from_millis(rng.u64(0..load.stay))).await;
        if rng.bool() {
            holds.release().await.expect("they are held");
        }
    }
}

/// Has these sessions acquire in order, and looks at them. Returns how many waits were seen.
async fn ordered_load(viewer: &Session, sessions: Vec<Session>, seed: u64, load: Load) -> usize {
    let mut working = Vec::new();
    for (number, session) in sessions.into_iter().enumerate() {
        let rng = Rng::with_seed(seed << 8 | number as u64);
        working.push(tokio::spawn(acquire_in_order(session, load, rng)));
    }
    let mut waiting = 0;
    for _ in 0..load.looks {
        let overview = look(viewer).await;
        let circles = overview.circles();
        assert!(circles.is_empty(), "seed {seed}: {circles:?}");
        waiting += overview.sessions().iter().map(|it| it.waits).sum::<usize>();
        sleep(load.pause).await;
    }
    for working in working {
        assert!(!working.is_finished(), "it has panicked");
        working.abort();
    }
    waiting
}

/// `OVERVIEW_HOURS` adds so many hours of simulated time.
#[tokio::test(start_paused = true)]
async fn ordered_acquisitions_are_never_shown_as_a_circle() {
    let hours = std::env::var("OVERVIEW_HOURS").ok();
    let hours = hours.map_or(0, |it| it.parse().expect("OVERVIEW_HOURS is a number"));
    let hour = Load {
        stay: 2_000,
        looks: 14_400,
        pause: Duration::from_millis(250),
    };
    let runs = (0..20).map(|seed| (seed, QUICK));
    for (seed, load) in runs.chain((20..20 + hours).map(|seed| (seed, hour))) {
        let simulation = Simulation::with(|it| {
            it.seed = seed;
            it.servers = 3;
            it.trace_limit = 0;
        });
        let viewer = viewer(&simulation).await;
        let mut sessions = Vec::new();
        for number in 0..6 {
            let name = format!("session {number}");
            sessions.push(simulated_session(&simulation, &name).await);
        }
        let waiting = ordered_load(&viewer, sessions, seed, load).await;
        println!("seed {seed}: {waiting} waits");
        assert!(
            waiting > load.looks,
            "seed {seed}: {waiting} waits were seen"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ordered_acquisitions_on_a_server_are_never_shown_as_a_circle() {
    let server = TestServer::embedded().await;
    let viewer = session(&server, LONG).await;
    let mut sessions = Vec::new();
    for _ in 0..6 {
        sessions.push(session(&server, LONG).await);
    }
    let load = Load {
        looks: 200,
        ..QUICK
    };
    let waiting = ordered_load(&viewer, sessions, 1, load).await;
    assert!(waiting > load.looks, "{waiting} waits were seen");
}

#[tokio::test(start_paused = true)]
async fn deadlock_is_found_although_the_viewer_loses_its_connection_and_its_session() {
    for kind in [
        FaultKind::ReplyLost,
        FaultKind::SessionExpired,
        FaultKind::Throttled,
    ] {
        for request in [RequestKind::List, RequestKind::GetEach, RequestKind::Sync] {
            let simulation = Simulation::default();
            let viewer = viewer(&simulation).await;
            let _planted = plant(&simulation, 2).await;
            let fault = Fault::new(kind).of_process("viewer").on(request);
            simulation.faults().inject(fault);
            let overview = look(&viewer).await;
            assert_eq!(overview.circles().len(), 1, "{kind:?} at {request:?}");
            assert_eq!(simulation.faults().waiting(), 0);
        }
    }
}

/// An overview that is kept up to date, and has shown no circle.
async fn live_without_circle(viewer: &Session) -> watch::Receiver<LiveOverview> {
    let live = Overview::watch(viewer, "/", Duration::from_secs(1)).await;
    let mut live = live.expect("a look");
    in_time("a look ends", live.changed()).await.expect("open");
    assert!(live.borrow().overview.circles().is_empty());
    live
}

async fn until_circle(live: &mut watch::Receiver<LiveOverview>) {
    let shown = live.wait_for(|live| live.overview.circles().len() == 1);
    drop(in_time("it is shown", shown).await.expect("open"));
}

#[tokio::test(start_paused = true)]
async fn deadlock_is_shown_that_closes_after_looks_without_one() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, third, last] = sessions(&simulation).await;
    let _holds = [hold(&one, "/a").await, hold(&other, "/b").await];
    let _opens = wait(&simulation, &one, "/b", 2).await;
    let mut live = live_without_circle(&viewer).await;
    // A queue of sessions that are nowhere else.
    let _apart = hold(&third, "/apart").await;
    let _waits = wait(&simulation, &last, "/apart", 2).await;
    sleep(Duration::from_secs(3)).await;
    assert!(live.borrow().overview.circles().is_empty());
    let _closes = wait(&simulation, &other, "/a", 2).await;
    until_circle(&mut live).await;
}

/// The last wait is for a contender without a session, and no part of the circle.
#[tokio::test(start_paused = true)]
async fn deadlock_is_shown_once_a_holder_beside_it_cannot_go_on() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other, third, _] = sessions(&simulation).await;
    let permit = |session: &Session| SEMAPHORE.of(2).at(session, "/permits", 1);
    let _permits = [
        permit(&one).acquire().await.expect("a permit"),
        permit(&other).acquire().await.expect("a permit"),
    ];
    let _lock = hold(&third, "/lock").await;
    let _third = waiter(permit(&third));
    until_queued(&simulation, "/permits", 3).await;
    let _one = wait(&simulation, &one, "/lock", 2).await;
    create(&simulation, "/left", "");
    create(&simulation, &format!("/left/{CURATOR}lock-0000000000"), "");
    let mut live = live_without_circle(&viewer).await;
    let _other = wait(&simulation, &other, "/left", 2).await;
    until_circle(&mut live).await;
}

#[tokio::test(start_paused = true)]
async fn end_of_a_session_ends_its_circle() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let planted = plant(&simulation, 3).await;
    assert_eq!(look(&viewer).await.circles().len(), 1);
    let dead = planted.sessions[1].id().expect("it is open");
    simulation.administrator().expire(dead);
    let overview = look(&viewer).await;
    assert!(overview.circles().is_empty());
    assert!(overview.sessions().iter().all(|it| it.session_id != dead));
}
