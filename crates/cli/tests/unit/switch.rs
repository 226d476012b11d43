//! Tests of `src/run/switch.rs`.

use super::*;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn command_is_asked_to_stop_and_then_killed_before_the_end() {
    let mut switch = Switch::new(seconds(10.0), seconds(1.0));
    assert_eq!(switch.due(seconds(8.9)), None);
    assert_eq!(switch.quiet(seconds(8.0)), seconds(1.0));
    assert_eq!(switch.due(seconds(9.0)), Some(Blow::Stop));
    assert_eq!(switch.due(seconds(9.1)), None);
    assert_eq!(switch.due(seconds(9.98)), Some(Blow::Kill));
    assert_eq!(switch.due(seconds(11.0)), None);
}

#[test]
fn renewal_keeps_the_command_and_does_not_take_back_a_stop() {
    let mut switch = Switch::new(seconds(10.0), seconds(1.0));
    switch.lasts(seconds(12.0));
    assert_eq!(switch.due(seconds(10.5)), None);
    assert_eq!(switch.due(seconds(11.5)), Some(Blow::Stop));
    switch.lasts(seconds(20.0));
    assert_eq!(switch.due(seconds(12.0)), Some(Blow::Kill));
}

#[test]
fn hold_that_is_over_kills_at_once() {
    let mut switch = Switch::new(seconds(10.0), seconds(1.0));
    switch.lasts(Duration::ZERO);
    assert_eq!(switch.due(seconds(5.0)), Some(Blow::Kill));
    assert!(switch.has_struck());
}

#[test]
fn guard_that_was_stopped_for_long_kills_at_its_first_look() {
    let mut switch = Switch::new(seconds(10.0), seconds(1.0));
    assert_eq!(switch.due(seconds(30.0)), Some(Blow::Kill));
}
