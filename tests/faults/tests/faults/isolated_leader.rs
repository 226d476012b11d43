//! A leader that is cut off from its followers, and still answers its own clients.

use zookeeper_recipes_suite::{number, session_with_tick};

use crate::support::*;

const TICK: Duration = Duration::from_secs(1);

/// For how many ticks a leader or a follower that is cut off still serves.
const SYNC_LIMIT: u32 = 3;

/// The session timeouts of the leader's clients, in ticks.
const SESSIONS: [f64; 4] = [2.5, 3.0, 4.0, 6.0];

/// How many rounds there are unless `FAULTS_ROUNDS` says otherwise.
const ROUNDS: u64 = 1;

#[tokio::test(flavor = "multi_thread")]
async fn holders_at_a_leader_that_is_cut_off_know_their_loss_before_the_next_ones_hold() {
    let options = ServerOptions::new()
        .tick_time(TICK)
        .configuration("syncLimit", SYNC_LIMIT.to_string());
    let ensemble = Ensemble::start_with_partitions(3, options).await;
    let mut ensemble = ensemble.expect("an ensemble");
    for round in 0..number("FAULTS_ROUNDS").unwrap_or(ROUNDS) {
        let lock = |session: &Session, ticks: f64| {
            let path = format!("/locks/{round}/{ticks}");
            ExclusiveLock::new(session, path).expect("a good path")
        };
        let isolated = ensemble.leader().await.expect("a leader");
        let at = ensemble.members()[isolated].connect_string();
        let holds = SESSIONS.map(async |ticks| {
            let victim = session_with_tick(&at, TICK.mul_f64(ticks), TICK).await;
            let hold = lock(&victim, ticks).acquire().await;
            (ticks, hold.expect("it is free"))
        });
        let holds = join_all(holds).await;
        ensemble.isolate(isolated).expect("it is isolated");
        // A session from before would come later: its client tries ever more rarely to connect.
        let leader = ensemble.leader().await.expect("another leader");
        assert_ne!(leader, isolated);
        let at = ensemble.members()[leader].connect_string();
        let rival = session_with_tick(&at, LONG, TICK).await;
        let successions = holds.into_iter().map(|(ticks, hold)| {
            let what = format!("round {round}, a session of {ticks} ticks");
            let next = acquire(Box::new(lock(&rival, ticks)));
            Succession::begin(what, hold, next).in_order()
        });
        for succeeded in join_all(successions).await {
            succeeded.next.release().await.expect("it is released");
        }
        ensemble.heal(isolated).expect("it was isolated");
        ensemble.wait_until_all_serve().await.expect("all serve");
    }
}
