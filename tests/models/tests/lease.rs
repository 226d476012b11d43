//! The rules of the lease, each over all schedules of the model.
//!
//! The rule of the library is clean for every T from 2 to 20 ticks. Each rule that lacks a part of
//! it is broken, so each part is needed.

use std::ops::RangeInclusive;

use stateright::{Checker, HasDiscoveries, Model};
use zookeeper_recipes_models::lease::{
    CountedFrom, LeaseModel, Proof, Rule, Servers, WaitFrom, schedule,
};

/// In ticks.
const TIMEOUTS: RangeInclusive<u16> = 2..=20;

/// A schedule in which the lease runs while a leader may expire the session.
///
/// If there is none, the search has seen everything that the model is about.
fn violation(model: LeaseModel) -> Option<String> {
    let checker = model
        .checker()
        .finish_when(HasDiscoveries::AllOf([LeaseModel::SAFE].into()))
        .spawn_bfs()
        .join();
    println!("{} states of {model:?}", checker.unique_state_count());
    let found = checker.discovery(LeaseModel::SAFE);
    // A rule that only renews a running lease renews none after a silence.
    if found.is_none() && !model.rule.only_while_it_runs {
        for seen in LeaseModel::SEEN {
            assert!(checker.discovery(seen).is_some(), "not seen: {seen}");
        }
    }
    found.map(|path| schedule(&model, path))
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
    let Some(schedule) = violation(LeaseModel { servers, rule }) else {
        panic!("no schedule breaks {rule:?} on {servers:?}");
    };
    println!("{schedule}");
    schedule
}

