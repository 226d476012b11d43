//! The rules of the lease, each over all schedules of the model.
//!
//! The rule of the library is clean for every T from 2 to 20 ticks: each run searches some of them, and
//! the nightly run all. Each rule that lacks a part of it is broken, so each part is needed.

use std::ops::RangeInclusive;

use zookeeper_recipes_models::lease::{
    CountedFrom, LeaseModel, Proof, Rule, Servers, WaitFrom, schedule,
};
use zookeeper_recipes_models::search::violation;

/// In ticks.
const TIMEOUTS: RangeInclusive<u16> = 2..=20;

/// A schedule in which the lease runs while a leader may expire the session.
fn schedule_of(model: LeaseModel) -> Option<String> {
    // A rule that only renews a running lease renews none after a silence.
    let seen = match model.rule.only_while_it_runs {
        true => &[][..],
        false => &LeaseModel::SEEN,
    };
    let path = violation(&format!("{model:?}"), model, &[LeaseModel::SAFE], seen)?;
    Some(schedule(&model, path))
}

/// Looks for a schedule with clocks that are right, pings in time, and rounding for the better, so
/// that nothing but the rule is to blame.
fn assert_broken(servers: Servers, rule: Rule) -> String {
    let servers = Servers {
        jitter: 0,
        ..servers
    };
    let rule = Rule {
        lease: rule.lease - rule.lease.div_ceil(50) - 1,
        wait: if rule.wait == 0 { 0 } else { rule.wait + 1 },
        ..rule
    };
    let Some(schedule) = schedule_of(LeaseModel { servers, rule }) else {
        panic!("no schedule breaks {rule:?} on {servers:?}");
    };
    println!("{schedule}");
    schedule
}

fn assert_clean((servers, rule): (Servers, Rule)) {
    if let Some(schedule) = schedule_of(LeaseModel { servers, rule }) {
        panic!("{rule:?} on {servers:?} is broken by\n{schedule}");
    }
}

/// Servers and rule in the coarsest unit that leaves the rule room after all rounding.
///
/// T is given in eighths of a tick.
fn coarsest(eighths: u16, rule: impl Fn(&Servers) -> Rule) -> Option<(Servers, Rule)> {
    coarsest_of(eighths, rule, |servers| servers)
}

/// As [`coarsest`], with a change of the servers.
fn coarsest_of(
    eighths: u16,
    rule: impl Fn(&Servers) -> Rule,
    change: impl Fn(Servers) -> Servers,
) -> Option<(Servers, Rule)> {
    (2..=32)
        .map(|half_a_tick| 2 * half_a_tick)
        .filter(|tick| eighths * tick % 8 == 0)
        .map(|tick| change(Servers::new(eighths * tick / 8, tick)))
        .map(|servers| (servers, rule(&servers)))
        .find(|(servers, rule)| servers.leave_room_to(rule))
}

/// T is five ticks, and the tick is set.
fn with_known_tick() -> (Servers, Rule) {
    coarsest(5 * 8, Rule::tick_told).expect("a unit fine enough")
}

/// The tick may be longer than 2 s, which is taken for it; these are short against T.
fn longer_than_assumed(servers: &Servers) -> Rule {
    Rule::tick_assumed(servers, 0)
}

/// The rule, for what the library knows of the tick. With T at two ticks, the second is also the rule
/// for a T that the server has raised. The last is for a T that the server has raised further.
const RULES: [fn(&Servers) -> Rule; 3] = [
    Rule::tick_told,
    |servers| Rule::tick_assumed(servers, servers.tick),
    |servers| Rule::tick_assumed(servers, servers.timeout / 2),
];

fn assert_clean_at(timeouts: impl IntoIterator<Item = u16>, rule: fn(&Servers) -> Rule) {
    for timeout in timeouts {
        assert_clean(coarsest(8 * timeout, rule).expect("a unit fine enough"));
    }
}

#[test]
fn the_rule_is_clean_whatever_is_known_of_the_tick() {
    let [told, assumed, raised] = RULES;
    assert_clean_at([2, 3, 5, 12], told);
    assert_clean_at([3, 5, 12], assumed);
    assert_clean_at([3, 5, 12], raised);
}

#[test]
fn the_rule_is_clean_from_three_ticks_on_if_the_tick_is_longer_than_assumed() {
    for eighths in [28, 8 * 4, 8 * 12] {
        assert_clean(coarsest(eighths, longer_than_assumed).expect("a unit fine enough"));
    }
}

fn assert_broken_by_a_longer_tick(eighths: u16) {
    let servers = Servers::new(4 * eighths, 32);
    let schedule = assert_broken(servers, longer_than_assumed(&servers));
    assert!(schedule.contains("Isolate"));
}

#[test]
fn below_three_ticks_an_isolated_leader_breaks_it_if_the_tick_is_longer_than_assumed() {
    for eighths in 2 * 8..3 * 8 {
        assert!(coarsest(eighths, longer_than_assumed).is_none());
    }
    assert_broken_by_a_longer_tick(20);
}

