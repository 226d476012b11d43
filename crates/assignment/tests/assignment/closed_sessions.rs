//! Workers whose session the process closes.

use zookeeper_recipes_assignment::{ConnectOptions, Session};
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_simulation::SimulatedProcess;

use crate::support::*;

/// Runs worker `a` until `close` has closed its session. Returns how it ended.
async fn closed(
    fleet: &Fleet,
    close: impl AsyncFnOnce(&SimulatedProcess, Session),
) -> Result<(), Error> {
    let process = fleet.simulation.process("a");
    let session = Session::open_in_background(process.ensemble(), ConnectOptions::new());
    let session = session.expect("good options");
    let work = async |owned: Partition| {
        owned.draining().await;
        Ok::<(), Infallible>(())
    };
    let assignment = fleet.assignment(&session, "a");
    let run = assignment.run(pending(), work);
    let both = async { tokio::join!(run, close(&process, session.clone())).0 };
    timeout(LONG, both).await.expect("in time")
}

fn of_seed(seed: u64) -> Simulation {
    let options = SimulationOptions {
        seed,
        ..SimulationOptions::default()
    };
    Simulation::new(options)
}

/// The answer that the session has expired, and the close, come while the runtime of the session is
/// blocked. So the attempts learn of the end after the session has ended for good.
#[tokio::test(start_paused = true)]
async fn worker_that_waits_for_its_partitions_returns_no_session_after_the_close() {
    for seed in 0..30 {
        let fleet = Fleet::new(of_seed(seed), 4);
        let other = fleet.session("other").await;
        let mut holds = Vec::new();
        for partition in 1..4 {
            let lock = ExclusiveLock::new(&other, format!("{PATH}/locks/{partition}"));
            holds.push(lock.expect("a good path").acquire().await.expect("free"));
        }
        let faults = fleet.simulation.faults();
        let administrator = fleet.simulation.administrator();
        let ended = closed(&fleet, async |process, session| {
            // The connection breaks while the worker publishes that it owns partition 0.
            let lost = Fault::new(FaultKind::RequestLost).on(RequestKind::Transact);
            faults.inject(lost.under("/app/queues/owned/a"));
            let waits = || {
                let queue = |it| administrator.children(&format!("{PATH}/locks/{it}"));
                faults.waiting() == 0 && (1..4).all(|it| queue(it).len() == 2)
            };
            fleet.until("waiting", |_| waits()).await;
            let late = Duration::from_millis(200);
            faults.slow_handshakes(0, late..=late, LONG);
            administrator.expire(session.id().expect("open"));
            sleep(late / 2).await;
            process.block_sessions(late * 2);
            session.close().await;
        });
        let ended = ended.await;
        let is_told = matches!(ended, Err(Error::NoSession { .. }));
        assert!(is_told, "seed {seed}: {ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn worker_returns_no_session_after_the_close_whenever_that_is() {
    for seed in 0..100 {
        let mut fleet = Fleet::new(of_seed(seed), 4);
        fleet.start("b").await;
        let after = Duration::from_millis(10 * seed);
        let ended = closed(&fleet, async |_, session| {
            sleep(after).await;
            session.close().await;
        });
        let ended = ended.await;
        let is_told = matches!(ended, Err(Error::NoSession { .. }));
        assert!(is_told, "seed {seed}, closed after {after:?}: {ended:?}");
    }
}
