//! The findings, in words, figures and a picture.

use hdrhistogram::Histogram;
use zookeeper_recipes_benches::Spread;
use zookeeper_recipes_benches::report::{Bars, Cell, Column, Group, Machine, Report, Table};

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
        report.bars("ratios", &self.bars())?;
        report.heading("One operation at a time");
        report.table("operations", &self.operations());
        report.heading("Many clients at once");
        report.table("throughput", &self.throughput());
        report.paragraph(&self.losses());
        Ok(report)
    }

    fn bars(&self) -> Bars {
        let group = |name, ratio| Group {
            name,
            ratios: vec![ratio],
        };
        let operations = self.rows.iter();
        let operations = operations.map(|row| group(row.operation.to_string(), Some(row.ratio())));
        let rates = self.rates.iter();
        let rates = rates.map(|rates| group(rates.name(), rates.ratio()));
        Bars {
            title: "How many times better the embedded server is (left of 1: worse)".to_owned(),
            axis: "the embedded server to Apache's".to_owned(),
            series: vec!["embedded".to_owned()],
            groups: operations.chain(rates).collect(),
        }
    }

    fn operations(&self) -> Table {
        let mut table = Table::new([
            Column::text("operation"),
            Column::figures("Apache p50 [µs]"),
            Column::figures("p99 [µs]"),
            Column::figures("embedded p50 [µs]"),
            Column::figures("embedded p99 [µs]"),
            Column::figures("ratio"),
            Column::figures("times"),
        ]);
        for row in &self.rows {
            table.row([
                Cell::Text(row.operation.to_string()),
                Cell::Figure(row.time(0, 0.5)),
                Cell::Figure(row.time(0, 0.99)),
                Cell::Figure(row.time(1, 0.5)),
                Cell::Figure(row.time(1, 0.99)),
                Cell::Figure(row.ratio()),
                Cell::Count(row.times[1].len()),
            ]);
        }
        table
    }

    fn throughput(&self) -> Table {
        let mut table = Table::new([
            Column::text("load"),
            Column::figures("Apache [requests/s]"),
            Column::figures("embedded [requests/s]"),
            Column::figures("ratio"),
        ]);
        for rates in &self.rates {
            table.row([
                Cell::Text(rates.name()),
                Cell::figure(rates.median(0)),
                Cell::figure(rates.median(1)),
                Cell::figure(rates.ratio()),
            ]);
        }
        table
    }

    /// What the embedded server is slower at.
    fn losses(&self) -> String {
        let operations = self.rows.iter().filter(|row| row.ratio() < 1.0);
        let operations = operations.map(|row| row.operation.to_string());
        let rates = self.rates.iter();
        let rates = rates.filter(|rates| rates.ratio().is_some_and(|ratio| ratio < 1.0));
        let slower: Vec<String> = operations.chain(rates.map(Rates::name)).collect();
        match &slower[..] {
            [] => "At nothing of this is the embedded server slower.".to_owned(),
            _ => format!("The embedded server is slower at: {}.", slower.join(", ")),
        }
    }
}
