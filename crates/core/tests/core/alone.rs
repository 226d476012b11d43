//! Coming back to a queue in which one was alone: what the number of one's znode says.

use zookeeper_recipes_testkit::meter::Meter;

use crate::support::*;

const PATH: &str = "/locks/alone";

async fn session(simulation: &Simulation, process: &str) -> (Session, Meter) {
    let meter = Meter::default();
    let ensemble = meter.around(simulation.ensemble(process));
    (open(ensemble, ConnectOptions::new()).await, meter)
}

async fn queue(simulation: &Simulation, process: &str) -> (Queue, Meter) {
    let (session, meter) = session(simulation, process).await;
    (lock(&session, PATH), meter)
}

/// The time of a request over a network that has no other delay.
const ROUND_TRIP: Duration = Duration::from_millis(100);

fn far_away() -> Simulation {
    simulation!(
        network_delay: ROUND_TRIP / 2..=ROUND_TRIP / 2,
        commit_delay: Duration::ZERO..=Duration::ZERO,
    )
}

/// Holds and releases until no list is asked for.
async fn settle(queue: &Queue, meter: &Meter) -> i32 {
    for _ in 0..10 {
        let before = meter.read().requests;
        let hold = hold(queue).await;
        let number = number(&hold);
        hold.release().await.expect("it is released");
        match meter.read().requests - before {
            2 => return number,
            requests => assert!(requests < 12, "{requests} for {number}"),
        }
    }
    panic!("each of ten holds has asked for a list");
}

fn number(hold: &Hold) -> i32 {
    let name = hold.node_path().rsplit('/').next().unwrap_or_default();
    let contender = Contender::parse(name, |label| label == "lock-");
    contender.expect("a contender").sequence().get()
}

