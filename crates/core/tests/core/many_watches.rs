//! Thousands of watches in one session: none is late, and none delays another.

use zookeeper_recipes_protocol::ReplyBody;
use zookeeper_recipes_suite::simulated_session as open;
use zookeeper_recipes_testkit::altered::{altered, passing};
use zookeeper_recipes_testkit::fake::FakeSession;

use crate::support::*;

/// The session timeout, and the tick of the servers, that a simulation has by default.
const TIMEOUT: Duration = Duration::from_secs(6);
const TICK: Duration = Duration::from_secs(2);
/// Longer than the session timeout, and no multiple of any part of it.
const A_WHILE: Duration = Duration::from_millis(6_370);
/// Longer than a few requests take, one after the other.
const SOON: Duration = Duration::from_millis(50);

/// So many hold at a time.
#[derive(Debug)]
struct Permits(usize);

impl Rule for Permits {
    fn label(&self) -> Cow<'_, str> {
        "permit-".into()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let me = view.place();
        Ok(match me.checked_sub(self.0) {
            None => Verdict::Hold,
            Some(earliest) => Verdict::Wait {
                on: (earliest..me).collect(),
            },
        })
    }
}

/// A simulation, and two sessions.
async fn sessions() -> (Simulation, Session, Session) {
    let simulation = simulation!(trace_limit: 0);
    let (ours, theirs) = (open(&simulation, "a").await, open(&simulation, "b").await);
    (simulation, ours, theirs)
}

/// Acquires in a task, which returns the time of the grant and the hold.
fn acquire(recipe: impl Recipe + 'static) -> JoinHandle<(Instant, Hold)> {
    tokio::spawn(async move {
        let hold = recipe.acquire().await.expect("its turn");
        (Instant::now(), hold)
    })
}

/// How long a lock takes from its release in one session to the waiter in the other.
async fn handoff(from: &Session, to: &Session, path: &str) -> Duration {
    let holder = hold(&lock(from, path)).await;
    let waits = acquire(lock(to, path));
    sleep(A_WHILE).await;
    holder.release().await.expect("it is released");
    let released = Instant::now();
    let (got, hold) = waits.await.expect("no panic");
    hold.release().await.expect("it is released");
    got.saturating_duration_since(released)
}

/// Fills the queue with holders in one session, and with waiters in another.
async fn contend(
    holders: &Session,
    waiters: &Session,
    path: &str,
    permits: usize,
    waiting: usize,
) -> (Vec<Hold>, Vec<JoinHandle<(Instant, Hold)>>) {
    let queue = |session| queue_by(session, path, Permits(permits));
    let mut held = Vec::new();
    for _ in 0..permits {
        held.push(hold(&queue(holders)).await);
    }
    let waits = (0..waiting).map(|_| acquire(queue(waiters))).collect();
    (held, waits)
}

#[tokio::test(start_paused = true)]
async fn handoff_is_quick_beside_a_contended_semaphore_of_the_session() {
    for (permits, waiters) in [(50, 40), (100, 20), (1_500, 2)] {
        let (_simulation, ours, theirs) = sessions().await;
        let contended = contend(&theirs, &ours, "/limits/exports", permits, waiters).await;
        sleep(A_WHILE).await;
        for round in 0..4 {
            let took = handoff(&theirs, &ours, &format!("/locks/{round}")).await;
            assert!(
                took < SOON,
                "{permits} permits, {waiters} waiters: {took:?}"
            );
        }
        drop(contended);
    }
}