fn assert_clean((servers, rule): (Servers, Rule)) {
    if let Some(schedule) = violation(LeaseModel { servers, rule }) {
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

#[test]
fn the_rule_is_clean_if_the_tick_is_told() {
    for timeout in TIMEOUTS {
        assert_clean(coarsest(8 * timeout, Rule::tick_told).expect("a unit fine enough"));
    }
}

/// With T at two ticks, this is also the rule for a T that the server has raised.
#[test]
fn the_rule_is_clean_if_the_tick_is_as_assumed() {
    let rule = |servers: &Servers| Rule::tick_assumed(servers, servers.tick);
    for timeout in TIMEOUTS {
        assert_clean(coarsest(8 * timeout, rule).expect("a unit fine enough"));
    }
}

/// The server may raise T to more than two ticks.
#[test]
fn the_rule_is_clean_if_the_server_has_raised_the_timeout() {
    let rule = |servers: &Servers| Rule::tick_assumed(servers, servers.timeout / 2);
    for timeout in 3..=*TIMEOUTS.end() {
        assert_clean(coarsest(8 * timeout, rule).expect("a unit fine enough"));
    }
}

/// At three ticks there is no room for pings that are late.
#[test]
fn the_rule_is_clean_from_three_ticks_on_if_the_tick_is_longer_than_assumed() {
    let servers = Servers {
        jitter: 0,
        ..Servers::new(96, 32)
    };
    assert_clean((servers, longer_than_assumed(&servers)));
    for eighths in [25, 26, 28]
        .into_iter()
        .chain((4..=20).map(|timeout| 8 * timeout))
    {
        assert_clean(coarsest(eighths, longer_than_assumed).expect("a unit fine enough"));
    }
}

#[test]
fn below_three_ticks_an_isolated_leader_breaks_it_if_the_tick_is_longer_than_assumed() {
    for eighths in 2 * 8..3 * 8 {
        assert!(coarsest(eighths, longer_than_assumed).is_none());
    }
    for eighths in [16, 20, 22] {
        let servers = Servers::new(4 * eighths, 32);
        let schedule = assert_broken(servers, longer_than_assumed(&servers));
        assert!(schedule.contains("Isolate"));
    }
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

/// A touch takes two pings then, of half a tick each. The wait is longer than both.
///
/// With late pings and a short T, the search takes minutes: at eight ticks 7 million states.
#[test]
fn behind_an_observer_master_the_rule_is_clean_if_the_tick_is_told() {
    for (timeout, jitter) in [(3, 0), (12, 1), (20, 1)] {
        assert_clean_with_observers(timeout, jitter, Rule::tick_told);
    }
}

mod at_night {
    use super::*;

    /// 12 million states, as many as all other searches together.
    #[test]
    fn behind_an_observer_master_the_rule_is_clean_if_t_is_two_ticks_and_the_tick_is_told() {
        assert_clean_with_observers(2, 0, Rule::tick_told);
    }
}

/// The wait is a quarter of T and T/40 then.
#[test]
fn behind_an_observer_master_the_rule_is_clean_from_four_ticks_on_if_the_tick_is_not_told() {
    for (timeout, jitter) in [(4, 0), (5, 1), (8, 1), (12, 1), (20, 1)] {
        assert_clean_with_observers(timeout, jitter, |servers| {
            Rule::tick_assumed(servers, servers.tick)
        });
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

#[test]
fn one_answer_is_not_enough() {
    let (servers, _) = with_known_tick();
    let schedule = assert_broken(servers, Rule::one_answer(&servers));
    assert!(!schedule.contains("Isolate"));
}

#[test]
fn counted_from_the_answer_it_is_broken() {
    let (servers, rule) = with_known_tick();
    let counted_from = CountedFrom::Answer;
    assert_broken(
        servers,
        Rule {
            counted_from,
            ..rule
        },
    );
}

#[test]
fn without_the_wait_it_is_broken() {
    let (servers, rule) = with_known_tick();
    assert_broken(servers, Rule { wait: 0, ..rule });
}

#[test]
fn with_the_wait_from_the_sending_it_is_broken() {
    let (servers, rule) = with_known_tick();
    let wait_from = WaitFrom::Sending;
    assert_broken(servers, Rule { wait_from, ..rule });
}

#[test]
fn with_a_reconnect_proved_by_a_sync_it_is_broken() {
    let (servers, rule) = with_known_tick();
    let proof = Proof::Sync;
    assert_broken(servers, Rule { proof, ..rule });
}

#[test]
fn without_a_margin_an_isolated_leader_breaks_it() {
    let (servers, rule) = with_known_tick();
    let lease = servers.timeout;
    let schedule = assert_broken(servers, Rule { lease, ..rule });
    assert!(schedule.contains("Isolate"));
}

/// The least number that makes the rule clean.
fn least(servers: Servers, rule: impl Fn(u16) -> Rule) -> u16 {
    let is_clean = |number: &u16| {
        let rule = rule(*number);
        violation(LeaseModel { servers, rule }).is_none()
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

#[test]
fn followers_that_restart_while_their_leader_is_cut_off_break_it() {
    let (servers, rule) = with_known_tick();
    let servers = Servers {
        followers_restart: true,
        ..servers
    };
    let schedule = assert_broken(servers, rule);
    assert!(schedule.contains("Isolate"));
}

#[test]
fn packets_that_reach_a_leader_for_half_a_tick_longer_break_it() {
    let (servers, rule) = with_known_tick();
    let late_packets = servers.tick / 2;
    let schedule = assert_broken(
        Servers {
            late_packets,
            ..servers
        },
        rule,
    );
    assert!(schedule.contains("Isolate"));
}

#[test]
fn a_ping_that_is_late_on_its_way_breaks_it_unless_a_third_answer_follows() {
    for timeout in [5, 20] {
        let (servers, rule) = coarsest(8 * timeout, Rule::tick_told).expect("a unit fine enough");
        let servers = Servers {
            pings_under_way: 2,
            ..servers
        };
        assert_broken(servers, rule);
        assert_clean((servers, Rule { answers: 3, ..rule }));
    }
}

/// The lease runs meanwhile, and is renewed in the tick before the leader notices its isolation,
/// unless the wait is longer than that.
#[test]
fn an_isolated_leader_that_stands_still_for_six_ticks_breaks_a_long_lease_if_the_wait_is_a_tick() {
    let tick = 4;
    for (timeout, wait, is_broken) in [(8, tick, false), (12, tick, true), (12, tick + 1, false)] {
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
        let found = violation(LeaseModel { servers, rule });
        assert_eq!(found.is_some(), is_broken, "{found:?}");
    }
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
    let rules = [
        (true, clean),
        (false, Rule { wait: 0, ..clean }),
        (false, Rule { lease: 18, ..clean }),
        (
            false,
            Rule {
                wait_from: WaitFrom::Sending,
                ..clean
            },
        ),
        (
            false,
            Rule {
                counted_from: CountedFrom::Answer,
                ..clean
            },
        ),
        (
            false,
            Rule {
                proof: Proof::Sync,
                ..clean
            },
        ),
    ];
    for (is_clean, rule) in rules {
        for unreduced in [false, true] {
            let servers = Servers {
                unreduced,
                ..servers
            };
            let found = violation(LeaseModel { servers, rule });
            assert_eq!(found.is_none(), is_clean, "{rule:?} on {servers:?}");
        }
    }
}
