//! The exclusive lock, shared with Curator's and kazoo's.

use zookeeper_recipes_interop::Task;
use zookeeper_recipes_suite::{Address, LONG, TestServer, on_both_servers};

use crate::peers::{Peer, available};
use crate::process::{Contenders, Language, PATIENCE, Referee, until};
use crate::support::{Group, assert_mixed, contend};

on_both_servers!(
    curator_and_ours_take_turns_in_order,
    kazoo_told_of_our_names_and_ours_take_turns_in_order,
    curator_and_kazoo_under_its_name_and_ours_take_turns_in_order,
    pairs_that_must_not_share_a_path_hold_together,
);

/// Of each language.
const CONTENDERS: usize = 10;

/// Of each contender.
const TURNS: usize = 50;

/// Lets one group for each of these contend.
async fn share(server: TestServer, languages: &[(Language, &str)]) {
    let modes: Vec<_> = languages
        .iter()
        .map(|(_, mode)| [(*mode, CONTENDERS)])
        .collect();
    let groups: Vec<Group<'_>> = languages
        .iter()
        .zip(&modes)
        .map(|((language, _), modes)| (*language, modes.as_slice()))
        .collect();
    let report = contend(&server, &groups, TURNS).await;
    assert_eq!(report.violations, [""; 0]);
    for (place, one) in groups.iter().enumerate() {
        for other in &groups[place + 1..] {
            assert_mixed(&report, *one, *other);
        }
    }
}

async fn curator_and_ours_take_turns_in_order(server: TestServer) {
    if available("lock with Curator", &[Peer::Curator]) {
        share(
            server,
            &[(Language::Ours, "lock"), (Language::Curator, "lock")],
        )
        .await;
    }
}

async fn kazoo_told_of_our_names_and_ours_take_turns_in_order(server: TestServer) {
    if available("lock with kazoo", &[Peer::Kazoo]) {
        share(
            server,
            &[(Language::Ours, "lock"), (Language::Kazoo, "lock")],
        )
        .await;
    }
}

async fn curator_and_kazoo_under_its_name_and_ours_take_turns_in_order(server: TestServer) {
    if available("lock with Curator and kazoo", &[Peer::Curator, Peer::Kazoo]) {
        share(
            server,
            &[
                (Language::Ours, "lock"),
                (Language::Curator, "lock"),
                (Language::Kazoo, "renamed"),
            ],
        )
        .await;
    }
}

/// What no pair above may do, done by pairs that must never share a path; and so the proof that the
/// referee would see it.
async fn pairs_that_must_not_share_a_path_hold_together(server: TestServer) {
    let peers = [Peer::Curator, Peer::Kazoo];
    if !available("pairs that must not share a path", &peers) {
        return;
    }
    let pairs = [
        ((Language::Ours, "lock"), (Language::Kazoo, "stock")),
        ((Language::Curator, "lock"), (Language::Kazoo, "stock")),
        ((Language::Kazoo, "lock"), (Language::Curator, "lock")),
        ((Language::Ours, "lock"), (Language::Curator, "write")),
    ];
    for (place, (holder, intruder)) in pairs.into_iter().enumerate() {
        let referee = Referee::start(1);
        let task = Task {
            connect_string: server.address(),
            path: &format!("/shared-{place}"),
            session_timeout: LONG,
            turns: 1,
            stay: PATIENCE,
        };
        let start = |(language, mode)| Contenders::start(language, &task, &referee, &[(mode, 1)]);
        let _holder = start(holder);
        until("the lock is held", &referee, |report| {
            report.inside.len() == 1
        })
        .await;
        let _intruder = start(intruder);
        let report = until("both are in", &referee, |report| report.inside.len() == 2).await;
        assert_eq!(report.violations.len(), 1, "{report:#?}");
    }
}
