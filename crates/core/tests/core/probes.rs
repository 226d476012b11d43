//! The moments at which sessions probe.

use tokio::time::advance;

use crate::support::*;

const SESSIONS: usize = 200;
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two probes of a session.
const INTERVAL: Duration = Duration::from_secs(1);
const SLICES: usize = 20;

/// The probes of one interval, which begins now, in each slice of it.
async fn probes(simulation: &Simulation) -> [usize; SLICES] {
    let from = simulation.now();
    sleep(INTERVAL).await;
    let mut probes = [0; SLICES];
    for entry in simulation.trace().entries() {
        let is_probe = entry.kind == TraceKind::Request && entry.text.starts_with("sync");
        let after = entry.at.checked_sub(from).filter(|it| *it < INTERVAL);
        if let Some(after) = after.filter(|_| is_probe) {
            probes[(after.as_nanos() * SLICES as u128 / INTERVAL.as_nanos()) as usize] += 1;
        }
    }
    probes
}

/// The seed is fixed. With another one, more than 25 of 200 sessions meet in one of 20 slices in
/// less than one run of 1,000.
fn assert_spread(probes: [usize; SLICES]) {
    assert_eq!(probes.iter().sum::<usize>(), SESSIONS, "{probes:?}");
    assert!(probes.iter().all(|of_slice| *of_slice <= 25), "{probes:?}");
}

#[tokio::test(start_paused = true)]
async fn sessions_that_open_at_the_same_moment_probe_at_moments_of_their_own() {
    let simulation = simulation!(session_timeout: TIMEOUT, trace_limit: 100_000);
    let names = (0..SESSIONS).map(|number| number.to_string());
    let opening = names.map(|name| {
        let simulation = &simulation;
        async move { simulated_session(simulation, &name).await }
    });
    let _sessions = join_all(opening).await;
    sleep(INTERVAL * 2).await;
    assert_spread(probes(&simulation).await);
    // A blocked runtime delays the probes of all its sessions until the same moment.
    advance(INTERVAL * 5 / 2).await;
    sleep(INTERVAL * 2).await;
    assert_spread(probes(&simulation).await);
}
