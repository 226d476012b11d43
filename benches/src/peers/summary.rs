//! The report of the comparison.

use std::fmt::Write as _;

use crate::figures::Figures;
use crate::ours::LOCAL_HANDOVERS;
use crate::passed::Passed;
use crate::peer::Peer;
use crate::plan::Plan;
use crate::processor::Costs;
use crate::row::Row;
use crate::target::{OVER_RAW_REQUESTS, Target};
use zookeeper_recipes_benches::Overhead;
use zookeeper_recipes_benches::SESSION_TIMEOUT;
use zookeeper_recipes_benches::report::{Bars, Cell, Column, Group, Machine, Report, Table, shown};

/// All figures, and how they were measured.
#[derive(Debug)]
pub(crate) struct Summary<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) versions: Vec<(Peer, String)>,
    /// The libraries that this machine lacks, each with the advice to install it.
    pub(crate) missing: Vec<(Peer, String)>,
    pub(crate) warm_up_turns: Vec<(Peer, u64)>,
    pub(crate) figures: Figures,
    /// The processor time of turns.
    pub(crate) costs: Costs,
    /// The traffic on the wire.
    pub(crate) passed: Vec<Passed>,
    /// Uncontended acquisitions beside their requests alone.
    pub(crate) beside_requests: Vec<Overhead>,
}

/// Writes the report.
///
/// # Errors
///
/// If the picture cannot be drawn.
pub(crate) fn summarise(summary: &Summary<'_>, machine: Machine) -> anyhow::Result<Report> {
    let title = "The same work by these recipes, by Curator, by kazoo and by Client::lock";
    let mut report = Report::new("peers", title, machine);
    report.paragraph(&summary.participants());

    report.table("medians", &summary.medians());
    report.paragraph(
        "Turns per second: more is better. Milliseconds and bytes: less is better. A ratio above 1 \
         is better for ours in any row; it is the median of the ratios within each round. A dash: \
         the library has no such thing, or was not there.",
    );
    report.bars("ratios", &summary.bars())?;

    report.heading("Where ours loses");
    report.paragraph(&summary.losses());

    report.heading("What is to be reached");
    report.table("targets", &summary.targets());

    if !summary.beside_requests.is_empty() {
        report.heading("Beside the same requests alone");
        report.paragraph(
            "The time that the recipes add to the requests that they send: uncontended, on one \
             connection, in turns. The first row of each kind is the requests by zookeeper-client \
             itself, the second is the requests by the trait that the recipes call.",
        );
        report.table("requests", &summary.requests());
    }

    report.heading("What a turn costs the processors");
    report.paragraph(
        "Microseconds of processor time for a turn, of the library's process and of the server's, \
         over all rounds. Other processes of the machine are not in it.",
    );
    report.table("processors", &summary.processors());

    if !summary.passed.is_empty() {
        report.heading("What passes on the wire");
        report.paragraph(
            "Requests and bytes for each turn, an acquisition and its release. A reader's turn \
             includes its part of the writer's. Counted by a proxy, in a run of its own, over all \
             turns from the first to the last.",
        );
        report.table("wire", &summary.wire());
        report.data("wire-each", &summary.wire_each());
    }

    report.heading("How it is measured");
    report.paragraph(&summary.method());
    report.data("rounds", &summary.rounds());
    Ok(report)
}

