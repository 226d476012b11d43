//! How long the leader rests.

use super::*;

#[test]
fn leader_computes_for_at_most_a_fifth_of_its_time_unless_moves_wait() {
    let second = Duration::from_secs(1);
    assert_eq!(rest(second, false), second * 4);
    assert_eq!(rest(second / 1000, false), INTERVAL);
    assert_eq!(rest(second, true), INTERVAL, "moves wait for it");
    assert_eq!(rest(second * 40, false), LONGEST_REST);
}
