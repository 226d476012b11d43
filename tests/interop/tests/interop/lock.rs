//! The exclusive lock, shared with Curator's and kazoo's.

use zookeeper_recipes_interop::{Referee, Task};
use zookeeper_recipes_suite::{Address, LONG, TestServer, on_both_servers};

use crate::peers::{Peer, available};
use crate::process::{Contenders, Language, PATIENCE, until};
use crate::support::share;

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

const LOCK: &[(&str, usize)] = &[("lock", CONTENDERS)];

/// Under Curator's name for its znodes.
const RENAMED: &[(&str, usize)] = &[("renamed", CONTENDERS)];

async fn curator_and_ours_take_turns_in_order(server: TestServer) {
    if available("lock with Curator", &[Peer::Curator]) {
        let groups = [(Language::Ours, LOCK), (Language::Curator, LOCK)];
        share(&server, &groups, TURNS).await;
    }
}

async fn kazoo_told_of_our_names_and_ours_take_turns_in_order(server: TestServer) {
    if available("lock with kazoo", &[Peer::Kazoo]) {
        let groups = [(Language::Ours, LOCK), (Language::Kazoo, LOCK)];
        share(&server, &groups, TURNS).await;
    }
}

async fn curator_and_kazoo_under_its_name_and_ours_take_turns_in_order(server: TestServer) {
    if available("lock with Curator and kazoo", &[Peer::Curator, Peer::Kazoo]) {
        let kazoo = (Language::Kazoo, RENAMED);
        let groups = [(Language::Ours, LOCK), (Language::Curator, LOCK), kazoo];
        share(&server, &groups, TURNS).await;
    }
}

/// Pairs that must never share a path hold together. The referee finds what no pair above may do.
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
        let referee = Referee::listen(1).expect("a free port");
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
