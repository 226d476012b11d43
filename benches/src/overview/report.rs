//! The report of the bench of the overview.

use zookeeper_recipes_benches::median;
use zookeeper_recipes_benches::report::{Machine, Plot, Report, Series, Table};

use crate::effect::{CONTENDING, Effect, Viewer};
use crate::looks::{Follow, Look};
use crate::tree::{CONTENDERS, PAUSE, SESSIONS};

/// All that was measured.
pub(crate) struct Found {
    pub(crate) handoffs: u32,
    pub(crate) looks: Vec<Look>,
    pub(crate) follows: Vec<Follow>,
    pub(crate) effects: Vec<Effect>,
    /// How many queues are beside the contended lock.
    pub(crate) beside: usize,
}

/// Writes the report.
pub(crate) fn report(found: &Found, machine: Machine) -> anyhow::Result<Report> {
    let mut report = Report::new("overview", "The overview of many queues", machine);
    report.paragraph(&format!(
        "Each queue is a lock with {CONTENDERS} contenders, of {SESSIONS} sessions. Each session that \
         waits also holds a lock of its own, so that each wait might be part of a circle. There is \
         none. The viewer is a session of this process, as the load is."
    ));
    report.heading("One look");
    report.plot("look", &plot(&found.looks))?;
    report.table("looks", &looks(&found.looks));
    report.paragraph(
        "The time is that of a look without a proxy. A proxy counts the requests and the bytes of \
         another look. One sync more is not counted. The memory is what the overview keeps.",
    );
    report.heading("Kept up to date");
    report.table("follows", &follows(&found.follows));
    report.paragraph(&format!(
        "`Overview::watch` with a pause of {PAUSE:?}, through a proxy that counts. At rest nothing \
         changes. Under load 100 other locks below the same path are handed on, {} times a second in \
         all: a contender queues, and the holder is deleted. The sync of each look is not counted. \
         Processor time is the share of one core: under load, what this process needs more than for \
         the load alone, the proxy included. The longest pause is that between the ends of two looks.",
        found.handoffs
    ));
    report.heading("Beside a contended lock");
    report.table("effect", &effects(&found.effects));
    report.paragraph(&format!(
        "{CONTENDING} sessions contend for one lock and release it at once. {} queues are beside it, \
         below the same path. The rounds alternate between the viewers; the figures are medians. A \
         whole look each second is what an overview costs at servers without `addWatch`.",
        found.beside
    ));
    Ok(report)
}

fn plot(found: &[Look]) -> Plot {
    Plot {
        title: "The time of one look".to_owned(),
        right: "queues".to_owned(),
        up: "seconds".to_owned(),
        series: vec![Series {
            name: "a look".to_owned(),
            points: found
                .iter()
                .map(|look| (look.queues as f64, look.seconds))
                .collect(),
        }],
    }
}

fn looks(found: &[Look]) -> Table {
    Table::of(
        found,
        &[
            ("queues", &|it| it.queues.into()),
            ("contenders", &|it| it.contenders.into()),
            ("time [s]", &|it| it.seconds.into()),
            ("requests", &|it| it.traffic.requests.into()),
            ("requests per queue", &|it| {
                (it.traffic.requests as f64 / it.queues as f64).into()
            }),
            ("bytes", &|it| it.traffic.bytes.into()),
            ("memory [MB]", &|it| (it.bytes_in_memory / 1e6).into()),
            ("bytes of memory per contender", &|it| {
                (it.bytes_in_memory / it.contenders as f64).into()
            }),
        ],
    )
}

fn follows(found: &[Follow]) -> Table {
    let percent = |rates: &crate::looks::Rates| 100.0 * rates.processor / rates.seconds;
    Table::of(
        found,
        &[
            ("queues", &|it| it.queues.into()),
            ("first look [s]", &|it| it.first.into()),
            ("memory [MB]", &|it| (it.bytes_in_memory / 1e6).into()),
            ("at rest: requests/s", &|it| {
                it.at_rest.each(it.at_rest.traffic.requests).into()
            }),
            ("processor [%]", &|it| percent(&it.at_rest).into()),
            ("handoffs/s", &|it| it.handoffs.into()),
            ("under load: requests/s", &|it| {
                it.under_load.each(it.under_load.traffic.requests).into()
            }),
            ("notifications/s", &|it| {
                it.under_load
                    .each(it.under_load.traffic.notifications)
                    .into()
            }),
            ("bytes/s", &|it| {
                it.under_load.each(it.under_load.traffic.bytes).into()
            }),
            ("processor under load [%]", &|it| {
                percent(&it.under_load).into()
            }),
            ("longest pause [s]", &|it| it.longest.into()),
        ],
    )
}

fn effects(found: &[Effect]) -> Table {
    let alone = found.iter().find(|it| it.viewer == Viewer::Nobody);
    let alone = alone.and_then(middle);
    Table::of(
        found,
        &[
            ("viewer", &|it| {
                match it.viewer {
                    Viewer::Nobody => "nobody",
                    Viewer::Watch => "kept up to date",
                    Viewer::Looks => "a whole look each second",
                }
                .into()
            }),
            ("handoffs/s", &|it| middle(it).into()),
            ("of those with nobody [%]", &|it| {
                let share = middle(it).zip(alone);
                share.map(|(own, alone)| 100.0 * own / alone).into()
            }),
            ("least", &|it| {
                it.rounds
                    .iter()
                    .copied()
                    .fold(f64::INFINITY, f64::min)
                    .into()
            }),
            ("most", &|it| {
                it.rounds.iter().copied().fold(0.0, f64::max).into()
            }),
            ("rounds", &|it| it.rounds.len().into()),
        ],
    )
}

fn middle(effect: &Effect) -> Option<f64> {
    median(effect.rounds.iter().copied())
}
