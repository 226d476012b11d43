//! Servers that take long to confirm a session, on a simulated ensemble.

use crate::support::*;

const FOR_GOOD: Duration = Duration::from_secs(100_000);
const TICK: Duration = Duration::from_millis(500);
/// The longest pause between two tries.
const PAUSE: Duration = Duration::from_secs(2);

fn simulation(seed: u64, servers: usize, timeout: Duration) -> Simulation {
    simulation!(seed, servers, session_timeout: timeout, tick: TICK)
}

fn slow_down(simulation: &Simulation, servers: usize, by: Duration) {
    for server in 0..servers {
        let faults = simulation.faults();
        faults.slow_handshakes(server, by..=by, FOR_GOOD);
    }
}

/// The next contender holds T after the break, and at most a tick, a pause and the handshakes of
/// one round later.
#[tokio::test(start_paused = true)]
async fn next_one_holds_in_time_though_each_handshake_takes_longer_than_a_host_has() {
    for seed in 0..40 {
        let servers = [1, 3, 5][seed as usize % 3];
        let session_timeout = [2, 4][seed as usize % 2] * SECOND;
        let simulation = simulation(seed, servers, session_timeout);
        let first = simulated_session(&simulation, "first").await;
        let other = simulated_session(&simulation, "other").await;
        let held = lock(&first, "/lock").acquire().await.expect("it is free");
        let (next, mut lost) = (lock(&other, "/lock"), held.lost().boxed());
        let mut next = begun(next.acquire());
        let share = session_timeout / (servers as u32 + 1);
        let handshake = (share + Duration::from_millis(50)).min(Duration::from_millis(950));
        slow_down(&simulation, servers, handshake);
        let broken = Instant::now();
        simulation.faults().disconnect(first.id().expect("open"));
        tokio::select! {
            biased;
            _ = &mut lost => {}
            _ = &mut next => panic!("seed {seed}: it holds before the loss is known"),
        }
        let hold = in_time("its turn", next).await.expect("it is free");
        let took = broken.elapsed();
        let most = session_timeout + TICK + PAUSE + SECOND + handshake;
        assert!(took <= most, "seed {seed}: {took:?} > {most:?}");
        assert!(hold.is_held());
        let lasts = in_time("the first one", first.wait_connected()).await;
        lasts.expect("its session is open");
    }
}
