//! The read/write lock, shared with Curator's and kazoo's.

use zookeeper_recipes_interop::Report;
use zookeeper_recipes_suite::{TestServer, on_both_servers};

use crate::peers::{Peer, available, curator_keeps_place_on_downgrade};
use crate::process::Language;
use crate::support::{contend, share};

on_both_servers!(embedded at night:
    readers_and_writers_over_both_connections_and_of_curator_share_while_ours_downgrade,
    our_readers_come_in_beside_a_downgraded_curator,
    curator_downgrades_among_our_writers_if_it_keeps_its_place,
    kazoo_readers_and_writers_told_of_our_names_and_ours_share,
);

/// Of each contender.
const TURNS: usize = 30;

/// How often a test tries again what happens only if several meet.
const MAX_ROUNDS: usize = 5;

const WITH_DOWNGRADE: &[(&str, usize)] = &[("read", 6), ("write", 2), ("downgrade", 2)];

const WITHOUT_DOWNGRADE: &[(&str, usize)] = &[("read", 6), ("write", 2)];

/// True if a contender with this prefix has found one with that prefix inside.
fn were_together(report: &Report, came: &str, found: &str) -> bool {
    report
        .companions
        .iter()
        .filter(|(name, _)| name.starts_with(came))
        .any(|(_, companions)| companions.iter().any(|name| name.starts_with(found)))
}

fn assert_readers_were_together(report: &Report, one: Language, other: Language) {
    for (from, to) in [(one, other), (other, one)] {
        let readers = |language: Language| format!("{}read", language.prefix());
        assert!(
            were_together(report, &readers(from), &readers(to)),
            "no reader of {from:?} ever came in beside one of {to:?}"
        );
    }
}

async fn readers_and_writers_over_both_connections_and_of_curator_share_while_ours_downgrade(
    server: TestServer,
) {
    let groups = [
        (Language::Ours, WITH_DOWNGRADE),
        (
            Language::Adapter,
            [("read", 3), ("write", 2), ("downgrade", 1)].as_slice(),
        ),
        (Language::Curator, WITHOUT_DOWNGRADE),
    ];
    let suite = "read/write lock with Curator";
    let Some(report) = share(&server, suite, &groups, TURNS).await else {
        return;
    };
    assert_readers_were_together(&report, Language::Ours, Language::Curator);
    assert_eq!(report.downgrades, 3 * TURNS);
    assert!(
        were_together(&report, "curator-read", "ours-downgrade"),
        "no reader of Curator's came in beside one of our downgraded ones"
    );
}

async fn our_readers_come_in_beside_a_downgraded_curator(server: TestServer) {
    // One writer alone, so that this holds for the versions that give up their place, too.
    let ours = (Language::Ours, [("read", 6)].as_slice());
    let curator = (
        Language::Curator,
        [("downgrade", 1), ("read", 2)].as_slice(),
    );
    let suite = "read/write lock with a downgrading Curator";
    let Some(report) = contend(&server, suite, &[ours, curator], TURNS).await else {
        return;
    };
    assert_eq!(report.violations, [""; 0]);
    assert_eq!(report.downgrades, TURNS);
    assert!(
        were_together(&report, "ours-read", "curator-downgrade"),
        "no reader of ours came in beside Curator's downgraded one"
    );
}

/// Before 5.5.0, Curator's downgraded reader goes to the end of the queue while it holds. So the
/// writers in between hold beside it: Curator's own, and ours, which see the same queue.
async fn curator_downgrades_among_our_writers_if_it_keeps_its_place(server: TestServer) {
    let suite = "read/write lock with Curator downgrading among writers";
    if !available(suite, Peer::Curator) {
        return;
    }
    let keeps_place = curator_keeps_place_on_downgrade();
    let ours = (Language::Ours, WITH_DOWNGRADE);
    let curator = (Language::Curator, WITH_DOWNGRADE);
    // A busy machine may have no writer in between.
    let mut rounds = 0;
    let report = loop {
        rounds += 1;
        let report = contend(&server, suite, &[ours, curator], TURNS).await;
        let report = report.expect("it is available");
        assert_eq!(report.downgrades, 4 * TURNS);
        if keeps_place || !report.violations.is_empty() || rounds == MAX_ROUNDS {
            break report;
        }
    };
    assert_eq!(
        report.violations.is_empty(),
        keeps_place,
        "{rounds} rounds: {:#?}",
        report.violations
    );
    for violation in &report.violations {
        let (_, beside) = violation.split_once("held beside").unwrap_or_default();
        assert!(
            beside.contains("curator-downgrade"),
            "not Curator's doing: {violation}"
        );
    }
}

async fn kazoo_readers_and_writers_told_of_our_names_and_ours_share(server: TestServer) {
    let ours = (Language::Ours, WITH_DOWNGRADE);
    let kazoo = (Language::Kazoo, WITHOUT_DOWNGRADE);
    let report = share(&server, "read/write lock with kazoo", &[ours, kazoo], TURNS).await;
    if let Some(report) = report {
        assert_readers_were_together(&report, Language::Ours, Language::Kazoo);
    }
}
