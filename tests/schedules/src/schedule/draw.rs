//! How a seed draws a schedule.
//!
//! A seed gives the same schedule for as long as the numbers are drawn in the same order.

use std::time::Duration;

use fastrand::Rng;
use zookeeper_recipes_simulation::{FaultRates, Limits, Opcode, SimulationOptions};
use zookeeper_recipes_suite::TestedRecipe;

use super::loss::DataLoss;
use super::{Crowd, Interference, Schedule};

impl Schedule {
    pub(crate) fn draw(recipe: &TestedRecipe, seed: u64, trace_limit: usize) -> Schedule {
        let mut rng = Rng::with_seed(seed);
        let mut options = draw_options(trace_limit, &mut rng);
        let session_timeout = options.session_timeout;
        let rates = draw_rates(&options, &mut rng);
        let interference = draw_interference(recipe, &mut rng);
        let crowd = draw_crowd(&mut rng);
        if crowd != Crowd::default() {
            options.limits.requests_per_second = 50_000;
        }
        let only_pairs = rng.u8(..5) == 0;
        let (rates, interference) = match only_pairs {
            true => (without_chance(rates), Interference::default()),
            false => (rates, interference),
        };
        let stays_long = only_pairs || rng.u8(..5) == 0;
        let mut schedule = Schedule {
            options,
            processes: rng.usize(2..=4),
            contenders: rng.usize(1..=3),
            troubled: match stays_long {
                true => session_timeout * rng.u32(3..=6),
                false => milliseconds(rng.u64(5_000..=25_000)),
            },
            stays_long,
            forgets: true,
            crowd,
            rates,
            interference,
            between_pairs: match rng.u8(..5) {
                _ if only_pairs => Some(session_timeout / 2),
                0..=1 => Some(milliseconds(rng.u64(1_000..=8_000))),
                _ => None,
            },
            resizes: recipe.resizes && rng.bool(),
            observers: if recipe.elects { rng.usize(0..=2) } else { 0 },
            first_number: draw_first_number(&mut rng),
            neglects: (rng.u8(..3) == 0).then_some(session_timeout * 2),
            loses_data: None,
            lasting: None,
        };
        if !only_pairs && rng.u8(..3) == 0 {
            schedule.rates.outcome_hidden = 0.05 * rng.f64();
        }
        if !only_pairs {
            draw_slow_network(&mut schedule.rates, session_timeout, &mut rng);
        }
        if rng.u8(..5) == 0 {
            let loss = DataLoss::draw(session_timeout, schedule.troubled, &mut rng);
            schedule.loses_data = Some(loss);
        }
        if !only_pairs && rng.u8(..4) == 0 {
            draw_names(&mut schedule, &mut rng);
        }
        schedule
    }
}

/// Now and then servers that answer handshakes late, and processes far away from the servers.
fn draw_slow_network(rates: &mut FaultRates, session_timeout: Duration, rng: &mut Rng) {
    if rng.u8(..3) == 0 {
        rates.overloaded = 0.2 * rng.f64();
        rates.handshakes_late_by = session_timeout * rng.u32(5..=150) / 100;
        rates.overloaded_for = session_timeout * 2;
    }
    if rng.u8(..4) == 0 {
        rates.path_long = 0.05 * rng.f64();
        rates.path_longer_by = session_timeout * rng.u32(5..=50) / 100;
        rates.path_long_for = session_timeout * 2;
    }
}

/// One name for all servers, look-ups that fail or are late, and servers that move.
fn draw_names(schedule: &mut Schedule, rng: &mut Rng) {
    let rates = &mut schedule.rates;
    rates.look_up_failed = 0.3 * rng.f64();
    rates.look_up_late = 0.3 * rng.f64();
    rates.look_up_late_by = schedule.options.session_timeout * rng.u32(5..=200) / 100;
    rates.moved = 0.05 * rng.f64();
    schedule.options.one_name = rng.bool();
}

fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The servers, their network and their clocks.
fn draw_options(trace_limit: usize, rng: &mut Rng) -> SimulationOptions {
    let tick = milliseconds(rng.u64(500..=2_000));
    let ticks = rng.u32(2..=10);
    // In a session of two ticks nothing can be kept over a network that is slow for it.
    let (tick, slow) = match ticks {
        2 => (tick.max(milliseconds(1_500)), 0),
        _ => (tick, rng.u32(0..=4)),
    };
    let session_timeout = tick * ticks;
    let network = rng.u64(0..=20);
    SimulationOptions {
        seed: rng.u64(..),
        servers: [1, 1, 3, 3, 3, 5][rng.usize(..6)],
        sync_limit: rng.u32(2..=5),
        forgets_sessions: rng.u8(..20) == 0,
        clock_drift: if rng.bool() { 10_000 } else { 0 },
        unknown: match rng.u8(..80) {
            0 => vec![Opcode::CreateContainer],
            1 => vec![Opcode::RemoveWatches],
            2 => vec![Opcode::SetWatches],
            _ => Vec::new(),
        },
        session_timeout,
        tick,
        network_delay: Duration::ZERO..=milliseconds(network),
        commit_delay: Duration::ZERO..=milliseconds(rng.u64(0..=20)),
        follower_lag: Duration::ZERO..=session_timeout / 100 * slow,
        container_interval: Duration::from_secs(rng.u64(5..=60)),
        trace_limit,
        limits: limits(),
        ..SimulationOptions::default()
    }
}

