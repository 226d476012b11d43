//! The findings, in words, figures and pictures.

use hdrhistogram::Histogram;
use zookeeper_recipes_benches::measure::{Cost, Costs, Row, Times};
use zookeeper_recipes_benches::report::{Machine, Plot, Report, Series, Table};
use zookeeper_recipes_benches::way::Way;

/// All rows, in the order in which they were measured.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) rows: Vec<Row>,
    pub(crate) ways: Vec<Way>,
    /// How many sessions the contenders share at most.
    pub(crate) sessions: usize,
}

/// One of the two steps of a turn: joining the queue, handing over.
struct Step {
    name: &'static str,
    heading: &'static str,
    about: &'static str,
    cost: fn(&Costs) -> Cost,
    times: fn(&Times) -> &Histogram<u64>,
}

const STEPS: [Step; 2] = [
    Step {
        name: "join",
        heading: "Acquiring",
        about: "From the call of acquire until the contender waits behind all others, its \
                watches set.",
        cost: |costs| costs.of_joins,
        times: |times| &times.joins,
    },
    Step {
        name: "handoff",
        heading: "Handing over",
        about: "From the call of release until the next one holds.",
        cost: |costs| costs.of_releases,
        times: |times| &times.handoffs,
    },
];

impl Findings {
    /// Writes the report.
    ///
    /// # Errors
    ///
    /// If a picture cannot be drawn.
    pub(crate) fn report(&self, machine: Machine) -> anyhow::Result<Report> {
        let mut report = Report::new("queue", "What a long queue costs", machine);
        report.paragraph(&format!(
            "Contenders queue for one exclusive lock, in at most {} sessions that they \
             share. The holder releases, the next one holds, and the earlier holder comes back behind \
             all others. Only the list of the queue may grow with the queue. So the tables show \
             the cost of each step, the same cost without the bytes of lists, and the time beyond \
             that of a list alone, of the same queue. Requests and bytes are counted on the wire \
             by a proxy, in a run of its own; pings, probes and TCP's headers are not counted. \
             Times are medians.",
            self.sessions
        ));
        for step in STEPS {
            report.heading(step.heading);
            report.paragraph(step.about);
            report.plot(&format!("{}-bytes", step.name), &self.bytes(&step))?;
            report.plot(&format!("{}-time", step.name), &self.times(&step))?;
            report.table(step.name, &self.table(&step));
            for way in &self.ways {
                if let Some(growth) = self.growth(&step, way) {
                    report.paragraph(&growth);
                }
            }
        }
        Ok(report)
    }

    fn of(&self, way: &Way) -> impl Iterator<Item = &Row> {
        let name = way.name;
        self.rows.iter().filter(move |row| row.way.name == name)
    }

    fn curve(&self, way: &Way, name: String, figure: impl Fn(&Row) -> f64) -> Series {
        let points = self.of(way);
        Series {
            name,
            points: points
                .map(|row| (row.contenders as f64, figure(row)))
                .collect(),
        }
    }

    fn bytes(&self, step: &Step) -> Plot {
        let curves = self.ways.iter().flat_map(|way| {
            let rest = format!("{} – without lists", way.name);
            [
                self.curve(way, way.name.to_owned(), |row| Figures::of(row, step).bytes),
                self.curve(way, rest, |row| Figures::of(row, step).bytes_without_lists),
            ]
        });
        plot(step, "bytes on the wire", "bytes", curves.collect())
    }

    fn times(&self, step: &Step) -> Plot {
        let curves = self.ways.iter();
        let curves = curves
            .map(|way| self.curve(way, way.name.to_owned(), |row| Figures::of(row, step).time));
        let lists = self.ways.first().map(|way| {
            let list = "a list alone".to_owned();
            self.curve(way, list, |row| Figures::of(row, step).list)
        });
        plot(step, "time", "median [ms]", curves.chain(lists).collect())
    }

    fn table(&self, step: &Step) -> Table {
        let rows = self.rows.iter().map(|row| (row, Figures::of(row, step)));
        Table::of(
            rows,
            &[
                ("way to wait", &|(row, _)| row.way.name.into()),
                ("contenders", &|(row, _)| row.contenders.into()),
                ("requests", &|(_, of)| of.requests.into()),
                ("bytes", &|(_, of)| of.bytes.into()),
                ("without lists", &|(_, of)| of.bytes_without_lists.into()),
                ("time [ms]", &|(_, of)| of.time.into()),
                ("a list alone [ms]", &|(_, of)| of.list.into()),
                ("over a list [ms]", &|(_, of)| (of.time - of.list).into()),
                ("times", &|(row, _)| (step.times)(&row.times).len().into()),
            ],
        )
    }

    /// How the longest queue compares to the shortest.
    fn growth(&self, step: &Step, way: &Way) -> Option<String> {
        let shortest = self.of(way).min_by_key(|row| row.contenders)?;
        let longest = self.of(way).max_by_key(|row| row.contenders)?;
        let (from, to) = (Figures::of(shortest, step), Figures::of(longest, step));
        Some(format!(
            "{}: from {} to {} contenders, requests × {:.2}, bytes × {:.2}, without lists × \
             {:.2}, time × {:.2}, a list alone × {:.2}.",
            way.name,
            shortest.contenders,
            longest.contenders,
            to.requests / from.requests,
            to.bytes / from.bytes,
            to.bytes_without_lists / from.bytes_without_lists,
            to.time / from.time,
            to.list / from.list,
        ))
    }
}

fn plot(step: &Step, what: &str, up: &str, series: Vec<Series>) -> Plot {
    Plot {
        title: format!("{}: {what}", step.heading),
        right: "contenders in the queue".to_owned(),
        up: up.to_owned(),
        series,
        ..Plot::default()
    }
}

/// The cost of one step, for each time that it was done.
struct Figures {
    requests: f64,
    bytes: f64,
    bytes_without_lists: f64,
    /// In milliseconds.
    time: f64,
    list: f64,
}

impl Figures {
    fn of(row: &Row, step: &Step) -> Figures {
        let traffic = (step.cost)(&row.costs).traffic;
        let each = |sum: u64| sum as f64 / row.costs.releases.max(1) as f64;
        Figures {
            requests: each(traffic.requests),
            bytes: each(traffic.bytes),
            bytes_without_lists: each(traffic.bytes - traffic.list_bytes),
            time: median((step.times)(&row.times)),
            list: median(&row.times.lists),
        }
    }
}

fn median(times: &Histogram<u64>) -> f64 {
    times.value_at_quantile(0.5) as f64 / 1e6
}
