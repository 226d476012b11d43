//! What the contests came to: a table, its legend, and whether the promises were kept.

use zookeeper_recipes_benches::report::Table;
use zookeeper_recipes_benches::way::POLL_INTERVAL;

use crate::contest::{Contest, Outcome, WAYS};

/// The figures, a line for each way.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    // No contender waits behind the last one; the starter's release was the first.
    let each = |outcome: &Outcome, sum: u64| sum as f64 / outcome.turns.max(1) as f64;
    let table = Table::of(
        WAYS.iter().zip(outcomes),
        &[
            ("way to wait", &|(way, _)| way.name.into()),
            ("time for all [s]", &|(_, it)| it.took.as_secs_f64().into()),
            ("requests", &|(_, it)| it.all.requests.into()),
            ("notifications", &|(_, it)| it.all.notifications.into()),
            ("requests per release", &|(_, it)| {
                each(it, it.passing.requests).into()
            }),
            ("woken per release", &|(_, it)| {
                each(it, it.passing.wake_ups).into()
            }),
        ],
    );
    table.to_markdown().trim_end().to_owned()
}

/// What the figures are.
pub(crate) fn legend(contest: &Contest) -> String {
    let number = u32::try_from(contest.contenders).unwrap_or(u32::MAX);
    format!(
        "\n\
         time for all: from the starter's release to the last one's; {:?} of it they held.\n\
         requests, notifications: from the first acquire to the last release, counted by the\n\
         contenders, without pings and the sessions' probes.\n\
         per release: since all of them waited. Woken: notifications to other sessions than the\n\
         releasing one. No release wakes a poller, which looks every {POLL_INTERVAL:?}.\n",
        contest.hold.saturating_mul(number),
    )
}

/// The promises that were kept, a line each.
pub(crate) fn verdict(outcomes: &[Outcome]) -> Vec<String> {
    let turns: usize = outcomes.iter().map(|outcome| outcome.turns).sum();
    let mut lines = vec![format!(
        "Never two at once: {turns} holds, each entered after the one before had left, \
         each with a newer token."
    )];
    for (way, outcome) in WAYS.iter().zip(outcomes) {
        let (name, turns, out_of_turn) = (way.name, outcome.turns, outcome.out_of_turn);
        lines.push(match way.has_queue() {
            true => {
                format!("Order kept, {name}: {turns} of {turns} held in the order of the queue.")
            }
            false => {
                format!("Order not promised, {name}: {out_of_turn} of {turns} held out of turn.")
            }
        });
    }
    lines
}
