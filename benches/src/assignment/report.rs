//! The report of the bench of the assignment.

use std::time::Duration;

use zookeeper_recipes_benches::report::{Cell, Machine, Plot, Report, Series, Table};

use crate::memory::Memory;
use crate::phases::{Phase, Phases};
use crate::planner::{self, Planned};
use crate::restart::{Restart, Sample};
use crate::size::Times;
use crate::weighted::Weighted;

/// All that was measured.
pub(crate) struct Found {
    pub(crate) plans: Vec<Planned>,
    /// Ours. The first size is that of kazoo.
    pub(crate) measured: Vec<Phases>,
    pub(crate) memory: Memory,
    pub(crate) kazoo: Vec<Phase>,
    pub(crate) restarts: Vec<Restart>,
    pub(crate) weighted: Weighted,
    pub(crate) times: Times,
}

/// Writes the report.
///
/// # Errors
///
/// If a picture cannot be drawn.
pub(crate) fn report(found: &Found, machine: Machine) -> anyhow::Result<Report> {
    let title = "Partitions assigned to workers";
    let mut report = Report::new("assignment", title, machine);
    report.heading("A start, a death, an arrival");
    let ours: Vec<&Phase> = found
        .measured
        .iter()
        .skip(1)
        .flat_map(|it| &it.phases)
        .collect();
    if !ours.is_empty() {
        report.table("phases", &phases(ours));
    }
    report.paragraph(&how_phases_are_measured(found.times));
    report.heading("Transactions, beside the least number");
    let all: Vec<&Phase> = found.measured.iter().flat_map(|it| &it.phases).collect();
    report.table("transactions", &transactions(&all));
    report.paragraph(
        "The least number is argued, not measured. It counts a create for each lock that a worker \
         takes, at the start one for the directories of 128 locks, a transaction for each lock that \
         a worker releases, one list by each worker of what it owns, and the plans in one \
         transaction for as many moves as may be under way. Retries and the other directories count \
         only as measured.",
    );
    report.heading("How long the leader computes");
    report.table("plans", &planner::table(&found.plans));
    report.paragraph(
        "The shortest of five computations of a plan on one thread, without what the leader reads and \
         writes. With 2,000 partitions or more, the leader computes on a thread of its own.",
    );
    report.heading("The memory of a worker");
    report.table("memory", &memory(found));
    report.paragraph(
        "The growth of what this process has allocated from before the start to its end, divided by \
         the number of workers: the session, the task of each partition, its hold and its watch. \
         Each worker also keeps the list of all partitions. The leader has more than the others.",
    );
    report.table("memory-parts", &parts(found.memory));
    report.paragraph(
        "The parts: two workers begin one after the other while both are drained, and the second one \
         then gets all partitions. The first one leads. Each figure is the growth of one step, \
         beside the same step with 10 partitions. Holds have their loss watches. The last step has \
         also what the leader keeps of the record of what the second one owns.",
    );
    report.heading("Beside kazoo's SetPartitioner");
    let beside = found.measured.iter().take(1).flat_map(|it| &it.phases);
    let beside: Vec<&Phase> = beside.chain(&found.kazoo).collect();
    report.table("kazoo", &phases(beside));
    report.paragraph(
        "kazoo releases all partitions at each change of the group, and allocates them anew once the \
         group has not changed for `time_boundary`: 1 s here, 30 s by default.",
    );
    report_restarts(&mut report, &found.restarts)?;
    report_weighted(&mut report, &found.weighted)?;
    Ok(report)
}

fn report_restarts(report: &mut Report, found: &[Restart]) -> anyhow::Result<()> {
    report.heading("A rolling restart");
    report.table("restarts", &restarts(found));
    for restart in found {
        let name = match restart.grace.is_zero() {
            true => "restart",
            false => "restart-grace",
        };
        report.plot(name, &picture(restart))?;
    }
    report.paragraph(
        "Each worker leaves, closes its session and starts again, one after the other. The next one \
         follows once all partitions are owned and balanced. A worker that leaves without a grace \
         waits for the next owner of each partition.",
    );
    Ok(())
}

fn report_weighted(report: &mut Report, found: &Weighted) -> anyhow::Result<()> {
    report.heading("Weights, one move at a time");
    report.table("weighted", &weighted(found));
    report.plot("weighted", &loads(found))?;
    report.paragraph(
        "Twelve partitions of weights from 1 to 7. Four workers come, one after the other, and the \
         first one leaves. At most one partition with an owner moves at once. After each event the \
         moves come to an end: the last grant is long before the next event.",
    );
    Ok(())
}

fn weighted(found: &Weighted) -> Table {
    Table::of(
        &found.events,
        &[
            ("event", &|it| it.what.as_str().into()),
            ("at [s]", &|it| it.at.into()),
            ("grants", &|it| u64::from(it.since.grants).into()),
            ("most of a partition", &|it| {
                u64::from(it.since.most_grants).into()
            }),
            ("the last one after [s]", &|it| it.rested.into()),
            ("observed for [s]", &|it| it.observed.into()),
        ],
    )
}

fn loads(found: &Weighted) -> Plot {
    bands(
        "Owned weight, one move at a time",
        "owned weight",
        found.workers,
        &found.samples,
    )
}

