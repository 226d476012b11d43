//! The terms of the lease, by the options and by what the servers grant.

use super::*;
use crate::live::scripted::Scripted;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn timeout_that_the_server_raises_implies_a_longer_tick() {
    let (_live, ensemble) = Scripted::open(SECOND);
    let options = ConnectOptions::new().session_timeout(30 * SECOND);
    let as_asked = terms(&*ensemble, &options, 30 * SECOND).expect("it can be kept");
    let raised = terms(&*ensemble, &options, 40 * SECOND).expect("it can be kept");
    assert_eq!(as_asked, Terms::without_tick(30 * SECOND, false));
    assert_eq!(raised, Terms::without_tick(40 * SECOND, true));
    assert_ne!(raised, Terms::without_tick(40 * SECOND, false));
}

#[tokio::test(start_paused = true)]
async fn tick_that_leaves_no_lease_is_refused() {
    let (_live, ensemble) = Scripted::open(SECOND);
    let tick = |seconds| ConnectOptions::new().tick(SECOND * seconds);
    assert!(terms(&*ensemble, &tick(5), 10 * SECOND).is_ok());
    assert!(terms(&*ensemble, &tick(6), 10 * SECOND).is_err());
}

#[tokio::test(start_paused = true)]
async fn timeout_that_is_shorter_than_a_lease_can_be_is_refused() {
    let (_live, ensemble) = Scripted::open(SECOND);
    let options = ConnectOptions::new().session_timeout(SHORTEST_TIMEOUT);
    let granted = |timeout| terms(&*ensemble, &options, timeout);
    assert!(granted(SHORTEST_TIMEOUT).is_ok());
    assert!(granted(SHORTEST_TIMEOUT - Duration::from_millis(1)).is_err());
}