async fn must_wait(queue: &Queue) {
    let waited = timeout(Duration::from_secs(3), queue.acquire()).await;
    assert!(waited.is_err(), "it holds beside another: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_to_an_empty_queue_creates_and_deletes_and_asks_nothing() {
    let simulation = Simulation::default();
    let (queue, meter) = queue(&simulation, "one").await;
    settle(&queue, &meter).await;
    let before = simulation.counters();
    for _ in 0..100 {
        take_turn(&queue).await;
    }
    let kinds = [RequestKind::Create, RequestKind::Delete, RequestKind::List];
    assert_eq!(sent_since(&simulation, &before, kinds), [100, 100, 0]);
}

/// Two recipes of one session share what the session knows of the directory.
#[tokio::test(start_paused = true)]
async fn who_is_alone_by_one_rule_waits_by_another() {
    let simulation = Simulation::default();
    let (one, _) = session(&simulation, "one").await;
    let (two, _) = session(&simulation, "two").await;
    let queue = |session, label, counts| {
        let first = FIRST;
        queue_by(
            session,
            PATH,
            ByPlace {
                label,
                counts,
                ..first
            },
        )
    };
    let gate = hold(&queue(&two, "gate-", &["gate-"])).await;
    let alone = queue(&one, "door-", &["door-"]);
    for _ in 0..3 {
        take_turn(&alone).await;
    }
    let both = queue(&one, "door-", &["door-", "gate-"]);
    must_wait(&both).await;
    gate.release().await.expect("it is released");
    take_turn(&both).await;
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_after_another_has_come_waits_for_it() {
    let simulation = Simulation::default();
    let (queue_one, meter) = queue(&simulation, "one").await;
    let (queue_two, _) = queue(&simulation, "two").await;
    settle(&queue_one, &meter).await;
    let rival = hold(&queue_two).await;
    must_wait(&queue_one).await;
    rival.release().await.expect("it is released");
    take_turn(&queue_one).await;
}

/// One that is not the first holds beside another, and knows nothing of being alone.
#[tokio::test(start_paused = true)]
async fn holder_beside_another_does_not_come_back_as_if_it_were_alone() {
    let simulation = Simulation::default();
    let (queue_one, _) = queue(&simulation, "one").await;
    let (queue_two, _) = queue(&simulation, "two").await;
    let two_at_a_time = ByPlace {
        waits_on: |me| Some(me.checked_sub(2)?..me),
        ..FIRST
    };
    let shared = |queue: &Queue| queue.by(two_at_a_time).expect("a good rule");
    let (shared_one, shared_two) = (shared(&queue_one), shared(&queue_two));
    let other = hold(&shared_one).await;
    for _ in 0..3 {
        let beside = hold(&shared_two).await;
        beside.release().await.expect("it is released");
    }
    must_wait(&queue_two).await;
    other.release().await.expect("it is released");
}

/// The first deletions are lost with their connections, and each next one comes after a pause.
#[tokio::test(start_paused = true)]
async fn who_comes_back_before_its_last_znode_has_gone_waits_for_it() {
    for pause in (0..500).step_by(10) {
        let simulation = Simulation::default();
        let (queue, meter) = queue(&simulation, "one").await;
        settle(&queue, &meter).await;
        // After these turns, a few transactions of others in between say nothing of the directory.
        for _ in 0..20 {
            take_turn(&queue).await;
        }
        let last = hold(&queue).await;
        let path = last.node_path().to_owned();
        // Each wait before the next try is longer, so in the end it is longer than a reconnect.
        for nth in 1..=4 {
            let lost = Fault::new(FaultKind::RequestLost).on(RequestKind::Delete);
            simulation.faults().inject(lost.nth(nth));
        }
        let release = tokio::spawn(async move { last.release().await });
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let next = hold(&queue).await;
        let standing = simulation.administrator().children(PATH);
        let stands = standing.iter().any(|name| path.ends_with(name));
        assert!(!stands, "after {pause} ms");
        release.await.expect("no panic").expect("it is released");
        drop(next);
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_waits_for_its_last_znode_whose_deletion_is_refused() {
    let simulation = Simulation::default();
    let (queue, meter) = queue(&simulation, "one").await;
    settle(&queue, &meter).await;
    let last = hold(&queue).await;
    grant(&simulation, PATH, Permission::READ | Permission::CREATE);
    let refused = last.release().await;
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    must_wait(&queue).await;
}

/// The next number of the new directory is the next number of the old directory, too, and another
/// contender holds in the new directory.
#[tokio::test(start_paused = true)]
async fn directory_that_is_made_anew_and_counts_as_far_is_not_taken_for_the_old_one() {
    for more in 0..20 {
        let simulation = Simulation::default();
        let administrator = simulation.administrator();
        let (queue_one, meter) = queue(&simulation, "one").await;
        let (queue_two, _) = queue(&simulation, "two").await;
        settle(&queue_one, &meter).await;
        for _ in 0..more {
            take_turn(&queue_one).await;
        }
        let last = settle(&queue_one, &meter).await;

        delete(&simulation, PATH);
        let created = administrator.create(PATH, b"", CreateMode::Container);
        created.expect("it is created");
        for _ in 0..last {
            let path = format!("{PATH}/somebody-");
            let created = administrator.create(&path, b"", CreateMode::PersistentSequential);
            delete(&simulation, &created.expect("it is created"));
        }
        let rival = hold(&queue_two).await;
        assert_eq!(number(&rival), last);
        must_wait(&queue_one).await;
        rival.release().await.expect("it is released");
    }
}

/// The time between two holds, if two sessions take turns at a lock without a pause.
async fn time_of_a_turn(release: fn(Hold) -> BoxFuture<'static, ()>) -> Duration {
    const TURNS: u32 = 50;
    let simulation = far_away();
    let mut queues = Vec::new();
    for process in ["one", "two"] {
        let (session, _) = session(&simulation, process).await;
        let queue = queue_by(&session, PATH, FIRST_ALONE);
        release(hold(&queue).await).await;
        queues.push(queue);
    }
    let began = Instant::now();
    let turns = queues.into_iter().map(|queue| {
        tokio::spawn(async move {
            for _ in 0..TURNS {
                release(hold(&queue).await).await;
            }
        })
    });
    for turns in join_all(turns).await {
        turns.expect("no panic");
    }
    began.elapsed() / (2 * TURNS)
}

/// The page on the handoff draws the traces.
#[tokio::test(start_paused = true)]
async fn two_sessions_hand_a_lock_on_in_two_round_trips_and_by_drops_in_one() {
    let awaited =
        time_of_a_turn(|hold| async move { hold.release().await.expect("it is released") }.boxed());
    let awaited = awaited.await;
    let dropped = time_of_a_turn(|hold| async move { drop(hold) }.boxed()).await;
    assert!(awaited < ROUND_TRIP * 41 / 20, "{awaited:?}");
    assert!(dropped < ROUND_TRIP * 21 / 20, "{dropped:?}");
}
