//! Tests of `src/session/pauses.rs`.

use super::*;

const T: Duration = Duration::from_secs(30);

#[test]
fn pauses_grow_to_their_limit_and_start_anew_after_an_answer() {
    let mut longest = Vec::new();
    for round in 0..12 {
        let drawn = (0..500).map(|seed| {
            let mut pauses = Pauses::new(seed);
            (0..round).for_each(|_| {
                let _ = pauses.after_a_round(T);
            });
            pauses.after_a_round(T)
        });
        longest.push(drawn.max().unwrap_or_default());
    }
    assert!(longest[0] <= MAX_FIRST_PAUSE && longest[0] > MAX_FIRST_PAUSE / 2);
    assert!(longest[2] > MAX_FIRST_PAUSE * 2 && longest[2] <= MAX_FIRST_PAUSE * 4);
    assert!(longest[11] <= MAX_PAUSE && longest[11] > MAX_PAUSE / 2);
    let mut pauses = Pauses::new(1);
    (0..9).for_each(|_| {
        let _ = pauses.after_a_round(T);
    });
    pauses.answered();
    assert!(pauses.after_a_round(T) <= MAX_FIRST_PAUSE);
}

#[test]
fn no_pause_is_longer_than_a_sixth_of_the_session_timeout() {
    let short = Duration::from_millis(600);
    for seed in 0..200 {
        let mut pauses = Pauses::new(seed);
        assert!((0..20).all(|_| pauses.after_a_round(short) <= short / 6));
    }
}

#[test]
fn pause_after_a_break_is_at_most_a_twentieth_of_the_session_timeout() {
    let short = MAX_PAUSE_AFTER_BREAK * 2;
    for seed in 0..200 {
        let pause = Pauses::new(seed).after_a_break(short);
        assert!(pause <= short / 20, "{pause:?}");
    }
}

#[test]
fn processes_that_lose_one_member_do_not_come_back_at_the_same_moment() {
    let pauses = (0..100).map(|seed| Pauses::new(seed).after_a_break(T));
    let mut pauses: Vec<Duration> = pauses.collect();
    pauses.sort_unstable();
    pauses.dedup();
    assert!(pauses.len() > 90);
}

const FLEET: u64 = 2000;

/// When each process of a fleet tries in vain, and when it comes back, after all members were
/// lost at the same moment for this long.
fn fleet(outage: Duration) -> (Vec<Duration>, Vec<Duration>) {
    const REFUSAL: Duration = Duration::from_millis(1);
    let (mut tries, mut returns) = (Vec::new(), Vec::new());
    for seed in 0..FLEET {
        let mut pauses = Pauses::new(seed);
        let mut at = pauses.after_a_break(T);
        while at < outage {
            for _ in 0..3 {
                tries.push(at);
                at += REFUSAL;
            }
            at += pauses.after_a_round(T);
        }
        returns.push(at);
    }
    (tries, returns)
}

/// The most of these moments within one window.
fn most_within(window: Duration, moments: &[Duration]) -> usize {
    let mut moments = moments.to_vec();
    moments.sort_unstable();
    let until = |from: Duration| moments.partition_point(|at| *at < from + window);
    let within = moments
        .iter()
        .enumerate()
        .map(|(place, at)| until(*at) - place);
    within.max().unwrap_or_default()
}

/// A round over the hosts has no pauses, so that a process moves at once if one member dies.
#[test]
fn fleet_that_loses_all_members_at_once_does_not_come_back_in_step() {
    let window = Duration::from_millis(10);
    for milliseconds in [50, 100, 200, 500, 1000, 5000, 30_000] {
        let outage = Duration::from_millis(milliseconds);
        let (tries, returns) = fleet(outage);
        let most = most_within(window, &tries) as u64;
        assert!(most < FLEET, "{outage:?}: {most} tries");
        let most = most_within(window, &returns) as u64;
        let share = if milliseconds < 500 { 5 } else { 20 };
        assert!(most < FLEET / share, "{outage:?}: {most} return");
        assert!(returns.iter().all(|at| *at <= outage + MAX_PAUSE));
    }
}