fn how_phases_are_measured(times: Times) -> String {
    let Times {
        session_timeout,
        rest,
    } = times;
    format!(
        "- Start: all sessions are open, and all workers begin at the same moment, at a new path.\n\
         - Death: a worker that does not lead stops, as a killed process does. The server expires \
         its session after {session_timeout:?} to {:?}, which is part of the time.\n\
         - Arrival: one more worker begins, with an open session.\n\
         - Owned: until each partition has an owner. At an arrival each has one all the time, but \
         for its move. Balanced: until the workers own the same \
         number, or one more.\n\
         - Without an owner: the mean over all partitions until they are balanced.\n\
         - Requests, writes and bytes are those of all workers, until {rest:?} after the \
         balance. A hold gets its loss watch within two tenths of the session timeout. Pings and probes are not counted. \
         Watches are those at the server at the end.\n\
         - The work of a partition begins and ends at once. At most 32 partitions move at once, or \
         a hundredth of all if that is more, and a plan follows another one after 100 ms, as by \
         default.",
        session_timeout + Duration::from_secs(2)
    )
}

pub(crate) fn phases<'a>(phases: impl IntoIterator<Item = &'a Phase>) -> Table {
    Table::of(
        phases,
        &[
            ("partitions", &|it| it.size.partitions.into()),
            ("workers", &|it| it.size.workers.into()),
            ("what", &|it| it.what.into()),
            ("library", &|it| it.library.into()),
            ("owned [s]", &|it| it.owned.into()),
            ("balanced [s]", &|it| it.balanced.into()),
            ("grants", &|it| u64::from(it.grants).into()),
            ("without an owner [s]", &|it| it.without_owner.into()),
            ("requests", &|it| it.requests.into()),
            ("bytes", &|it| it.bytes.into()),
            ("watches", &|it| it.watches.into()),
        ],
    )
}

fn transactions(phases: &[&Phase]) -> Table {
    Table::of(
        phases,
        &[
            ("partitions", &|it| it.size.partitions.into()),
            ("workers", &|it| it.size.workers.into()),
            ("what", &|it| it.what.into()),
            ("writes", &|it| it.writes.into()),
            ("least", &|it| it.least.map_or(Cell::Nothing, Cell::from)),
            ("ratio", &|it| {
                let least = it.least.filter(|least| *least > 0);
                least.map(|least| it.writes as f64 / least as f64).into()
            }),
        ],
    )
}

fn memory(found: &Found) -> Table {
    let rows = found.measured.iter().filter_map(|measured| {
        let size = measured.phases.first()?.size;
        let of_a_partition = measured.bytes_of_a_worker * size.workers as f64;
        let of_a_partition = of_a_partition / size.partitions as f64;
        Some((size, measured.bytes_of_a_worker / 1024.0, of_a_partition))
    });
    Table::of(
        rows,
        &[
            ("partitions", &|(size, ..)| size.partitions.into()),
            ("workers", &|(size, ..)| size.workers.into()),
            ("a worker [KiB]", &|(_, kibibytes, _)| (*kibibytes).into()),
            ("for each of its partitions [bytes]", &|(.., bytes)| {
                (*bytes).into()
            }),
        ],
    )
}

/// The parts of what a worker takes.
fn parts(memory: Memory) -> Table {
    let rows = [
        ("a worker that owns nothing", memory.worker),
        ("each partition that it owns", memory.owned),
        (
            "each partition that exists, at a worker that does not lead",
            memory.listed,
        ),
        ("each partition that exists, at the leader", memory.led),
    ];
    let of = format!("{} partitions", memory.partitions);
    Table::of(
        rows,
        &[
            ("of", &|_| of.as_str().into()),
            ("what", &|(what, _)| (*what).into()),
            ("bytes", &|(_, bytes)| (*bytes).into()),
        ],
    )
}

fn restarts(restarts: &[Restart]) -> Table {
    Table::of(
        restarts,
        &[
            ("partitions", &|it| it.size.partitions.into()),
            ("workers", &|it| it.size.workers.into()),
            ("grace [s]", &|it| it.grace.as_secs().into()),
            ("took [s]", &|it| it.took.into()),
            ("grants of a partition, mean", &|it| {
                (f64::from(it.since.grants) / it.size.partitions as f64).into()
            }),
            ("most", &|it| u64::from(it.since.most_grants).into()),
            ("without an owner, mean [s]", &|it| {
                (it.since.without_owner / it.size.partitions as f64).into()
            }),
        ],
    )
}

fn picture(restart: &Restart) -> Plot {
    let title = match restart.grace.is_zero() {
        true => "Owned partitions in a rolling restart",
        false => "The same with a grace",
    };
    let workers = restart.size.workers;
    bands(title, "owned partitions", workers, &restart.samples)
}

fn bands(title: &str, up: &str, workers: usize, samples: &[Sample]) -> Plot {
    let heights = |worker: usize| {
        let points = samples.iter();
        points.map(move |it| (it.at, it.by_worker[worker] as f64))
    };
    let series = (0..workers).map(|worker| Series {
        name: format!("worker {worker}"),
        points: heights(worker).collect(),
    });
    Plot {
        title: title.to_owned(),
        right: "seconds".to_owned(),
        up: up.to_owned(),
        stacked: true,
        series: series.collect(),
    }
}
