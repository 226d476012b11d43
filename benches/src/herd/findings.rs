//! The findings, in words, figures and pictures.

use hdrhistogram::Histogram;
use zookeeper_recipes_benches::measure::{Cost, Costs};
use zookeeper_recipes_benches::report::{Cell, Column, Machine, Plot, Report, Series, Table};
use zookeeper_recipes_benches::way::{POLL_INTERVAL, Subject, Way};

/// All rows, in the order in which they were measured.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) rows: Vec<Row>,
}

/// The findings for one way to wait and one number of contenders.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) subject: Subject,
    pub(crate) way: Way,
    pub(crate) contenders: usize,
    /// From a call of release until the next contender holds, in nanoseconds.
    pub(crate) handoffs: Histogram<u64>,
    pub(crate) costs: Costs,
}

const ABOUT: &str = "\
Contenders queue for one lock, each with a session and a connection of its own. A holder releases; \
the next contender holds; the earlier holder goes to the end of the queue. The next holder \
releases when all others wait and nothing is under way. So each release is measured alone, with \
the queue as long as the table says.";

const ABOUT_SHARED: &str = "\
One contender in ten is a writer (at least one), the others are readers, queued in random order. \
Any holder releases, writer or reader. That lets in no contender, a writer, or all readers up to \
the next writer, and each contender let in is a handoff. A single node has no readers.";

impl Findings {
    /// Writes the report.
    ///
    /// # Errors
    ///
    /// If a picture cannot be drawn.
    pub(crate) fn report(&self, machine: Machine) -> anyhow::Result<Report> {
        let mut report = Report::new("herd", "What a release costs", machine);
        report.paragraph(ABOUT);
        report.paragraph(&legend());
        for (subject, name, heading) in [
            (Subject::Lock, "lock", "Exclusive lock"),
            (Subject::RwLock, "shared-lock", "Read/write lock"),
        ] {
            report.heading(heading);
            if subject == Subject::RwLock {
                report.paragraph(ABOUT_SHARED);
            }
            self.of_subject(&mut report, subject, name, heading)?;
        }
        Ok(report)
    }

    fn of_subject(
        &self,
        report: &mut Report,
        subject: Subject,
        name: &str,
        heading: &str,
    ) -> anyhow::Result<()> {
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.subject == subject)
            .collect();
        for picture in PICTURES {
            let plot = Plot {
                title: format!("{heading}: {}", picture.title),
                right: "contenders".to_owned(),
                up: picture.up.to_owned(),
                series: series(&rows, picture.figure),
            };
            report.plot(&format!("{name}-{}", picture.name), &plot)?;
        }
        report.table(&format!("{name}-release"), &releases(&rows));
        report.paragraph("The cost of going to the end of the queue after the release:");
        report.table(&format!("{name}-join"), &joins(&rows));
        Ok(())
    }
}

/// The legend of the figures.
fn legend() -> String {
    format!(
        "* **woken**: notifications to other sessions than the releasing one.\n\
         * **notifications, requests, bytes**: all of them, counted on the wire by a proxy, from \
         the call of release until each contender waits or holds; pings, the sessions' probes and \
         TCP's headers are not counted. This is a run of its own: times are taken without a proxy.\n\
         * **handoff**: from the call of release until the next one holds; p99 where at least 100 \
         handoffs were timed, p99.9 where 1,000 were.\n\
         * **poll** looks every {POLL_INTERVAL:?}. A release comes at a random moment of that \
         interval, and requests are counted until the next contender holds. While a contender \
         holds, they all go on looking."
    )
}

/// A picture for each kind of lock.
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
        figure: |row| milliseconds(row.handoffs.value_at_quantile(0.5)),
    },
];

fn series(rows: &[&Row], figure: fn(&Row) -> f64) -> Vec<Series> {
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

fn releases(rows: &[&Row]) -> Table {
    let mut table = Table::new([
        Column::text("way to wait"),
        Column::figures("contenders"),
        Column::figures("woken"),
        Column::figures("notifications"),
        Column::figures("requests"),
        Column::figures("bytes"),
        Column::figures("releases counted"),
        Column::figures("handoff p50 [ms]"),
        Column::figures("p99 [ms]"),
        Column::figures("p99.9 [ms]"),
        Column::figures("handoffs timed"),
    ]);
    for row in rows {
        let [woken, notifications, requests, bytes] = figures(row, &row.costs.of_releases);
        table.row([
            row.way.name.into(),
            Cell::Count(row.contenders as u64),
            woken,
            notifications,
            requests,
            bytes,
            Cell::Count(row.costs.releases),
            percentile(&row.handoffs, 0.5, 1),
            percentile(&row.handoffs, 0.99, 100),
            percentile(&row.handoffs, 0.999, 1_000),
            Cell::Count(row.handoffs.len()),
        ]);
    }
    table
}

fn joins(rows: &[&Row]) -> Table {
    let mut table = Table::new([
        Column::text("way to wait"),
        Column::figures("contenders"),
        Column::figures("woken"),
        Column::figures("notifications"),
        Column::figures("requests"),
        Column::figures("bytes"),
    ]);
    for row in rows {
        let [woken, notifications, requests, bytes] = figures(row, &row.costs.of_joins);
        table.row([
            row.way.name.into(),
            Cell::Count(row.contenders as u64),
            woken,
            notifications,
            requests,
            bytes,
        ]);
    }
    table
}

fn figures(row: &Row, cost: &Cost) -> [Cell; 4] {
    let traffic = cost.traffic;
    [
        cost.notified,
        traffic.notifications,
        traffic.requests,
        traffic.bytes,
    ]
    .map(|sum| Cell::Figure(per_release(row, sum)))
}

fn per_release(row: &Row, sum: u64) -> f64 {
    sum as f64 / row.costs.releases.max(1) as f64
}

/// A percentile in milliseconds; nothing if there are fewer than `least` handoffs.
fn percentile(handoffs: &Histogram<u64>, quantile: f64, least: u64) -> Cell {
    let percentile = || milliseconds(handoffs.value_at_quantile(quantile));
    Cell::figure((handoffs.len() >= least).then(percentile))
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
