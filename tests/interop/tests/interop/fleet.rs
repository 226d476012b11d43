//! A fleet of three libraries on an ensemble, which is killed and stopped: each look at its queues
//! agrees with plain lists of them. And sessions of three libraries that wait for each other.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::time::sleep;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_interop::Peer as Process;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_overview::{ContenderState, Overview};
use zookeeper_recipes_suite::{LONG, TICK, TestServer, in_time, queue_length, session};
use zookeeper_recipes_testkit::{Ensemble, ServerOptions};

use crate::peers::{Peer, available};
use crate::process::PATIENCE;

/// For how many seconds the fleet is killed and stopped. `FLEET_SECONDS` sets another number.
const SECONDS: u64 = 6;

const QUEUES: usize = 200;

const BASE: &str = "/fleet";

/// Of the sessions of Curator and kazoo.
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

fn path(queue: usize) -> String {
    format!("{BASE}/{queue}")
}

/// Starts the program of a library in the role `work`.
async fn started(peer: Peer, connect: &str) -> Process {
    let mut command = peer.run();
    let timeout = SESSION_TIMEOUT.as_millis().to_string();
    command.args([connect, &timeout, "work"]);
    let name = match peer {
        Peer::Curator => "Curator",
        Peer::Kazoo => "kazoo",
    };
    Process::start(name, command).await.expect("it starts")
}

/// A process that takes turns at all queues, until it is killed.
async fn contends(peer: Peer, connect: &str) -> Process {
    let mut process = started(peer, connect).await;
    let order = format!("run many {BASE} {QUEUES} 100000000");
    process.order(&order).await.expect("it runs");
    process
}

/// Sends a signal to a process.
fn signal(signal: &str, process: &Process) {
    let id = process.process_id().expect("it runs").to_string();
    let sent = Command::new("kill").args([signal, &id]).status();
    assert!(sent.expect("there is a kill").success());
}

