//! The report of the bench of the assignment.

use std::time::Duration;

use zookeeper_recipes_benches::report::{Machine, Report, Table};

use crate::memory::Memory;
use crate::phases::Phase;
use crate::planner::{self, Planned};
use crate::restart::Restart;
use crate::size::Times;

/// All that was measured.
pub(crate) struct Found {
    pub(crate) plans: Vec<Planned>,
    /// Ours, by size. The first size is that of kazoo.
    pub(crate) measured: Vec<Vec<Phase>>,
    pub(crate) memory: Memory,
    pub(crate) kazoo: Vec<Phase>,
    pub(crate) restarts: Vec<Restart>,
    pub(crate) times: Times,
}

/// Writes the report.
pub(crate) fn report(found: &Found, machine: Machine) -> Report {
    let title = "Partitions assigned to workers";
    let mut report = Report::new("assignment", title, machine);
    report.heading("A start, a death, an arrival");
    let ours: Vec<&Phase> = found.measured.iter().skip(1).flatten().collect();
    if !ours.is_empty() {
        report.table("phases", &phases(ours));
    }
    report.paragraph(&how_phases_are_measured(found.times));
    report.heading("How long the leader computes");
    report.table("plans", &planner::table(&found.plans));
    report.paragraph(
        "The shortest of five computations of a plan on one thread, without what the leader reads and \
         writes. With 2,000 partitions or more, the leader computes on a thread of its own.",
    );
    report.heading("The memory of a worker");
    report.table("memory-parts", &parts(found.memory));
    report.paragraph(
        "The parts: two workers begin one after the other while both are drained, and the second one \
         then gets all partitions. The first one leads. Each figure is the growth of one step, \
         beside the same step with 10 partitions. Holds have their loss watches. The last step has \
         also what the leader keeps of the record of what the second one owns.",
    );
    report.heading("Beside kazoo's SetPartitioner");
    let beside = found.measured.iter().take(1).flatten();
    let beside: Vec<&Phase> = beside.chain(&found.kazoo).collect();
    report.table("kazoo", &phases(beside));
    report.paragraph(
        "kazoo releases all partitions at each change of the group, and allocates them anew once the \
         group has not changed for `time_boundary`: 1 s here, 30 s by default.",
    );
    report_restarts(&mut report, &found.restarts);
    report
}

fn report_restarts(report: &mut Report, found: &[Restart]) {
    report.heading("A rolling restart");
    report.table("restarts", &restarts(found));
    report.paragraph(
        "Each worker leaves, closes its session and starts again, one after the other. The next one \
         follows once all partitions are owned and balanced. A worker that leaves without a grace \
         waits for the next owner of each partition.",
    );
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
            ("writes", &|it| it.writes.into()),
            ("bytes", &|it| it.bytes.into()),
            ("watches", &|it| it.watches.into()),
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