/// Servers with observers behind observer masters, in the coarsest unit that leaves the rule room.
fn assert_clean_with_observers(timeout: u16, jitter: u16, rule: fn(&Servers) -> Rule) {
    let change = |servers| Servers {
        observers: true,
        jitter,
        ..servers
    };
    assert_clean(coarsest_of(8 * timeout, rule, change).expect("a unit fine enough"));
}

/// A touch takes two pings then, of half a tick each. The wait is longer than both. If the tick is not
/// told, the wait is a quarter of T and T/40.
///
/// With late pings and a short T, the search takes minutes: at eight ticks 7 million states.
#[test]
fn behind_an_observer_master_the_rule_is_clean_from_four_ticks_on() {
    assert_clean_with_observers(12, 1, RULES[1]);
}

/// The other timeouts that the page names: 30 million states.
mod at_night {
    use super::*;

    #[test]
    fn the_rule_is_clean_for_each_t_whatever_is_known_of_the_tick() {
        let [told, assumed, raised] = RULES;
        assert_clean_at(TIMEOUTS, told);
        assert_clean_at(TIMEOUTS, assumed);
        assert_clean_at(3..=*TIMEOUTS.end(), raised);
    }

    /// At three ticks there is no room for pings that are late.
    #[test]
    fn the_rule_is_clean_for_each_t_from_three_ticks_on_if_the_tick_is_longer_than_assumed() {
        let servers = Servers {
            jitter: 0,
            ..Servers::new(96, 32)
        };
        assert_clean((servers, longer_than_assumed(&servers)));
        for eighths in [25, 26]
            .into_iter()
            .chain((4..=20).map(|timeout| 8 * timeout))
        {
            assert_clean(coarsest(eighths, longer_than_assumed).expect("a unit fine enough"));
        }
        for eighths in [16, 22] {
            assert_broken_by_a_longer_tick(eighths);
        }
    }

    /// At two ticks there are 12 million states.
    #[test]
    fn behind_an_observer_master_the_rule_is_clean_for_each_t() {
        let [told, assumed, _] = RULES;
        for (timeout, jitter) in [(2, 0), (3, 0), (12, 1), (20, 1)] {
            assert_clean_with_observers(timeout, jitter, told);
        }
        for (timeout, jitter) in [(4, 0), (5, 1), (8, 1), (20, 1)] {
            assert_clean_with_observers(timeout, jitter, assumed);
        }
    }

    #[test]
    fn a_ping_that_is_late_on_its_way_breaks_it_at_a_short_t_unless_a_third_answer_follows() {
        assert_broken_by_a_late_ping_unless_a_third_answer_follows(5);
    }

    /// The lease runs meanwhile, and is renewed in the tick before the leader notices its isolation,
    /// unless the wait is longer than that.
    #[test]
    fn an_isolated_leader_that_stands_still_for_six_ticks_breaks_a_long_lease_if_the_wait_is_a_tick()
     {
        let tick = 4;
        for (timeout, wait, is_broken) in
            [(8, tick, false), (12, tick, true), (12, tick + 1, false)]
        {
            let servers = Servers {
                jitter: 0,
                stands_still: 6 * tick,
                ..Servers::new(tick * timeout, tick)
            };
            let rule = Rule {
                wait,
                only_while_it_runs: true,
                ..Rule::tick_told(&servers)
            };
            let rule = Rule {
                lease: rule.lease - 2,
                ..rule
            };
            let found = schedule_of(LeaseModel { servers, rule });
            assert_eq!(found.is_some(), is_broken, "{found:?}");
        }
    }
}

#[test]
fn behind_an_observer_master_it_is_broken_below_four_ticks_if_the_tick_is_not_told() {
    for timeout in [2, 3] {
        let servers = Servers {
            observers: true,
            ..Servers::new(8 * timeout, 8)
        };
        let schedule = assert_broken(servers, Rule::tick_assumed(&servers, servers.tick));
        assert!(schedule.contains("Observer"), "{schedule}");
    }
}

/// A test of each row: with this change the rule is broken, by a schedule with this step.
macro_rules! broken {
    ($($name:ident: $step:literal, $change:expr;)+) => {
        $(
            #[test]
            fn $name() {
                let (mut servers, mut rule) = with_known_tick();
                let change: fn(&mut Servers, &mut Rule) = $change;
                change(&mut servers, &mut rule);
                let schedule = assert_broken(servers, rule);
                assert!(schedule.contains($step), "{schedule}");
            }
        )+
    };
}