/// A contender of ours, which takes turns at a queue.
async fn take_turns(session: Session, queue: usize) {
    let lock = ExclusiveLock::new(&session, path(queue)).expect("a good path");
    for turn in 0.. {
        // While members are killed, some attempts fail.
        if let Ok(hold) = lock.acquire().await {
            sleep(Duration::from_millis((queue * 7 + turn * 13) as u64 % 600)).await;
            drop(hold.release().await);
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Until this moment, processes and members are killed and stopped.
async fn strike(ensemble: &mut Ensemble, until: Instant, mut rng: Rng) {
    let connect = ensemble.connect_string();
    let peers = [Peer::Curator, Peer::Kazoo];
    let mut processes = Vec::new();
    for peer in peers {
        processes.push(contends(peer, &connect).await);
    }
    for round in 0.. {
        let (number, longest) = (rng.usize(..2), if round % 4 == 3 { 6_000 } else { 1_500 });
        let pause = Duration::from_millis(rng.u64(200..longest));
        if Instant::now() + pause >= until {
            break;
        }
        match round % 3 {
            0 => {
                signal("-STOP", &processes[number]);
                sleep(pause).await;
                signal("-CONT", &processes[number]);
            }
            1 => {
                let member = rng.usize(..3);
                ensemble.members_mut()[member]
                    .kill()
                    .await
                    .expect("it is killed");
                sleep(pause).await;
                ensemble.restart(member).await.expect("it is back");
            }
            _ => {
                signal("-KILL", &processes[number]);
                sleep(pause).await;
                processes[number] = contends(peers[number], &connect).await;
            }
        }
    }
    sleep(until.saturating_duration_since(Instant::now())).await;
}

/// The contenders of each queue, first in, first out: read without any of the code under test.
async fn listed(session: &Session) -> Vec<Vec<String>> {
    let any = path(0).parse().expect("a good path");
    loop {
        let server = session.server(&any).await.expect("it is open");
        if server.sync("/").await.is_err() {
            continue;
        }
        let paths: Vec<String> = (0..QUEUES).map(path).collect();
        let lists = join_all(paths.iter().map(|path| server.list(path))).await;
        let refused = lists.iter().filter_map(|list| list.as_ref().err());
        if refused
            .into_iter()
            .any(|error| !error.to_string().contains("NoNode"))
        {
            continue;
        }
        let order = |list: Result<Vec<String>, _>| {
            let mut names = list.unwrap_or_default();
            names.retain(|name| number(name).is_some());
            names.sort_unstable_by_key(|name| number(name));
            names
        };
        return lists.into_iter().map(order).collect();
    }
}

/// The number at the end of the name of a contender.
fn number(name: &str) -> Option<u32> {
    let is_contender = name.contains("lock-") || name.contains("__lock__");
    let digits = name.get(name.len().checked_sub(10)?..)?;
    digits.parse().ok().filter(|_| is_contender)
}

/// Compares a queue with two lists of it, from before the look and from after it. True if the lists
/// say who has held all the while.
fn agrees(overview: &Overview, queue: usize, before: &[String], after: &[String]) -> bool {
    let shown = overview.queue(&path(queue)).into_iter();
    let shown: Vec<_> = shown
        .flat_map(|it| it.contenders().collect::<Vec<_>>())
        .collect();
    let stayed: Vec<&String> = before.iter().filter(|name| after.contains(name)).collect();
    let context = || format!("{queue}: {before:?}, then {shown:?}, then {after:?}");
    for name in &stayed {
        assert!(
            shown.iter().any(|it| it.name == **name),
            "{name} is missing at {}",
            context()
        );
    }
    let newest = before.last().and_then(|name| number(name));
    for it in &shown {
        let own = number(&it.name);
        let is_new = own > newest;
        assert!(
            before.contains(&it.name) || is_new,
            "{} had gone at {}",
            it.name,
            context()
        );
        let barred = stayed.iter().any(|other| number(other) < own);
        let holds = it.state == ContenderState::Holds;
        assert!(
            !(holds && barred),
            "{} does not hold at {}",
            it.name,
            context()
        );
        let was_first = before.first() == Some(&it.name);
        assert!(holds || !was_first, "{} holds at {}", it.name, context());
    }
    before
        .first()
        .is_some_and(|first| after.first() == Some(first))
}

/// Looks again and again, until this moment and until it was certain often enough who held.
async fn compare(ensemble: &str, until: Instant) {
    let [plain, viewer] = [session(ensemble, LONG).await, session(ensemble, LONG).await];
    let (mut looks, mut certain) = (0, 0);
    // On a busy machine, a look may take as long as all strikes.
    while Instant::now() < until || looks < 3 || certain <= QUEUES / 4 {
        let before = listed(&plain).await;
        let overview = Overview::below(&viewer, BASE).await.expect("a look");
        let after = listed(&plain).await;
        looks += 1;
        let agree = |queue: &usize| agrees(&overview, *queue, &before[*queue], &after[*queue]);
        certain += (0..QUEUES).filter(agree).count();
    }
    println!("{looks} looks; at {certain} queues of them it was certain who held");
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_agree_with_plain_lists_while_processes_and_members_are_killed_and_stopped() {
    let peers = [Peer::Curator, Peer::Kazoo];
    if !peers.into_iter().all(|peer| available("a fleet", peer)) {
        return;
    }
    let seconds = env::var("FLEET_SECONDS").ok();
    let seconds = seconds.map(|it| it.parse().expect("FLEET_SECONDS is a number"));
    let options = ServerOptions::new().tick_time(TICK);
    let mut ensemble = Ensemble::start(3, options).await.expect("it starts");
    let connect = ensemble.connect_string();
    let ours = session(&connect, LONG).await;
    let turns = (0..QUEUES).map(|queue| tokio::spawn(take_turns(ours.clone(), queue)));
    let turns: Vec<_> = turns.collect();
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(SECONDS));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let struck = strike(&mut ensemble, until, Rng::with_seed(seed));
    let compared = async {
        let enough = compare(&connect, until);
        let most = until - Instant::now() + PATIENCE;
        let outcome = tokio::time::timeout(most, enough).await;
        outcome.expect("it is certain who holds");
    };
    tokio::join!(struck, compared);
    for turn in &turns {
        assert!(!turn.is_finished(), "it has panicked");
        turn.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_three_libraries_that_wait_for_each_other_are_a_circle() {
    let peers = [Peer::Kazoo, Peer::Curator];
    if !peers.into_iter().all(|peer| available("deadlocks", peer)) {
        return;
    }
    let server = TestServer::apache().await;
    let connect = zookeeper_recipes_suite::Address::address(&server);
    let [ours, viewer] = [session(&server, LONG).await, session(&server, LONG).await];
    let lock = |queue: usize| ExclusiveLock::new(&ours, path(queue)).expect("a good path");
    // Each holds a lock, and waits for the one of the process before it.
    let held = lock(0).acquire().await.expect("it is free");
    let mut processes = Vec::new();
    for (place, peer) in peers.into_iter().enumerate() {
        let mut process = started(peer, &connect).await;
        let order = format!("nest {} {}", path(place + 1), path(place));
        process
            .ask(&order, "holds", PATIENCE)
            .await
            .expect("it is free");
        queue_length(&lock(place), 2).await;
        processes.push(process);
    }
    let none = Overview::below(&viewer, BASE).await.expect("a look");
    assert!(none.circles().is_empty(), "{:?}", none.circles());
    let last = lock(2);
    let waits = tokio::spawn(async move { last.acquire().await });
    queue_length(&lock(2), 2).await;

    let overview = Overview::below(&viewer, BASE).await.expect("a look");
    let [circle] = overview.circles() else {
        panic!("{:?}", overview.circles())
    };
    let paths: Vec<&str> = circle.waits.iter().map(|wait| &*wait.path).collect();
    assert_eq!(paths, [path(2), path(1), path(0)]);
    let out = circle.way_out().expect("a way out");
    assert_eq!(
        Some(out.blocker.session_id),
        ours.id(),
        "it has closed the circle"
    );
    // As `zkr evict` does.
    let any = path(0).parse().expect("a good path");
    let client = ours.server(&any).await.expect("it is open");
    let deleted = client
        .delete(&format!("{}/{}", out.path, out.blocker.name))
        .await;
    deleted.expect("it is there");
    for process in &mut processes {
        process
            .answer("nested", PATIENCE)
            .await
            .expect("both come to hold both");
    }
    let hold = in_time("ours comes to hold", waits)
        .await
        .expect("no panic");
    drop((hold.expect("it holds"), held));
    let after = Overview::below(&viewer, BASE).await.expect("a look");
    assert!(after.circles().is_empty(), "{:?}", after.circles());
}
