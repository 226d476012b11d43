//! The findings, in words, figures and a picture.

use hdrhistogram::Histogram;
use zookeeper_recipes_benches::Spread;
use zookeeper_recipes_benches::report::{Machine, Plot, Report, Series, Table};

use crate::operation::Operation;
use crate::throughput::Load;

/// The times of one operation in nanoseconds: at Apache's server, at the embedded server.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) operation: Operation,
    pub(crate) times: [Histogram<u64>; 2],
}

/// The requests per second under one load: at Apache's server, at the embedded server.
#[derive(Debug)]
pub(crate) struct Rates {
    pub(crate) load: Load,
    pub(crate) clients: usize,
    pub(crate) rates: [Vec<f64>; 2],
}

#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) rows: Vec<Row>,
    pub(crate) rates: Vec<Rates>,
}

impl Row {
    /// A quantile in microseconds at one of the servers.
    fn time(&self, server: usize, quantile: f64) -> f64 {
        self.times[server].value_at_quantile(quantile) as f64 / 1e3
    }

    /// How many times longer Apache's server takes.
    fn ratio(&self) -> f64 {
        self.time(0, 0.5) / self.time(1, 0.5)
    }
}

impl Rates {
    fn median(&self, server: usize) -> Option<f64> {
        Some(Spread::of(self.rates[server].iter().copied())?.median)
    }

    /// How many times more the embedded server answers.
    fn ratio(&self) -> Option<f64> {
        Some(self.median(1)? / self.median(0)?)
    }

    fn name(&self) -> String {
        format!("{} of {} clients", self.load.name(), self.clients)
    }
}

impl Findings {
    pub(crate) fn report(&self, machine: Machine) -> anyhow::Result<Report> {
        let title = "The embedded server, compared to Apache's";
        let mut report = Report::new("embedded", title, machine);
        report.paragraph(
            "The same client does the same operations, one at a time, at Apache's server and at the \
             embedded server, which takes turns in one run. The ratio says how many times quicker \
             the embedded server is (medians). The embedded server keeps nothing on disk, and \
             Apache's has its data on tmpfs if the machine has it.",
        );
        report.plot("ratios", &self.plot())?;
        report.heading("One operation at a time");
        report.table("operations", &self.operations());
        report.heading("Many clients at once");
        report.table("throughput", &self.throughput());
        report.paragraph(&self.losses());
        Ok(report)
    }

    /// The name and the ratio of each operation and of each load.
    fn ratios(&self) -> impl Iterator<Item = (String, f64)> {
        let operations = self.rows.iter();
        let operations = operations.map(|row| (row.operation.to_string(), row.ratio()));
        let rates = self.rates.iter();
        operations.chain(rates.filter_map(|rates| Some((rates.name(), rates.ratio()?))))
    }

    fn plot(&self) -> Plot {
        let (rows, ratios): (Vec<String>, Vec<f64>) = self.ratios().unzip();
        let points = ratios.into_iter().zip(0..);
        let points = points.map(|(ratio, row)| (ratio, f64::from(row)));
        Plot {
            title: "How many times better the embedded server is (left of 1: worse)".to_owned(),
            right: "the embedded server to Apache's".to_owned(),
            rows,
            series: vec![Series {
                name: "embedded".to_owned(),
                points: points.collect(),
            }],
            ..Plot::default()
        }
    }

    fn operations(&self) -> Table {
        Table::of(
            &self.rows,
            &[
                ("operation", &|row| row.operation.to_string().into()),
                ("Apache p50 [µs]", &|row| row.time(0, 0.5).into()),
                ("p99 [µs]", &|row| row.time(0, 0.99).into()),
                ("embedded p50 [µs]", &|row| row.time(1, 0.5).into()),
                ("embedded p99 [µs]", &|row| row.time(1, 0.99).into()),
                ("ratio", &|row| row.ratio().into()),
                ("times", &|row| row.times[1].len().into()),
            ],
        )
    }

    fn throughput(&self) -> Table {
        Table::of(
            &self.rates,
            &[
                ("load", &|rates| rates.name().into()),
                ("Apache [requests/s]", &|rates| rates.median(0).into()),
                ("embedded [requests/s]", &|rates| rates.median(1).into()),
                ("ratio", &|rates| rates.ratio().into()),
            ],
        )
    }

    /// What the embedded server is slower at.
    fn losses(&self) -> String {
        let slower = self.ratios().filter(|(_, ratio)| *ratio < 1.0);
        let slower: Vec<String> = slower.map(|(name, _)| name).collect();
        match &slower[..] {
            [] => "At nothing of this is the embedded server slower.".to_owned(),
            _ => format!("The embedded server is slower at: {}.", slower.join(", ")),
        }
    }
}
