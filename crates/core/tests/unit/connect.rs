//! The configuration of the lease, by the options and by what the servers grant.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn timeout_that_the_server_raises_or_may_have_raised_implies_a_longer_tick() {
    let granted =
        |asked, granted: u32| config(asked, None, granted * SECOND).expect("it can be kept");
    let as_asked = granted(Some(30 * SECOND), 30);
    let raised = granted(Some(30 * SECOND), 40);
    assert_eq!(as_asked, LeaseConfig::without_tick(30 * SECOND, false));
    assert_eq!(raised, LeaseConfig::without_tick(40 * SECOND, true));
    assert_ne!(raised, LeaseConfig::without_tick(40 * SECOND, false));
    let unknown = granted(None, 30);
    assert_eq!(unknown, LeaseConfig::without_tick(30 * SECOND, true));
}

#[test]
fn tick_that_leaves_no_lease_is_refused() {
    let with = |tick: u32| config(None, Some(tick * SECOND), 10 * SECOND);
    assert!(with(5).is_ok());
    assert!(with(6).is_err());
}

#[test]
fn timeout_that_is_shorter_than_a_lease_can_be_is_refused() {
    let granted = |timeout| config(Some(SHORTEST_TIMEOUT), None, timeout);
    assert!(granted(SHORTEST_TIMEOUT).is_ok());
    assert!(granted(SHORTEST_TIMEOUT - Duration::from_millis(1)).is_err());
}
