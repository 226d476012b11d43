//! What cannot be beaten: the least that any correct lock on ZooKeeper sends.

use zookeeper_recipes_benches::report::{Cell, Report, Table};

use super::measurement::Measured;
use crate::peer::Peer;
use crate::row::Row;

/// The least cost of an operation, the cost of ours, and why no lock can do with less.
///
/// The costs of ours are those of the tables in the documentation of the recipes.
struct Bound {
    operation: &'static str,
    /// Round trips and transactions.
    least: [&'static str; 2],
    ours: [&'static str; 2],
    reason: &'static str,
}

const BOUNDS: [Bound; 10] = [
    Bound {
        operation: "acquire, free",
        least: ["1", "1"],
        ours: ["1", "1"],
        reason: "other contenders see a holder only by a write, and the holder must know its outcome",
    },
    Bound {
        operation: "release",
        least: ["1", "1"],
        ours: ["1", "1"],
        reason: "only a write shows that the lock is free; a caller that drops the hold waits for none",
    },
    Bound {
        operation: "failed try",
        least: ["1", "0"],
        ours: ["1", "0"],
        reason: "the servers alone know who holds, and a read shows it",
    },
    Bound {
        operation: "enter a queue, until its watches are set",
        least: ["2", "1"],
        ours: ["2", "1"],
        reason: "the server decides who the predecessor is when it creates the znode, so no watch \
                 on the predecessor can be sent before the reply; one round trip is enough with a \
                 watch on the directory, which wakes all waiters",
    },
    Bound {
        operation: "handoff",
        least: ["1/2 + 1/2", "1"],
        ours: ["1/2 + 1/2", "1"],
        reason: "the release goes to the server, and the event from there to the next holder",
    },
    Bound {
        operation: "read lock, no writer",
        least: ["1", "1"],
        ours: ["1", "1"],
        reason: "a writer must see each reader, so each reader writes",
    },
    Bound {
        operation: "write lock, free",
        least: ["1", "1"],
        ours: ["1", "1"],
        reason: "as a lock",
    },
    Bound {
        operation: "semaphore, permits free",
        least: ["1", "1"],
        ours: ["1", "1"],
        reason: "each holder counts, so each holder writes; the number of permits comes with it",
    },
    Bound {
        operation: "election, nobody leads",
        least: ["1", "1"],
        ours: ["1", "1"],
        reason: "as a lock; the candidate's id is the data of its znode",
    },
    Bound {
        operation: "acquire right after the own release",
        least: ["1", "1"],
        ours: ["2", "2"],
        reason: "one transaction can delete the old znode and create the new one; ours waits for the \
                 answer to the delete, unless the hold is dropped",
    },
];

/// Adds the section to a report.
pub(super) fn add(report: &mut Report, measured: &[Measured<'_>]) {
    report.heading("The limit");
    report.paragraph(
        "What any correct lock on ZooKeeper needs, beside what ours needs at a path that the session \
         has used before. A transaction is a write that the leader orders and a quorum stores. Reads that \
         go with a write cost no round trip of their own.",
    );
    report.table("limit", &bounds());
    report.table("limit-measured", &beside_a_bare_socket(measured));
    report.paragraph(
        "A bare socket sends the create and the delete of an uncontended lock, each once the one \
         before is answered, and does nothing else. It blocks, on a thread of its own. The round \
         trips of ours are counted from the packets.",
    );
}

fn bounds() -> Table {
    Table::of(
        BOUNDS.iter(),
        &[
            ("operation", &|bound| bound.operation.into()),
            ("least round trips", &|bound| bound.least[0].into()),
            ("ours", &|bound| bound.ours[0].into()),
            ("least transactions", &|bound| bound.least[1].into()),
            ("ours, transactions", &|bound| bound.ours[1].into()),
            ("why not fewer", &|bound| bound.reason.into()),
        ],
    )
}

/// A line for each network: an uncontended lock beside the same requests over a bare socket.
fn beside_a_bare_socket(measured: &[Measured<'_>]) -> Table {
    let ours = |one: &Measured<'_>| {
        let cost = one.summary.costs.get(&(Row::Lock, Peer::Ours))?;
        Some((
            cost.percentile(0.5)?,
            cost.for_a_turn(cost.passed.round_trips)?,
        ))
    };
    let turn = |one: &Measured<'_>| ours(one).map(|(time, _)| time);
    Table::of(
        measured,
        &[
            ("network", &|one| Cell::from(one.name())),
            ("a bare socket [ms]", &|one| one.bare_turn.into()),
            ("lock, uncontended: p50 [ms]", &|one| turn(one).into()),
            ("ratio", &|one| {
                turn(one).map(|time| time / one.bare_turn).into()
            }),
            ("round trips, least", &|_| 2_u64.into()),
            ("round trips of ours", &|one| {
                ours(one).map(|(_, trips)| trips).into()
            }),
        ],
    )
}