/// How often things go wrong, each kind by chance not at all, seldom or often.
fn draw_rates(options: &SimulationOptions, rng: &mut Rng) -> FaultRates {
    let session_timeout = options.session_timeout;
    let mut rate = |most: f64| match rng.u8(..3) {
        0 => 0.0,
        1 => most * rng.f64() / 10.0,
        _ => most * rng.f64(),
    };
    FaultRates {
        request_lost: rate(0.1),
        reply_lost: rate(0.1),
        outcome_hidden: 0.0,
        request_late: rate(0.1),
        reply_late: rate(0.1),
        event_late: rate(0.3),
        late_by: session_timeout,
        disconnected: rate(0.3),
        throttled: rate(0.02),
        forgotten: rate(0.3),
        replaced: rate(1.0),
        blocked: rate(0.1),
        blocked_for: session_timeout * 2,
        one_way: rate(1.0),
        isolated: rate(0.05),
        isolated_for: options.tick * (options.sync_limit + 4),
        stalled: rate(0.05),
        stalled_for: session_timeout,
        paused: rate(0.03),
        paused_for: session_timeout,
        partitioned: rate(0.1),
        partitioned_for: session_timeout * 2,
        asleep: rate(0.1),
        asleep_for: session_timeout * 2,
        cut_off: rate(0.1),
        cut_off_for: session_timeout * 2,
        elected: rate(0.05),
        elected_within: options.tick,
        // The interference ends sessions, so that the test knows which.
        ..FaultRates::default()
    }
}

/// How others meddle.
fn draw_interference(recipe: &TestedRecipe, rng: &mut Rng) -> Interference {
    let mut likely = |of: u8, weight: u32| if rng.u8(..of) == 0 { weight } else { 0 };
    Interference {
        // All holders of a lock of one znode have the same path, and must be distinguished by it.
        deletes_contenders: likely(if recipe.queues { 3 } else { 8 }, 2),
        ends_sessions: likely(3, 1),
        // Nor may its data be lost, by which its owner knows it.
        writes_to_contenders: if recipe.queues { likely(2, 4) } else { 0 },
        makes_other_children: if recipe.queues { likely(2, 2) } else { 0 },
        reaps_directories: likely(2, 2),
        changes_acls: if recipe.queues { likely(8, 2) } else { 0 },
        contends: likely(3, 1) == 1,
    }
}

/// Now and then many waiters, or many holds.
fn draw_crowd(rng: &mut Rng) -> Crowd {
    match rng.u8(..100) {
        0 => Crowd {
            waiters: rng.usize(100..=400),
            holds: rng.usize(0..=20),
        },
        1 => Crowd {
            waiters: rng.usize(0..=50),
            holds: rng.usize(500..=1_500),
        },
        _ => Crowd::default(),
    }
}

/// Now and then shortly before the numbers grow longer, or come to their end.
fn draw_first_number(rng: &mut Rng) -> i32 {
    match rng.u8(..8) {
        0 => i32::MAX - rng.i32(0..=40),
        1 => 1_000_000_000 - rng.i32(0..=20),
        2 => 9_999_990,
        _ => 0,
    }
}

/// The rates with every chance taken out: a pair shows best if nothing else happens.
fn without_chance(rates: FaultRates) -> FaultRates {
    FaultRates {
        late_by: rates.late_by,
        blocked_for: rates.blocked_for,
        isolated_for: rates.isolated_for,
        stalled_for: rates.stalled_for,
        paused_for: rates.paused_for,
        partitioned_for: rates.partitioned_for,
        asleep_for: rates.asleep_for,
        cut_off_for: rates.cut_off_for,
        elected_within: rates.elected_within,
        ..FaultRates::default()
    }
}

/// More than this happens only if something spins.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.at_one_instant = 200_000;
    limits.requests_per_second = 5_000;
    limits.changes = 1_000_000;
    limits.outstanding = 1_000_000;
    limits.wall_clock = Duration::from_secs(600);
    limits
}