#[tokio::test(start_paused = true)]
async fn dead_holder_is_followed_in_time_beside_a_contended_semaphore() {
    for (permits, waiters) in [(50, 40), (100, 20), (700, 3), (1_500, 1)] {
        let (simulation, ours, theirs) = sessions().await;
        let contended = contend(&theirs, &ours, "/limits/exports", permits, waiters).await;
        let dead = hold(&lock(&open(&simulation, "dead").await, "/locks/dead")).await;
        let waits = acquire(lock(&ours, "/locks/dead"));
        sleep(A_WHILE).await;
        simulation.process("dead").kill();
        let killed = Instant::now();
        let (got, _hold) = waits.await.expect("no panic");
        let took = got.saturating_duration_since(killed);
        let most = TIMEOUT + TICK + SOON;
        assert!(
            took <= most,
            "{permits} permits, {waiters} waiters: {took:?}"
        );
        drop((dead, contended));
    }
}

#[tokio::test(start_paused = true)]
async fn holder_of_a_wide_semaphore_is_followed_at_once() {
    let (_simulation, ours, theirs) = sessions().await;
    let (mut held, mut waits) = contend(&theirs, &ours, "/limits/exports", 1_500, 3).await;
    for _ in 0..3 {
        sleep(A_WHILE).await;
        // This is neither the first nor the last.
        let hold = held.remove(750);
        hold.release().await.expect("it is released");
        let released = Instant::now();
        let turn = timeout(TIMEOUT, waits.remove(0)).await;
        let (got, _hold) = turn.expect("in time").expect("no panic");
        let took = got.saturating_duration_since(released);
        assert!(took <= SOON, "{took:?}");
    }
}

/// Holds so many locks, each for long.
async fn idle_holds(session: &Session, number: usize) -> Vec<Hold> {
    let mut holds = Vec::new();
    for shard in 0..number {
        holds.push(hold(&lock(session, &format!("/shards/{shard:06}"))).await);
    }
    sleep(A_WHILE).await;
    holds
}

#[tokio::test(start_paused = true)]
async fn thousands_of_idle_holds_cost_no_request() {
    let (simulation, ours, theirs) = sessions().await;
    let holds = idle_holds(&ours, 3_000).await;
    let reads = || {
        use RequestKind::{Exists, Get, GetEach, List};
        sent(&simulation, [Get, GetEach, List, Exists])
    };
    let before = reads();
    sleep(10 * TIMEOUT).await;
    assert_eq!(reads(), before);
    for round in 0..4 {
        let took = handoff(&theirs, &ours, &format!("/locks/{round}")).await;
        assert!(took < SOON, "{took:?}");
    }
    assert!(holds.iter().all(|hold| hold.is_held()));
}

#[tokio::test(start_paused = true)]
async fn znode_deleted_by_hand_is_noticed_at_once_among_thousands() {
    let (simulation, ours, _) = sessions().await;
    let holds = idle_holds(&ours, 3_000).await;
    for (round, hold) in holds.iter().step_by(200).enumerate() {
        sleep(Duration::from_millis(370 * round as u64)).await;
        delete(&simulation, hold.node_path());
        let deleted = Instant::now();
        let reason = timeout(SOON, hold.lost()).await.expect("in time");
        assert_eq!(reason, LossReason::Deleted);
        let took = deleted.elapsed();
        assert!(took <= SOON, "{took:?}");
    }
    let (kept, lost): (Vec<_>, Vec<_>) = holds.into_iter().partition(|hold| hold.is_held());
    assert_eq!([kept.len(), lost.len()], [3_000 - 15, 15]);
    let deletions = || sent(&simulation, [RequestKind::Delete, RequestKind::Transact]);
    let before = deletions();
    drop(lost);
    sleep(A_WHILE).await;
    assert_eq!(deletions(), before);
}

