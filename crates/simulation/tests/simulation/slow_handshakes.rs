//! Servers that answer requests for a session late.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use zookeeper_recipes_simulation::{Simulation, Way};

use crate::support::{TICK, TIMEOUT, comes, connect, milliseconds, seconds, servers, when_ended};

/// Longer than any test.
const FOR_GOOD: Duration = Duration::from_secs(1_000);

/// When a session ends whose connection breaks, whose client then finds these servers silent, and
/// which is cut off after five seconds.
async fn ends_after(simulation: &Simulation, silent: &[usize]) -> Duration {
    let session = connect(simulation, "a").await;
    let faults = simulation.faults();
    for server in 0..3 {
        faults.slow_handshakes(server, seconds(3)..=seconds(3), FOR_GOOD);
    }
    for server in silent {
        faults.cut_off_from_clients(*server, Way::Both);
    }
    let broken = simulation.now();
    faults.disconnect(session.id);
    sleep(seconds(5)).await;
    assert!(session.connection().is_none());
    simulation.process("a").partition(FOR_GOOD);
    sleep(TIMEOUT * 3).await;
    when_ended(simulation, &session).expect("it is cut off") - broken
}

#[tokio::test(start_paused = true)]
async fn handshake_that_is_given_up_touches_the_session_at_each_server() {
    let mut later = [0; 3];
    for seed in 0..10 {
        let none = ends_after(&servers(seed, 3), &[0, 1, 2]).await;
        assert!(none <= TIMEOUT + TICK + milliseconds(50), "{none:?}");
        for (slow, later) in later.iter_mut().enumerate() {
            let silent: Vec<_> = (0..3).filter(|it| *it != slow).collect();
            let touched = ends_after(&servers(seed, 3), &silent).await;
            // A touch within the first tick after the break makes no difference but the network's.
            let network = milliseconds(10);
            assert!(
                touched + network >= none,
                "server {slow}: {touched:?}, {none:?}"
            );
            *later += usize::from(touched > none + network);
        }
        let often = ends_after(&servers(seed, 3), &[]).await;
        assert!(often >= TIMEOUT + seconds(3), "{often:?}");
    }
    assert!(later.iter().all(|seeds| *seeds > 0), "{later:?}");
}

#[tokio::test(start_paused = true)]
async fn new_session_whose_client_does_not_wait_lives_until_it_expires() {
    let simulation = servers(1, 1);
    let late = seconds(2);
    simulation
        .faults()
        .slow_handshakes(0, late..=late, FOR_GOOD);
    assert!(!comes(seconds(1), connect(&simulation, "a")).await);
    sleep(seconds(2)).await;
    let left = simulation.administrator().sessions();
    assert!(!left.is_empty(), "the server opened it all the same");
    sleep(TIMEOUT + TICK * 2).await;
    let now = simulation.administrator().sessions();
    assert!(left.iter().all(|it| !now.contains(it)), "{now:?}");
}

#[tokio::test(start_paused = true)]
async fn handshakes_are_quick_again_after_the_duration_or_another_call() {
    let opens_after = async |simulation: &Simulation| {
        let began = Instant::now();
        connect(simulation, "a").await;
        began.elapsed()
    };
    let simulation = servers(2, 1);
    let late = milliseconds(400);
    simulation
        .faults()
        .slow_handshakes(0, late..=late, seconds(10));
    assert!((late..late * 2).contains(&opens_after(&simulation).await));
    sleep(seconds(10)).await;
    assert!(opens_after(&simulation).await < late);

    let up_to = Duration::ZERO..=late;
    simulation.faults().slow_handshakes(0, up_to, FOR_GOOD);
    let mut opened = Vec::new();
    for _ in 0..10 {
        opened.push(opens_after(&simulation).await);
    }
    opened.sort_unstable();
    assert!(opened[0] < opened[9], "{opened:?}");
    let none = Duration::ZERO..=Duration::ZERO;
    simulation.faults().slow_handshakes(0, none, FOR_GOOD);
    assert!(opens_after(&simulation).await < milliseconds(50));
}
