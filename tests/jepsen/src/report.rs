//! The report.

use std::env;
use std::time::Duration;

use zookeeper_recipes_benches::report::{Cell, Machine, Report, Table, help};

use crate::checker::{Attempt, Verdict, Way};
use crate::fault::Fault;
use crate::looks::Looks;

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) library: String,
    /// True if it is this project's.
    pub(crate) is_ours: bool,
    pub(crate) history: Vec<Attempt>,
    pub(crate) verdicts: [Verdict; 3],
    pub(crate) failures: usize,
    pub(crate) faults: Vec<(Fault, usize)>,
    /// False if an accepted token was not newer than all before it.
    pub(crate) in_order: bool,
    /// `None` if the clients' clocks cannot be compared.
    pub(crate) looks: Option<Looks>,
    /// How many times the clients stated that are not of this machine's clock.
    pub(crate) foreign_times: usize,
    /// The lines of the clients that could not be understood.
    pub(crate) misunderstood: Vec<String>,
}

impl Run {
    /// True if the token has kept what it promises.
    pub(crate) fn is_fenced(&self) -> bool {
        let fenced = &self.verdicts[Way::Fenced as usize];
        self.in_order
            && self.verdicts.iter().all(|it| it.unexpected.is_empty())
            && fenced.lost.is_empty()
    }

    fn lost_at(&self, way: Way, fault: Fault) -> usize {
        let lost = &self.verdicts[way as usize].lost;
        let at =
            |attempt: &&Attempt| attempt.fault == Some(fault) && lost.contains(&attempt.element);
        self.history.iter().filter(at).count()
    }
}

pub(crate) fn report(runs: &[Run], machine: Machine, command: &str, timeout: Duration) -> Report {
    let mut report = Report::new("jepsen", "A set guarded by a lock, under faults", machine);
    report.paragraph(&format!(
        "Command: `{command}`. Commit: {}. Four clients of one library at a time, each in a process and a \
         network namespace of its own, on an ensemble of three. The session timeout is {timeout:?}. \
         Each fault lasts 1.2 to 2.2 session timeouts.",
        env::var("REPORT_COMMIT").unwrap_or_else(|_| "unknown".to_owned())
    ));
    report.heading("What each lost");
    report.table("lost", &losses(runs));
    report.paragraph(
        "A turn acquires the lock, reads a set, works for up to 20 ms, looks at its lock, is on its \
         way to the store for up to 10 ms, and writes the set back with one more element. An \
         element is lost if the store acknowledged it and the set lacks it in the end. Each turn \
         writes to three sets. \"Unchecked\" writes in any case. \"Checked\" writes if the library \
         says that the lock is held: by `Hold::is_held` here, and in Curator and kazoo by the state \
         of the connection, as their documentation asks. \"Fenced\" writes in any case, and the \
         store refuses a token that is older than the newest one of a read or a write. Curator and \
         kazoo have no token: their clients read the czxid of their znode by one more request.",
    );
    report.paragraph(
        "One late write overwrites all elements since its read. So the count of lost elements is \
         not the count of late writes. The refused writes are the late ones. A turn whose checked \
         write is withheld sends its fenced write all the same.",
    );
    report.heading("The looks");
    report.table("looks", &looks(runs));
    report.paragraph(LOOKS);
    for run in runs {
        report.heading(&run.library);
        report.table(&file_name(&run.library), &by_fault(run));
    }
    report.heading("What this does not show");
    report.paragraph(
        "- The loss in the checked set depends on how often a pause falls between the look and the \
         write. The faults aim at that: a holder is paused after every other fault.\n\
         - Clocks: none jumps.\n\
         - The cuts between the members lose the packets of both directions. Cuts of one direction \
         are between a client and the servers.\n\
         - All disks stand still together (`fsfreeze`). The kernel had no means to slow one disk.\n\
         - An element counts to the fault that was there at its write, or to the last one before.",
    );
    report
}

const LOOKS: &str = "\
    A late turn is one whose fenced write the store refused. \"Looks after a newer holder\" began \
    after another client had acquired the lock with a newer token. A client reads the clock right \
    before its look and right after its acquisition, so that a pause cannot make a right look wrong. \
    All clocks are the machine's `CLOCK_MONOTONIC`. A look \
    is wrong if it began after a newer holder had acquired, and said that the lock was held. A run \
    with a wrong look of ours fails. Each lost element of the checked set is counted to the late \
    write that removed it, or that wrote it.";

fn file_name(library: &str) -> String {
    let name = library.to_ascii_lowercase();
    name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}

fn losses(runs: &[Run]) -> Table {
    let lost = |run: &Run, way: Way| Cell::from(run.verdicts[way as usize].lost.len());
    Table::of(
        runs,
        &[
            ("library", &|run| run.library.as_str().into()),
            ("turns", &|run| run.history.len().into()),
            ("failed acquisitions", &|run| run.failures.into()),
            ("lost, unchecked", &|run| lost(run, Way::Unchecked)),
            ("withheld", &|run| {
                run.verdicts[Way::Checked as usize].withheld.into()
            }),
            ("lost, checked", &|run| lost(run, Way::Checked)),
            ("refused by token", &|run| {
                run.verdicts[Way::Fenced as usize].refused.into()
            }),
            ("lost, fenced", &|run| lost(run, Way::Fenced)),
        ],
    )
}

fn looks(runs: &[Run]) -> Table {
    let count = |wanted: &dyn Fn(&Attempt) -> bool, run: &Run| {
        Cell::from(run.history.iter().filter(|it| wanted(it)).count())
    };
    let judged = |figure: &dyn Fn(&Looks) -> usize, run: &Run| match &run.looks {
        Some(looks) => Cell::from(figure(looks)),
        None => Cell::from("not judged"),
    };
    Table::of(
        runs,
        &[
            ("library", &|run| run.library.as_str().into()),
            ("late turns", &|run| count(&Attempt::is_late, run)),
            ("late and withheld", &|run| {
                count(&Attempt::is_late_and_withheld, run)
            }),
            ("looks after a newer holder", &|run| {
                judged(&|looks| looks.after_newer, run)
            }),
            ("wrong looks", &|run| {
                judged(&|looks| looks.wrong.len(), run)
            }),
            ("lost, checked", &|run| {
                run.verdicts[Way::Checked as usize].lost.len().into()
            }),
            ("by a look before the newer holder", &|run| {
                judged(&|looks| looks.lost_by_earlier_look, run)
            }),
            ("by a wrong look", &|run| {
                judged(&|looks| looks.lost_by_wrong_look, run)
            }),
        ],
    )
}

fn by_fault(run: &Run) -> Table {
    let turns = |fault| {
        run.history
            .iter()
            .filter(|it| it.fault == Some(fault))
            .count()
    };
    Table::of(
        &run.faults,
        &[
            ("fault", &|(fault, _)| help(fault).into()),
            ("times", &|(_, count)| (*count).into()),
            ("turns", &|(fault, _)| turns(*fault).into()),
            ("lost, unchecked", &|it| {
                run.lost_at(Way::Unchecked, it.0).into()
            }),
            ("lost, checked", &|it| {
                run.lost_at(Way::Checked, it.0).into()
            }),
            ("lost, fenced", &|it| run.lost_at(Way::Fenced, it.0).into()),
        ],
    )
}