broken! {
    one_answer_is_not_enough:
        "CutOff", |servers, rule| *rule = Rule::one_answer(servers);
    counted_from_the_answer_it_is_broken:
        "Answer", |_, rule| rule.counted_from = CountedFrom::Answer;
    without_the_wait_it_is_broken:
        "Answer", |_, rule| rule.wait = 0;
    with_the_wait_from_the_sending_it_is_broken:
        "Answer", |_, rule| rule.wait_from = WaitFrom::Sending;
    with_a_reconnect_proved_by_a_sync_it_is_broken:
        "Reconnect", |_, rule| rule.proof = Proof::Sync;
    without_a_margin_an_isolated_leader_breaks_it:
        "Isolate", |servers, rule| rule.lease = servers.timeout;
    followers_that_restart_while_their_leader_is_cut_off_break_it:
        "Isolate", |servers, _| servers.followers_restart = true;
    packets_that_reach_a_leader_for_half_a_tick_longer_break_it:
        "Isolate", |servers, _| servers.late_packets = servers.tick / 2;
}

/// The least number that makes the rule clean.
fn least(servers: Servers, rule: impl Fn(u16) -> Rule) -> u16 {
    let is_clean = |number: &u16| {
        let rule = rule(*number);
        schedule_of(LeaseModel { servers, rule }).is_none()
    };
    let clean = (0..servers.timeout).find(is_clean);
    clean.expect("a number makes the rule clean")
}

/// T is two ticks. A wait of half a tick, and the lateness of a ping, are needed.
#[test]
fn least_wait_is_longer_than_the_time_between_two_pings() {
    for jitter in 0..=2 {
        let (tick, timeout) = (8, 16);
        let servers = Servers {
            jitter,
            ..Servers::new(timeout, tick)
        };
        let margin = |wait| (tick + servers.tick / 2 + jitter + 1).saturating_sub(wait);
        let wait = least(servers, |wait| Rule {
            wait,
            lease: timeout - margin(wait),
            ..Rule::tick_told(&servers)
        });
        assert_eq!(wait, tick / 2 + jitter + 1);
    }
}

/// T is two ticks. A unit more than the bound is one moment in whole units.
#[test]
fn least_margin_is_as_long_as_an_isolated_leader_answers_less_the_wait() {
    let (tick, timeout) = (8, 16);
    for (jitter, leader_loses, answers) in [
        (0, 0, tick),
        (0, tick / 4, tick + tick / 4),
        (0, tick / 2, tick + tick / 2),
        (1, tick, tick + tick / 2 + 1),
        (2, tick, tick + tick / 2 + 2),
    ] {
        let servers = Servers {
            jitter,
            leader_loses,
            ..Servers::new(timeout, tick)
        };
        let wait = tick / 2 + jitter + 1;
        let margin = least(servers, |margin| Rule {
            wait,
            lease: timeout - margin,
            ..Rule::tick_told(&servers)
        });
        assert_eq!(margin, answers + 1 - wait, "{jitter} {leader_loses}");
    }
}

/// T is three ticks, and the tick is a quarter longer than assumed.
#[test]
fn without_a_quarter_of_t_as_margin_a_tick_longer_than_assumed_breaks_it() {
    let servers = Servers::new(96, 32);
    let rule = Rule::tick_assumed(&servers, 24);
    let margin = 24 * 3 / 2 - rule.wait + servers.timeout / 20;
    let lease = servers.timeout - margin;
    let schedule = assert_broken(servers, Rule { lease, ..rule });
    assert!(schedule.contains("Isolate"));
}

fn assert_broken_by_a_late_ping_unless_a_third_answer_follows(timeout: u16) {
    let (servers, rule) = coarsest(8 * timeout, Rule::tick_told).expect("a unit fine enough");
    let servers = Servers {
        pings_under_way: 2,
        ..servers
    };
    assert_broken(servers, rule);
    assert_clean((servers, Rule { answers: 3, ..rule }));
}

#[test]
fn a_ping_that_is_late_on_its_way_breaks_it_unless_a_third_answer_follows() {
    assert_broken_by_a_late_ping_unless_a_third_answer_follows(20);
}

/// What the model leaves out makes no difference.
#[test]
fn without_its_reductions_the_model_judges_the_same() {
    let servers = Servers {
        jitter: 0,
        ..Servers::new(24, 8)
    };
    let clean = Rule {
        wait: 5,
        lease: 12,
        ..Rule::tick_told(&servers)
    };
    let changes: [fn(&mut Rule); 5] = [
        |rule| rule.wait = 0,
        |rule| rule.lease = 18,
        |rule| rule.wait_from = WaitFrom::Sending,
        |rule| rule.counted_from = CountedFrom::Answer,
        |rule| rule.proof = Proof::Sync,
    ];
    let broken = changes.map(|change| {
        let mut rule = clean;
        change(&mut rule);
        (false, rule)
    });
    let rules = [(true, clean)].into_iter().chain(broken);
    for (is_clean, rule) in rules {
        for unreduced in [false, true] {
            let servers = Servers {
                unreduced,
                ..servers
            };
            let found = schedule_of(LeaseModel { servers, rule });
            assert_eq!(found.is_none(), is_clean, "{rule:?} on {servers:?}");
        }
    }
}
