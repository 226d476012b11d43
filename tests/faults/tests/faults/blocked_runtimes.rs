//! A session whose own runtime is blocked, and a holder whose thread pauses.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;
use zookeeper_client::Client;
use zookeeper_recipes_adapter::ClientEnsemble;
use zookeeper_recipes_core::{ConnectOptions, Hold, Session};
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{
    Address, KINDS, LONG, SHORT, TestServer, in_time, number, on_both_servers, session,
    session_with_tick,
};
use zookeeper_recipes_testkit::{Ensemble, ServerOptions};

use crate::support::{Succession, acquire, held_and_awaited, in_own_runtime, queue_length};

on_both_servers!(apache at night:
    loss_is_reported_in_a_healthy_runtime_while_the_sessions_own_is_blocked,);

async fn loss_is_reported_in_a_healthy_runtime_while_the_sessions_own_is_blocked(
    server: TestServer,
) {
    let rival = session(&server, LONG).await;
    let (sender, opened) = oneshot::channel();
    let (block, go_on) = oneshot::channel::<()>();
    let (unblock, blocked) = mpsc::channel::<()>();
    let (done, over) = oneshot::channel::<()>();
    let connect_string = server.address();
    let own = in_own_runtime(async move || {
        let _ = sender.send(session(&connect_string, SHORT).await);
        let _ = go_on.await;
        // Nothing in this runtime gets to run until this returns.
        let _ = blocked.recv();
        let _ = over.await;
    });
    let victim = in_time("the session", opened).await.expect("it is open");
    let successions = held_and_awaited(&victim, &rival, "blocked").await;
    block.send(()).expect("it is waited for");
    for (_, succession) in &successions {
        succession.granted().await;
    }
    unblock.send(()).expect("it is waited for");
    for (_, succession) in successions {
        let next = succession.in_order().await.next;
        next.release().await.expect("it is released");
    }
    drop(done);
    own.join().expect("no panic");
}

const SESSION: Duration = Duration::from_secs(6);
const TICK: Duration = Duration::from_secs(1);

/// For how much of the lease the holder pauses, in turn.
const PAUSES: [f64; 3] = [0.85, 0.4, 0.6];

/// How many rounds there are unless `FAULTS_ROUNDS` says otherwise.
const ROUNDS: u64 = 2;

/// A holder at a follower. It pauses for less than its lease, and as soon as its lease is renewed
/// after that, the follower is cut off.
struct PausingHolder {
    ensemble: Arc<Ensemble>,
    follower: usize,
    path: String,
    pause: f64,
    acquired: oneshot::Sender<Arc<Hold>>,
    awaited: oneshot::Receiver<()>,
    over: oneshot::Receiver<()>,
}

impl PausingHolder {
    /// Says whether the follower was cut off while the hold was held.
    async fn run(self) -> bool {
        let session = self.patient_session().await;
        let lock = ExclusiveLock::new(&session, &self.path).expect("a good path");
        let hold = Arc::new(lock.acquire().await.expect("it is free"));
        let _ = self.acquired.send(hold.clone());
        let _ = self.awaited.await;
        renewed_beyond(&hold, hold.remaining()).await;
        let lease = hold.remaining();
        // The runtime is this thread's own, and pauses with it.
        std::thread::sleep(lease.mul_f64(self.pause));
        renewed_beyond(&hold, lease.mul_f64(0.95)).await;
        let isolated = self.ensemble.isolate(self.follower);
        let held = hold.is_held();
        isolated.expect("an ensemble with partitions");
        let _ = self.over.await;
        held
    }

    /// A session whose client keeps its connection through the pause. A reconnect would show the
    /// leader that the session lives.
    async fn patient_session(&self) -> Session {
        let follower = self.ensemble.members()[self.follower].connect_string();
        let client = Client::connector()
            .with_session_timeout(SESSION)
            .with_connection_timeout(SESSION * 3 / 5)
            .connect(&follower);
        let client = client.await.expect("a client connects");
        let session = Session::open(
            Arc::new(ClientEnsemble::new(client)),
            ConnectOptions::new().tick(TICK),
        )
        .await;
        session.expect("a session opens")
    }
}

/// Waits until the lease is renewed to more than this, or the hold is lost.
async fn renewed_beyond(hold: &Hold, least: Duration) {
    while hold.is_held() && hold.remaining() <= least {
        sleep(Duration::from_millis(1)).await;
    }
}

/// How long the session lives depends on where in the tick of the servers a round begins.
async fn begin_anywhere_in_a_tick() {
    sleep(TICK.mul_f64(fastrand::f64())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_after_a_pause_ends_before_the_session_does() {
    let options = ServerOptions::new()
        .tick_time(TICK)
        .configuration("syncLimit", "20");
    let ensemble = Ensemble::start_with_partitions(3, options).await;
    let ensemble = Arc::new(ensemble.expect("an ensemble"));
    let followers = ensemble.followers().await.expect("followers");
    let (follower, other) = (followers[0], followers[1]);
    let rival = session_with_tick(&ensemble.members()[other].connect_string(), LONG, TICK).await;
    let rounds = number("FAULTS_ROUNDS").unwrap_or(ROUNDS);
    let mut cut_while_held = 0;
    for (round, pause) in (0..rounds).zip(PAUSES.into_iter().cycle()) {
        begin_anywhere_in_a_tick().await;
        let path = format!("/locks/{round}");
        let (acquired, hold) = oneshot::channel();
        let (waits, awaited) = oneshot::channel();
        let (done, over) = oneshot::channel();
        let holder = PausingHolder {
            ensemble: ensemble.clone(),
            follower,
            path: path.clone(),
            pause,
            acquired,
            awaited,
            over,
        };
        let holder = in_own_runtime(async move || holder.run().await);
        let hold = in_time("the holder", hold).await.expect("it holds");
        let lock = ExclusiveLock::new(&rival, &path).expect("a good path");
        let next = acquire(Box::new(lock.clone()));
        queue_length(KINDS[0], &lock, 2).await;
        let _ = waits.send(());
        let what = format!("round {round}, after a pause of {pause} of the lease");
        let succession = Succession::begin(what, hold, next);
        let succeeded = succession.in_order().await;
        let _ = done.send(());
        cut_while_held += u64::from(holder.join().expect("no panic"));
        ensemble.heal(follower).expect("it was isolated");
        succeeded.next.release().await.expect("it is released");
        ensemble.wait_until_serving().await.expect("a quorum");
    }
    assert!(cut_while_held > 0, "it proves nothing");
    println!("{rounds} rounds, {cut_while_held} of them cut off while held");
}
