//! The findings, in words, figures and pictures.

use hdrhistogram::Histogram;
use zookeeper_recipes_benches::report::{Cell, Machine, Plot, Report, Series, Table};
use zookeeper_recipes_benches::way::{POLL_INTERVAL, Way};

use crate::measure::{Cost, Costs, Row, Times};

const ABOUT: &str = "\
Contenders queue for one lock, each with a session and a connection of its own; more than 1,000 share \
sessions. A holder releases; the next contender holds; the earlier holder goes to the end of the queue. \
The next holder releases when all others wait and nothing is under way. So each release is measured \
alone, with the queue as long as the table says.";

pub(crate) fn report(rows: &[Row], machine: Machine) -> anyhow::Result<Report> {
    let mut report = Report::new("herd", "What a release costs", machine);
    report.paragraph(ABOUT);
    report.paragraph(&legend());
    report.heading("Exclusive lock");
    for picture in PICTURES {
        let plot = Plot {
            title: format!("Exclusive lock: {}", picture.title),
            right: "contenders".to_owned(),
            up: picture.up.to_owned(),
            series: series(rows, picture.figure),
        };
        report.plot(&format!("lock-{}", picture.name), &plot)?;
    }
    report.table("lock-release", &table(rows, &RELEASE));
    report.paragraph("The cost of going to the end of the queue after the release:");
    report.table("lock-join", &table(rows, &JOIN));
    Ok(report)
}

fn legend() -> String {
    format!(
        "* **woken**: notifications to other sessions than the releasing one.\n\
         * **notifications, requests, bytes**: all of them, counted on the wire by a proxy, from \
         the call of release until each contender waits or holds; pings, the sessions' probes and \
         TCP's headers are not counted. This is a run of its own: times are taken without a proxy.\n\
         * **without lists**: the bytes that are no list of the queue. Only a list may grow with the \
         queue. **a list alone** is the median time of one.\n\
         * **time of a release**: from the call of release until the next one holds. **Of going to the \
         end**: from the call of acquire until the contender waits behind all others, its watches \
         set. p99 where at least 100 were timed, p99.9 where 1,000 were.\n\
         * **poll** looks every {POLL_INTERVAL:?}. A release comes at a random moment of that \
         interval, and requests are counted until the next contender holds. While a contender \
         holds, they all continue to look."
    )
}

struct Picture {
    name: &'static str,
    title: &'static str,
    up: &'static str,
    figure: fn(&Row) -> f64,
}

const PICTURES: [Picture; 3] = [
    Picture {
        name: "notifications",
        title: "how many a release wakes",
        up: "notifications to others per release",
        figure: |row| per_release(row, row.costs.of_releases.notified),
    },
    Picture {
        name: "bytes",
        title: "what a release moves over the wire",
        up: "bytes per release",
        figure: |row| per_release(row, row.costs.of_releases.traffic.bytes),
    },
    Picture {
        name: "handoff",
        title: "from release to the next holder",
        up: "median handoff [ms]",
        figure: |row| milliseconds(row.times.handoffs.value_at_quantile(0.5)),
    },
];

fn series(rows: &[Row], figure: fn(&Row) -> f64) -> Vec<Series> {
    let of_way = |way: &Way| {
        let rows = rows.iter().filter(|row| row.way.name == way.name);
        Series {
            name: way.name.to_owned(),
            points: rows
                .map(|row| (row.contenders as f64, figure(row)))
                .collect(),
        }
    };
    Way::ALL.iter().map(of_way).collect()
}

/// One of the two steps of a turn.
struct Step {
    cost: fn(&Costs) -> Cost,
    times: fn(&Times) -> &Histogram<u64>,
}

const RELEASE: Step = Step {
    cost: |costs| costs.of_releases,
    times: |times| &times.handoffs,
};

const JOIN: Step = Step {
    cost: |costs| costs.of_joins,
    times: |times| &times.joins,
};

fn table(rows: &[Row], step: &Step) -> Table {
    let each = |row: &Row, count: fn(Cost) -> u64| {
        Cell::Figure(per_release(row, count((step.cost)(&row.costs))))
    };
    let time = |row: &Row, quantile, least| percentile((step.times)(&row.times), quantile, least);
    Table::of(
        rows,
        &[
            ("way to wait", &|row| row.way.name.into()),
            ("contenders", &|row| row.contenders.into()),
            ("woken", &|row| each(row, |cost| cost.notified)),
            ("notifications", &|row| {
                each(row, |cost| cost.traffic.notifications)
            }),
            ("requests", &|row| each(row, |cost| cost.traffic.requests)),
            ("bytes", &|row| each(row, |cost| cost.traffic.bytes)),
            ("without lists", &|row| {
                each(row, |cost| cost.traffic.bytes - cost.traffic.list_bytes)
            }),
            ("counted", &|row| row.costs.releases.into()),
            ("p50 [ms]", &|row| time(row, 0.5, 1)),
            ("p99 [ms]", &|row| time(row, 0.99, 100)),
            ("p99.9 [ms]", &|row| time(row, 0.999, 1_000)),
            ("a list alone [ms]", &|row| {
                percentile(&row.times.lists, 0.5, 1)
            }),
            ("timed", &|row| (step.times)(&row.times).len().into()),
        ],
    )
}

fn per_release(row: &Row, sum: u64) -> f64 {
    sum as f64 / row.costs.releases.max(1) as f64
}

/// A percentile in milliseconds; nothing if fewer than `least` were timed.
fn percentile(times: &Histogram<u64>, quantile: f64, least: u64) -> Cell {
    let percentile = || milliseconds(times.value_at_quantile(quantile));
    (times.len() >= least).then(percentile).into()
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
