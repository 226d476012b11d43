//! The report of the bench of many sessions.

use zookeeper_recipes_benches::report::{Cell, Machine, Plot, Report, Series, Table};

use crate::death::{Death, Sample};
use crate::handoffs::Handoffs;
use crate::plan::{AFTER, CONTENDERS, Plan};

pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) handoffs: Handoffs,
    pub(crate) death: Death,
}

/// A count of a sample, with its name in the report.
type Column = (&'static str, fn(&Sample) -> u64);

const COLUMNS: [Column; 6] = [
    ("connections", |sample| sample.connections),
    ("probes", |sample| sample.probes),
    ("lists", |sample| sample.lists),
    ("requests that set watches again", |sample| {
        sample.watches_set_again
    }),
    ("reads", |sample| sample.reads),
    ("writes", |sample| sample.writes),
];

pub(crate) fn report(
    plan: Plan,
    measured: &[Measured],
    machine: Machine,
) -> anyhow::Result<Report> {
    let mut report = Report::new("sessions", "Many sessions in one ensemble", machine);
    let Plan {
        sessions, locks, ..
    } = plan;
    report.paragraph(&format!(
        "{sessions} sessions of one process, in an ensemble of three servers. Each session holds \
         {locks} locks all the time. Each also contends for one of {} locks, which about \
         {CONTENDERS} contenders hand on without a pause. Each library has an ensemble of its own.",
        plan.queues()
    ));
    let versions = measured.iter().map(|one| {
        let version = &one.handoffs.version;
        format!("- {}: {version}\n", one.name)
    });
    report.paragraph(&versions.collect::<String>());
    report.heading("Handoffs");
    report.table("handoffs", &of_handoffs(measured));
    report.paragraph(
        "A handoff is from the call of the release until the next contender holds. Clients and \
         servers share the processors. The heap is what the live objects of all servers take after \
         a full collection, the memory is what their processes have. The memory of ours includes \
         what the bench keeps of each handoff, and so does Curator's.",
    );
    report.heading("The death of a member");
    report.paragraph(
        "A follower is killed, with SIGKILL, while all contenders take turns. Each session then \
         acquires and releases a lock at a path that nobody has used before.",
    );
    report.table("works", &until_it_works(measured));
    report.paragraph(&format!(
        "The times begin at the death. A lock that is handed on works while its handoffs have no \
         gap. A gap lasts until the end of the {AFTER} seconds if no handoff comes. The locks held \
         are those of {locks} in each session: ours by the lease, Curator's as far as it has \
         reported no session as lost. A call that has failed was made again at once.",
        AFTER = AFTER.as_secs()
    ));
    for one in measured {
        let (name, death) = (one.name, &one.death);
        report.paragraph(&format!("### Requests by the second: {name}"));
        report.table(&format!("seconds-{}", file(name)), &seconds(death));
        report.plot(&format!("seconds-{}", file(name)), &picture(name, death))?;
    }
    report.paragraph(
        "The counts of all sessions in each second after the death. A proxy before each server \
         counts them. The lists, the reads and the writes are those of the handoffs, too.",
    );
    Ok(report)
}

fn file(name: &str) -> String {
    name.to_lowercase()
}

fn of_handoffs(measured: &[Measured]) -> Table {
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let at = |one: &Measured, share| percentile(&one.handoffs.times, share).into();
    Table::of(
        measured,
        &[
            ("library", &|one| one.name.into()),
            ("handoffs [1/s]", &|one| one.handoffs.a_second.into()),
            ("p50 [ms]", &|one| at(one, 0.5)),
            ("p99 [ms]", &|one| at(one, 0.99)),
            ("p99.9 [ms]", &|one| at(one, 0.999)),
            ("handoffs counted", &|one| one.handoffs.times.len().into()),
            ("processors of the servers", &|one| {
                one.handoffs.server_processors.into()
            }),
            ("processors of the clients", &|one| {
                one.handoffs.client_processors.into()
            }),
            ("heap of the servers [MiB]", &|one| {
                one.handoffs.server_heap.map(mebibytes).into()
            }),
            ("memory of the servers [MiB]", &|one| {
                mebibytes(one.handoffs.server_bytes).into()
            }),
            ("memory of the clients [MiB]", &|one| {
                mebibytes(one.handoffs.client_bytes).into()
            }),
        ],
    )
}

fn until_it_works(measured: &[Measured]) -> Table {
    let rows = measured.iter().flat_map(|one| {
        let recovery = &one.death.recovery;
        [
            (
                one,
                "until a session's new lock works",
                &recovery.works_after,
            ),
            (
                one,
                "longest gap of a lock that is handed on",
                &recovery.gaps,
            ),
        ]
    });
    Table::of(
        rows,
        &[
            ("library", &|(one, ..)| one.name.into()),
            ("what", &|(_, what, _)| (*what).into()),
            ("p50 [s]", &|(.., times)| percentile(times, 0.5).into()),
            ("p99 [s]", &|(.., times)| percentile(times, 0.99).into()),
            ("all [s]", &|(.., times)| times.last().copied().into()),
            ("sessions of the member", &|(one, ..)| {
                one.death.bereft.into()
            }),
            ("locks held before", &|(one, ..)| one.death.held[0].into()),
            ("locks held after", &|(one, ..)| one.death.held[1].into()),
            ("calls that failed", &|(one, ..)| {
                one.death.recovery.failures.into()
            }),
        ],
    )
}

/// The value that this share of the values in order does not exceed.
fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let place = (values.len() as f64 * share).ceil() as usize;
    values.get(place.checked_sub(1)?).copied()
}

fn by_second(death: &Death, count: fn(&Sample) -> u64) -> Vec<u64> {
    let until = |second: f64| {
        let mut before = death.samples.iter().filter(|sample| sample.at <= second);
        before.next_back().map_or(0, count)
    };
    let first = death.samples.first().map_or(0, count);
    let ends: Vec<u64> = (1..=10).map(|second| until(f64::from(second))).collect();
    let begins = [first].into_iter().chain(ends.iter().copied());
    ends.iter()
        .zip(begins)
        .map(|(end, begin)| end.saturating_sub(begin))
        .collect()
}

fn seconds(death: &Death) -> Table {
    let counts = COLUMNS.map(|(_, count)| by_second(death, count));
    let rows = (0..10).map(|second| {
        let cells = counts.iter().map(|counts| counts[second].into());
        [Cell::from(second + 1)].into_iter().chain(cells).collect()
    });
    let names = COLUMNS.iter().map(|(name, _)| (*name).to_owned());
    let names = ["second".to_owned()].into_iter().chain(names);
    Table::new(names.collect(), rows.collect())
}

fn picture(name: &str, death: &Death) -> Plot {
    let series = COLUMNS.iter().map(|(name, count)| {
        let counts = (1..).zip(by_second(death, *count));
        Series {
            name: (*name).to_owned(),
            points: counts
                .map(|(at, count)| (f64::from(at), count as f64))
                .collect(),
        }
    });
    Plot {
        title: format!("After the death of a member: {name}"),
        right: "second".to_owned(),
        up: "in each second".to_owned(),
        series: series.collect(),
    }
}
