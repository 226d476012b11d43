//! The report of the bench of memory.

use clap::ValueEnum;
use zookeeper_recipes_benches::report::{Cell, Machine, Plot, Report, Series, Table};

use crate::kind::Kind;

/// The bytes of each kind, of one library.
pub(crate) struct Measured {
    library: &'static str,
    bytes: Vec<(Kind, f64)>,
}

impl Measured {
    pub(crate) fn new(library: &'static str, bytes: Vec<(Kind, f64)>) -> Measured {
        Measured { library, bytes }
    }

    fn of(&self, kind: Kind) -> Option<f64> {
        let found = self.bytes.iter().find(|(of, _)| *of == kind);
        found.map(|(_, bytes)| *bytes)
    }
}

/// Writes the report.
///
/// # Errors
///
/// If the picture cannot be drawn.
pub(crate) fn report(
    measured: &[Measured],
    number: usize,
    machine: Machine,
) -> anyhow::Result<Report> {
    let title = "The memory of a lock, of a hold and of a waiter";
    let mut report = Report::new("memory", title, machine);
    report.heading("Bytes of each");
    report.table("bytes", &table(measured));
    report.plot("bytes", &picture(measured))?;
    report.heading("How it is measured");
    report.paragraph(&format!(
        "- One session has {number} of each kind, after 100 that are not counted. The figure is the \
         growth of what the process has allocated, divided by {number}.\n\
         - An idle lock and a hold have a path of their own. All waiters wait for one lock.\n\
         - Ours is counted by the allocator of the process. A waiter is a task, and its task is \
         counted. Each hold has its loss watch.\n\
         - Curator is counted by Java's heap after a collection, kazoo by `tracemalloc`. A waiter \
         is a thread there. Neither counts the thread's stack. `bench peers` measures the growth \
         of the whole process for each waiter.\n\
         - The server's memory is not counted."
    ));
    Ok(report)
}

fn table(measured: &[Measured]) -> Table {
    let rows = Kind::value_variants().iter().map(|&kind| {
        let bytes = measured.iter().map(|one| one.of(kind).into());
        [Cell::from(kind.title())]
            .into_iter()
            .chain(bytes)
            .collect()
    });
    let names = measured.iter().map(|one| one.library.to_owned());
    let columns = ["what".to_owned()].into_iter().chain(names);
    Table::new(columns.collect(), rows.collect())
}

fn picture(measured: &[Measured]) -> Plot {
    let kinds = Kind::value_variants();
    let series = measured.iter().map(|one| {
        let places = (0..).zip(kinds);
        let points = places.filter_map(|(place, kind)| Some((one.of(*kind)?, f64::from(place))));
        Series {
            name: one.library.to_owned(),
            points: points.collect(),
        }
    });
    Plot {
        title: "Memory of each".to_owned(),
        right: "bytes".to_owned(),
        rows: kinds.iter().map(|kind| kind.title()).collect(),
        series: series.collect(),
        ..Plot::default()
    }
}