#[tokio::test(start_paused = true)]
async fn loss_watch_survives_throttled_reads() {
    let (simulation, session, _) = sessions().await;
    let hold = hold(&lock(&session, "/locks/one")).await;
    let faults = simulation.faults();
    for nth in 1..=30 {
        let throttled = Fault::new(FaultKind::Throttled).on(RequestKind::Get);
        faults.inject(throttled.under(hold.node_path()).nth(nth));
    }
    sleep(10 * TIMEOUT).await;
    let refused = 30 - faults.waiting();
    assert!(
        (2..30).contains(&refused),
        "asked {refused} times in ten timeouts"
    );
    faults.stop();
    sleep(2 * TIMEOUT).await;
    assert_eq!(hold.state(), HoldState::Held);
    delete(&simulation, hold.node_path());
    let reason = timeout(SOON, hold.lost()).await.expect("it is watched");
    assert_eq!(reason, LossReason::Deleted);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_waiters_for_single_znodes_get_their_turn() {
    const LOCKS: usize = 4_000;
    let (simulation, ours, theirs) = sessions().await;
    let lock = |session, shard: usize| {
        let path = format!("/some/longer/path/of/shards/{shard:06}/lock");
        single_node(session, path)
    };
    let mut held = Vec::new();
    for shard in 0..LOCKS {
        held.push(hold(&lock(&theirs, shard)).await);
    }
    let waits: Vec<_> = (0..LOCKS)
        .map(|shard| acquire(lock(&ours, shard)))
        .collect();
    sleep(2 * TIMEOUT).await;
    // One request cannot set all watches again.
    let session = ours.id();
    for _ in 0..3 {
        simulation.process("a").disconnect();
        sleep(A_WHILE).await;
    }
    assert_eq!(ours.id(), session);
    for hold in held {
        hold.release().await.expect("it is released");
    }
    let released = Instant::now();
    for waits in waits {
        let (got, _hold) = waits.await.expect("no panic");
        let took = got.saturating_duration_since(released);
        assert!(took <= 10 * SOON, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn hold_of_a_single_znode_is_lost_when_another_takes_its_place() {
    let (simulation, session, _) = sessions().await;
    let lock = single_node(&session, "/lock");
    let first = hold(&lock).await;
    delete(&simulation, "/lock");
    make(&simulation, "/lock");
    // A hold that did not wait gets its watch at the next probe.
    let reason = timeout(TIMEOUT / 10 + SOON, first.lost()).await;
    assert_eq!(reason.expect("in time"), LossReason::Deleted);
}

/// A session of this process whose events have no order. None of its own znodes' events comes.
async fn without_order(simulation: &Simulation, process: &str) -> Session {
    let ensemble = altered(simulation.ensemble(process), |id, raw| {
        let below = raw.clone();
        let send = move |request| {
            let reply = below.send(request);
            boxed_reply(async move {
                let (answer, watch) = reply.await?;
                let is_own = matches!(
                    &answer.reply.body,
                    ReplyBody::Data { stat, .. } if stat.ephemeral_owner == id.0
                );
                let blind = |_| pending().boxed();
                Ok((answer, if is_own { watch.map(blind) } else { watch }))
            })
        };
        FakeSession {
            send: Box::new(send),
            orders_events: false,
            ..passing(raw)
        }
    });
    crate::support::open(Arc::new(ensemble), ConnectOptions::new()).await
}

/// A session that reads its znodes from time to time sees late that one was deleted by hand. The
/// waiter hears of its predecessor's release alone.
#[tokio::test(start_paused = true)]
async fn waiter_whose_events_have_no_order_lists_before_it_holds() {
    let (simulation, _, theirs) = sessions().await;
    let session = without_order(&simulation, "a").await;
    let alone = |session| queue_by(session, "/lock", FIRST_ALONE);
    let (first, waiter) = (hold(&alone(&theirs)).await, alone(&session));
    let waits = spawned(&waiter);
    sleep(A_WHILE).await;
    let administrator = simulation.administrator();
    let mut queued = administrator.children("/lock");
    queued.retain(|name| !first.node_path().ends_with(name.as_str()));
    delete(&simulation, &format!("/lock/{}", queued[0]));
    first.release().await.expect("it is released");
    let outcome = timeout(SOON, waits).await.expect("in time");
    let outcome = outcome.expect("no panic");
    assert_fails!(outcome, Error::ContenderDeleted);
}
