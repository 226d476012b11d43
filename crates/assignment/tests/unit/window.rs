//! The moves at once.

use super::*;

const TIMEOUT: Duration = Duration::from_secs(10);
const QUICK: Duration = Duration::from_millis(20);
const SLOW: Duration = Duration::from_millis(501);
const NO_LIMIT: usize = usize::MAX;

#[test]
fn moves_at_once_double_while_the_servers_answer_quickly_up_to_a_hundredth() {
    let mut window = Window::default();
    let mut size = window.ended(0, 100_000, NO_LIMIT);
    for expected in [32, 64, 128, 256, 512, 1_000, 1_000] {
        assert_eq!(size, expected);
        window.written(7, QUICK, TIMEOUT);
        size = window.ended(size, 100_000, NO_LIMIT);
    }
}

#[test]
fn slow_answer_halves_the_moves_at_once_down_to_one() {
    let mut window = Window::default();
    for expected in [32, 16, 8, 4, 2, 1, 1] {
        assert_eq!(window.ended(0, 100_000, NO_LIMIT), expected);
        window.written(7, SLOW, TIMEOUT);
    }
    window.written(7, QUICK, TIMEOUT);
    assert_eq!(window.ended(1, 100_000, NO_LIMIT), 2);
}

#[test]
fn moves_that_found_room_do_not_widen_the_window() {
    let mut window = Window::default();
    window.written(0, QUICK, TIMEOUT);
    assert_eq!(window.ended(20, 100_000, NO_LIMIT), 32);
}

#[test]
fn window_stays_below_the_given_limit_and_the_size_of_the_assignment() {
    for (partitions, max_moves, expected) in [(100_000, 3, 3), (100, 1_000, 32), (5_000, 60, 50)] {
        let mut window = Window::default();
        window.written(7, QUICK, TIMEOUT);
        assert_eq!(window.ended(5_000, partitions, max_moves), expected);
    }
}
