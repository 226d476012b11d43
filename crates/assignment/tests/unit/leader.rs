//! How long the leader rests.

use super::*;

const INTERVAL: Duration = Duration::from_millis(100);

#[test]
fn leader_computes_for_at_most_a_fifth_of_its_time_unless_moves_wait() {
    let second = Duration::from_secs(1);
    assert_eq!(rest(INTERVAL, second, false), second * 4);
    assert_eq!(rest(INTERVAL, second / 1000, false), INTERVAL);
    assert_eq!(rest(INTERVAL, second, true), INTERVAL, "moves wait for it");
    assert_eq!(rest(INTERVAL, second * 40, false), LONGEST_REST);
}
