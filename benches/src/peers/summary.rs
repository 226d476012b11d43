//! The report of the comparison.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::figures::Figures;
use crate::peer::Peer;
use crate::plan::Plan;
use crate::processor::Cost;
use crate::row::Row;
use zookeeper_recipes_benches::SESSION_TIMEOUT;
use zookeeper_recipes_benches::report::{Cell, Machine, Report, Table, shown};
use zookeeper_recipes_benches::wire::Traffic;

/// The traffic between a library and the server, for one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) traffic: Traffic,
    /// The turns that the traffic was for.
    pub(crate) turns: u64,
}

/// A work of a library.
type Key = (Row, Peer);

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
    pub(crate) costs: BTreeMap<(Row, Peer), Cost>,
    pub(crate) passed: BTreeMap<(Row, Peer), Passed>,
}

pub(crate) fn summarise(summary: &Summary<'_>, machine: Machine) -> Report {
    let title = "Compared with Curator, kazoo and Client::lock";
    let name = match summary.plan.servers {
        1 if summary.plan.is_near() => "peers",
        1 => "network",
        _ => "ensemble",
    };
    let mut report = Report::new(name, title, machine);
    report.paragraph(&summary.participants());

    report.table("medians", &summary.medians());
    report.paragraph(
        "Turns per second: more is better. Milliseconds and bytes: less is better, and the ratio is \
         theirs / ours. So a ratio above 1 means that ours is better. It is the median of the \
         ratios of the rounds. A dash: the library does not have this, or was not measured.",
    );

    report.heading("What a turn costs");
    report.paragraph(
        "A turn is an acquisition and its release; a reader's turn includes its part of the \
         writer's. The percentiles are of the time of whole turns, with the wait in the queue. The \
         processor time is that of the library's process and of the servers' over all rounds, \
         and switches are voluntary ones of all threads of the library's process. Requests, \
         round trips, notifications and bytes are counted by a proxy, in a run of its own, \
         over all turns from the first to the last. A round trip is a request after an \
         answer, on the same connection.",
    );
    report.table("costs", &summary.costs());

    report.heading("How it is measured");
    report.paragraph(&summary.method());
    report.data("rounds", &summary.rounds());
    report
}

impl<'p> Summary<'p> {
    /// The summary of this plan before anything is measured.
    pub(crate) fn of(plan: &'p Plan) -> Summary<'p> {
        Summary {
            plan,
            versions: Vec::new(),
            missing: Vec::new(),
            warm_up_turns: Vec::new(),
            figures: Figures::default(),
            costs: BTreeMap::new(),
            passed: BTreeMap::new(),
        }
    }

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

    fn medians(&self) -> Table {
        let columns = ["work", "unit"].map(str::to_owned).into_iter();
        let columns = columns.chain(Peer::ALL.map(|peer| peer.name().to_owned()));
        let columns = columns.chain(Peer::others().map(|it| format!("ours / {}", it.name())));
        let rows = self.plan.rows.iter().map(|&row| {
            let names = [Cell::from(row.title()), row.unit().into()].into_iter();
            let medians = Peer::ALL.map(|peer| self.figures.median(row, peer).into());
            let ratios = Peer::others().map(|peer| self.figures.ratio(row, peer).into());
            names.chain(medians).chain(ratios).collect()
        });
        Table::new(columns.collect(), rows.collect())
    }

    /// A line for each work of each library.
    fn costs(&self) -> Table {
        let lines = self.plan.rows.iter();
        let lines = lines.flat_map(|&row| Peer::ALL.map(|peer| (row, peer)));
        let known = |key: &Key| self.costs.contains_key(key) || self.passed.contains_key(key);
        let cost = |key: &Key, figure: fn(&Cost) -> Option<f64>| {
            Cell::from(self.costs.get(key).and_then(figure))
        };
        let passed = |key: &Key, count: fn(Traffic) -> u64| {
            let passed = self.passed.get(key);
            Cell::from(passed.map(|it| count(it.traffic) as f64 / it.turns as f64))
        };
        Table::of(
            lines.filter(known),
            &[
                ("work", &|(row, _)| row.title().into()),
                ("library", &|(_, peer)| peer.name().into()),
                ("p50 [ms]", &|key| cost(key, |it| it.percentile(0.5))),
                ("p99 [ms]", &|key| cost(key, |it| it.percentile(0.99))),
                ("p99.9 [ms]", &|key| cost(key, |it| it.percentile(0.999))),
                ("client [µs]", &|key| {
                    cost(key, |it| it.of_a_turn(it.client))
                }),
                ("server [µs]", &|key| {
                    cost(key, |it| it.of_a_turn(it.server))
                }),
                ("switches", &|key| cost(key, Cost::switches)),
                ("requests", &|key| passed(key, |it| it.requests)),
                ("round trips", &|key| passed(key, |it| it.round_trips)),
                ("notifications", &|key| passed(key, |it| it.notifications)),
                ("bytes", &|key| passed(key, |it| it.bytes)),
                ("bytes of lists", &|key| passed(key, |it| it.list_bytes)),
            ],
        )
    }

    fn rounds(&self) -> Table {
        let libraries = self.plan.rows.iter();
        let libraries = libraries.flat_map(|&row| Peer::ALL.map(|peer| (row, peer)));
        let rounds = libraries.flat_map(|(row, peer)| {
            let figures = (1_u64..).zip(self.figures.rounds(row, peer));
            figures.map(move |(round, figure)| (row, peer, round, *figure))
        });
        Table::of(
            rounds,
            &[
                ("row", &|(row, ..)| row.name().into()),
                ("unit", &|(row, ..)| row.unit().into()),
                ("library", &|(_, peer, ..)| peer.name().into()),
                ("round", &|(_, _, round, _)| (*round).into()),
                ("figure", &|(.., figure)| (*figure).into()),
            ],
        )
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
             release to await: its deletion is under way while the next turn begins, \
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
             - 100 tasks want one lock: they share one of ours, and each turn has a hold of its own. \
             In the other row they share one hold, by `TaskMutex`. They have a lock each of Curator \
             and kazoo in both, which are slower when shared (all are woken by each release; they \
             poll).\n\
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
