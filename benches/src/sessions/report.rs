//! The report of the bench of many sessions.

use zookeeper_recipes_benches::report::{Cell, Machine, Plot, Report, Series, Table, shown};

use crate::death::{Death, SAMPLE, Sample};
use crate::plan::Plan;
use crate::turns::{CONTENDERS, Handoffs};

/// A count of a sample, with its name in the report.
type Column = (&'static str, fn(&Sample) -> u64);

const COLUMNS: [Column; 5] = [
    ("connections", |sample| sample.connections),
    ("probes", |sample| sample.probes),
    ("lists", |sample| sample.lists),
    ("requests that set watches again", |sample| {
        sample.watches_set_again
    }),
    ("reads", |sample| sample.reads),
];

/// Writes the report.
///
/// # Errors
///
/// If the picture cannot be drawn.
pub(crate) fn report(
    plan: Plan,
    handoffs: &Handoffs,
    death: &Death,
    machine: Machine,
) -> anyhow::Result<Report> {
    let mut report = Report::new("sessions", "Many sessions in one ensemble", machine);
    let Plan {
        sessions, locks, ..
    } = plan;
    report.paragraph(&format!(
        "{sessions} sessions of one process, in an ensemble of three servers with their data in \
         memory. Each session holds {locks} locks all the time. Each also contends for one of {} \
         locks, which about {CONTENDERS} contenders hand on without a pause.",
        handoffs.queues
    ));
    report.heading("Handoffs");
    report.table("handoffs", &of_handoffs(handoffs));
    report.paragraph(
        "A handoff is from the call of the release until the next contender holds. Clients and \
         servers share the processors.",
    );
    report.heading("The death of a member");
    report.paragraph(&format!(
        "A follower with {} of the sessions is killed, with SIGKILL, while all contenders take \
         turns. The sessions hold {} locks before, and {} ten seconds later.",
        death.bereft, death.held[0], death.held[1]
    ));
    report.table("works", &until_it_works(death));
    report.paragraph(
        "A session works once it has acquired and released a lock at a path that nobody has used \
         before. It begins at the death. A lock that is handed on works while its handoffs have no \
         gap.",
    );
    report.table("seconds", &seconds(death));
    report.plot("seconds", &picture(death))?;
    report.paragraph(
        "The counts of all sessions in each second after the death. A proxy before each server \
         counts them. The lists and the reads are those of the handoffs, too.",
    );
    report.heading("In time with itself");
    report.table("peaks", &peaks(death));
    report.paragraph(&format!(
        "The share of what the fleet sends in the ten seconds that falls into one interval of {} \
         ms: the largest of all intervals, and the mean. A session that has lost its member \
         reconnects after a pause that is drawn at random, at first from 50 ms. The server takes \
         the handshakes one after the other.",
        SAMPLE.as_millis()
    ));
    Ok(report)
}

fn of_handoffs(handoffs: &Handoffs) -> Table {
    let at = |share| percentile(&handoffs.times, share).into();
    let megabytes = handoffs.server_bytes as f64 / f64::from(1 << 20);
    let cells: [(&str, Cell); 7] = [
        ("handoffs [1/s]", handoffs.a_second.into()),
        ("p50 [ms]", at(0.5)),
        ("p99 [ms]", at(0.99)),
        ("p99.9 [ms]", at(0.999)),
        (
            "processors of the servers",
            handoffs.server_processors.into(),
        ),
        ("memory of the servers [MiB]", megabytes.into()),
        ("handoffs counted", handoffs.times.len().into()),
    ];
    let (names, cells) = cells
        .into_iter()
        .map(|(name, cell)| (name.to_owned(), cell))
        .unzip();
    Table::new(names, vec![cells])
}

fn until_it_works(death: &Death) -> Table {
    let rows = [
        ("until a session works", &death.works_after),
        ("longest gap of a lock that is handed on", &death.gaps),
    ];
    Table::of(
        rows,
        &[
            ("what", &|(what, _)| (*what).into()),
            ("p50 [s]", &|(_, times)| percentile(times, 0.5).into()),
            ("p99 [s]", &|(_, times)| percentile(times, 0.99).into()),
            ("all [s]", &|(_, times)| times.last().copied().into()),
        ],
    )
}

/// The value that this share of the values in order does not exceed.
fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let place = (values.len() as f64 * share).ceil() as usize;
    values.get(place.checked_sub(1)?).copied()
}

/// The counts in each whole second.
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

fn picture(death: &Death) -> Plot {
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
        title: "After the death of a member".to_owned(),
        right: "second".to_owned(),
        up: "in each second".to_owned(),
        series: series.collect(),
        ..Plot::default()
    }
}

fn peaks(death: &Death) -> Table {
    let rows = COLUMNS.iter().map(|&(name, count)| {
        let counts: Vec<u64> = death.samples.iter().map(count).collect();
        let steps: Vec<u64> = counts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let sum: u64 = steps.iter().sum();
        let share =
            |part: f64| Cell::from(format!("{} %", shown(100.0 * part / sum.max(1) as f64)));
        let largest = steps.iter().max().copied().unwrap_or(0);
        let mean = sum as f64 / steps.len().max(1) as f64;
        vec![name.into(), sum.into(), share(largest as f64), share(mean)]
    });
    let names = ["what", "in ten seconds", "largest", "mean"];
    Table::new(names.map(str::to_owned).to_vec(), rows.collect())
}