impl Summary<'_> {
    fn participants(&self) -> String {
        let mut lines = String::new();
        for (peer, version) in &self.versions {
            // Writing to a String does not fail.
            let _ = writeln!(lines, "- {}: {version}", peer.name());
        }
        for (peer, missing) in &self.missing {
            let _ = writeln!(lines, "- {}: not measured, {missing}", peer.name());
        }
        lines
    }

    fn others() -> Vec<Peer> {
        Peer::others().collect()
    }

    fn medians(&self) -> Table {
        let others = Summary::others();
        let columns = [Column::text("work"), Column::text("unit")]
            .into_iter()
            .chain(Peer::ALL.map(|peer| Column::figures(peer.name())))
            .chain(
                others
                    .iter()
                    .map(|peer| Column::figures(format!("ours to {}", peer.name()))),
            );
        let mut table = Table::new(columns);
        for &row in &self.plan.rows {
            let medians = Peer::ALL.map(|peer| Cell::figure(self.figures.median(row, peer)));
            let ratios = others.iter().map(|&peer| {
                let ratio = self.figures.ratio(row, peer);
                Cell::figure(ratio.map(|ratio| ratio.median))
            });
            let names = [Cell::from(row.title()), Cell::from(row.unit())];
            table.row(names.into_iter().chain(medians).chain(ratios));
        }
        table
    }

    fn bars(&self) -> Bars {
        let others = Summary::others();
        let group = |row: Row| Group {
            name: row.title().to_owned(),
            ratios: others
                .iter()
                .map(|&peer| Some(self.figures.ratio(row, peer)?.median))
                .collect(),
        };
        Bars {
            title: "How many times better ours is (medians; left of 1: worse)".to_owned(),
            axis: "ours to the other's".to_owned(),
            series: others.iter().map(|peer| peer.name().to_owned()).collect(),
            groups: self.plan.rows.iter().map(|&row| group(row)).collect(),
        }
    }

    fn losses(&self) -> String {
        let mut lines = String::new();
        for &row in &self.plan.rows {
            for peer in Peer::others() {
                let Some(ratio) = self.figures.ratio(row, peer) else {
                    continue;
                };
                if ratio.median >= 1.0 {
                    continue;
                }
                let median = |peer| {
                    let median = self.figures.median(row, peer);
                    median.map_or_else(String::new, shown)
                };
                let _ = writeln!(
                    lines,
                    "- **{}**: {} times {} ({} to {} in the rounds), {} against {} {}",
                    row.title(),
                    shown(ratio.median),
                    peer.name(),
                    shown(ratio.least),
                    shown(ratio.most),
                    median(Peer::Ours),
                    median(peer),
                    row.unit(),
                );
            }
        }
        match lines.is_empty() {
            true => "In none of the rows measured.".to_owned(),
            false => lines,
        }
    }

    fn targets(&self) -> Table {
        let mut table = Table::new([
            Column::text("work"),
            Column::text("ours to"),
            Column::text("to be reached"),
            Column::figures("median"),
            Column::figures("least"),
            Column::figures("most"),
            Column::text("verdict"),
        ]);
        let verdict = |reached| if reached { "reached" } else { "**missed**" };
        for target in Target::all() {
            if !self.plan.rows.contains(&target.row) {
                continue;
            }
            let judged = target.judge(&self.figures);
            let measured = judged.map(|(measured, _)| measured);
            table.row([
                target.row.title().into(),
                target.peer.name().into(),
                Cell::Text(format!("at least {}", shown(target.ratio))),
                Cell::figure(measured.map(|measured| measured.median)),
                Cell::figure(measured.map(|measured| measured.least)),
                Cell::figure(measured.map(|measured| measured.most)),
                judged
                    .map_or("not measured", |(_, reached)| verdict(reached))
                    .into(),
            ]);
        }
        for overhead in self.beside_requests.iter().filter(|one| one.is_recipe) {
            let time = overhead.to_client;
            table.row([
                Cell::Text(format!("{}, uncontended: time", overhead.name)),
                "the same raw requests".into(),
                Cell::Text(format!("at most {}", shown(OVER_RAW_REQUESTS))),
                Cell::Figure(time.median),
                Cell::Figure(time.least),
                Cell::Figure(time.most),
                verdict(time.median <= OVER_RAW_REQUESTS).into(),
            ]);
        }
        table
    }

    fn requests(&self) -> Table {
        let mut table = Table::new([
            Column::text("what"),
            Column::figures("median [µs]"),
            Column::figures("to the client's requests"),
            Column::figures("to the trait's requests"),
        ]);
        for overhead in &self.beside_requests {
            table.row([
                overhead.name.into(),
                Cell::Figure(overhead.time.as_secs_f64() * 1e6),
                Cell::Figure(overhead.to_client.median),
                Cell::Figure(overhead.to_session.median),
            ]);
        }
        table
    }

    fn processors(&self) -> Table {
        let columns = |what: &'static str| {
            let name = move |peer: Peer| Column::figures(format!("{what}: {}", peer.name()));
            Peer::ALL.map(name)
        };
        let columns = [Column::text("work")]
            .into_iter()
            .chain(columns("client"))
            .chain(columns("server"));
        let mut table = Table::new(columns);
        for &row in &self.plan.rows {
            let client = Peer::ALL.map(|peer| Cell::figure(self.costs.client(row, peer)));
            let server = Peer::ALL.map(|peer| Cell::figure(self.costs.server(row, peer)));
            if client.iter().any(|cell| *cell != Cell::Nothing) {
                let title = [Cell::from(row.title())].into_iter();
                table.row(title.chain(client).chain(server));
            }
        }
        table
    }

    fn wire(&self) -> Table {
        let columns = |what: &'static str| {
            let name = move |peer: Peer| Column::figures(format!("{what}: {}", peer.name()));
            Peer::ALL.map(name)
        };
        let columns = [Column::text("work")]
            .into_iter()
            .chain(columns("requests"))
            .chain(columns("bytes"));
        let mut table = Table::new(columns);
        for &row in &self.plan.rows {
            let passed = |peer| {
                let mut passed = self.passed.iter();
                passed.find(move |passed| passed.row == row && passed.peer == peer)
            };
            let cells = |count: fn(&Passed) -> u64| {
                Peer::ALL.map(|peer| Cell::figure(passed(peer).map(|of| of.for_a_turn(count(of)))))
            };
            if passed(Peer::Ours).is_some() {
                let title = [Cell::from(row.title())].into_iter();
                let requests = cells(|passed| passed.traffic.requests);
                let bytes = cells(|passed| passed.traffic.bytes);
                table.row(title.chain(requests).chain(bytes));
            }
        }
        table
    }

    /// The traffic of each library, with the notifications and the bytes of lists.
    fn wire_each(&self) -> Table {
        let mut table = Table::new([
            Column::text("row"),
            Column::text("library"),
            Column::figures("turns"),
            Column::figures("requests"),
            Column::figures("notifications"),
            Column::figures("bytes"),
            Column::figures("bytes of lists"),
        ]);
        for passed in &self.passed {
            let traffic = passed.traffic;
            let for_a_turn = |count| Cell::Figure(passed.for_a_turn(count));
            table.row([
                Cell::Text(passed.row.name()),
                passed.peer.name().into(),
                Cell::Count(passed.turns),
                for_a_turn(traffic.requests),
                for_a_turn(traffic.notifications),
                for_a_turn(traffic.bytes),
                for_a_turn(traffic.list_bytes),
            ]);
        }
        table
    }

    /// Each round's figures.
    fn rounds(&self) -> Table {
        let columns = [
            Column::text("row"),
            Column::text("unit"),
            Column::text("library"),
            Column::figures("round"),
            Column::figures("figure"),
        ];
        let mut table = Table::new(columns);
        for &row in &self.plan.rows {
            for peer in Peer::ALL {
                for (round, figure) in (1..).zip(self.figures.rounds(row, peer)) {
                    table.row([
                        Cell::Text(row.name()),
                        row.unit().into(),
                        peer.name().into(),
                        Cell::Count(round),
                        Cell::Figure(*figure),
                    ]);
                }
            }
        }
        table
    }

    fn method(&self) -> String {
        let Plan {
            rounds,
            time,
            warm_up,
            releases,
            waiters: [first_waiters, waiters],
            ..
        } = self.plan;
        let turns = self
            .warm_up_turns
            .iter()
            .map(|(peer, turns)| format!("{} {}", peer.name(), shown(*turns as f64)));
        let turns: Vec<String> = turns.collect();
        format!(
            "- Each library works in a process of its own, over its own sessions to the same \
             server, with a session timeout of {SESSION_TIMEOUT:?}, and measures itself by its \
             monotonic clock. In each of {rounds} rounds each is measured once, and each round \
             begins with another one.\n\
             - Before that, each library did each work for {warm_up:?}, so that Java had compiled \
             the code in use, in the server and in Curator. Turns of the warm-up: {}.\n\
             - A turn is an acquisition and the release of it, awaited, for {time:?}; contenders \
             never rest, and each has had a turn before any is counted. Client::lock has no \
             release to await: its deletion goes on in the background while the next turn begins, \
             so that it goes to the server together with the next creation. Ours does the same \
             if the hold is dropped; the row in which the release is not awaited has both.\n\
             - A contender is a thread with Curator and kazoo, a task with ours and Client::lock, \
             on a worker for each core.\n\
             - A failed try is ours by `try_acquire`, Curator's by `acquire(0)`, kazoo's by \
             `blocking=False`; another session holds the lock.\n\
             - Curator's semaphore is InterProcessSemaphoreV2.\n\
             - The readers are each in a session of their own, and all of them watch before the \
             writer releases: from its call of release until the last of them holds, {releases} times \
             in a round.\n\
             - 100 tasks want one lock: they share one of ours, with {LOCAL_HANDOVERS} local \
             handovers in a row, and have one each of Curator and kazoo, which are slower when \
             shared (all are woken by each release; they poll).\n\
             - The memory of a waiter: the growth of a new process by {waiters} more waiters for one \
             lock, beyond the first {first_waiters}, in four sessions, five times at most, a task or a \
             thread each. They come a few at a time, so that no burst of replies is in it. Ours and \
             Client::lock: the resident set. kazoo: the resident set, after a collection. Curator: \
             the resident set outside the heap, which is of fixed size and touched at the start, \
             and what is in use on the heap after a collection.",
            turns.join(", "),
        )
    }
}
