//! Locks, read/write locks and elections that contenders of several libraries share.

use zookeeper_recipes_interop::{Referee, Task};
use zookeeper_recipes_suite::{Address, LONG, TestServer, on_both_servers};

use crate::peers::{Peer, available};
use crate::process::{Contenders, Language, PATIENCE, until};
use crate::support::share;

on_both_servers!(
    curator_and_ours_take_turns_in_order,
    kazoo_told_of_our_names_and_ours_take_turns_in_order,
    curator_and_kazoo_under_its_name_and_ours_take_turns_in_order,
    curator_and_ours_lead_in_turn_and_see_each_other,
    locks_over_the_adapter_and_of_the_peers_take_turns_in_order,
    readers_and_writers_over_both_connections_and_of_curator_share,
    leaders_over_both_connections_and_of_curator_take_turns,
    pairs_that_must_not_share_a_path_hold_together,
);

/// Of each language.
const LOCK: &[(&str, usize)] = &[("lock", 10)];

/// Under Curator's name for its znodes.
const RENAMED: &[(&str, usize)] = &[("renamed", 10)];

async fn curator_and_ours_take_turns_in_order(server: TestServer) {
    let groups = [(Language::Ours, LOCK), (Language::Curator, LOCK)];
    share(&server, "lock with Curator", &groups, 50).await;
}

async fn kazoo_told_of_our_names_and_ours_take_turns_in_order(server: TestServer) {
    let groups = [(Language::Ours, LOCK), (Language::Kazoo, LOCK)];
    share(&server, "lock with kazoo", &groups, 50).await;
}

async fn curator_and_kazoo_under_its_name_and_ours_take_turns_in_order(server: TestServer) {
    let kazoo = (Language::Kazoo, RENAMED);
    let groups = [(Language::Ours, LOCK), (Language::Curator, LOCK), kazoo];
    share(&server, "lock with Curator and kazoo", &groups, 50).await;
}

async fn curator_and_ours_lead_in_turn_and_see_each_other(server: TestServer) {
    let latches = |language| (language, [("latch", 6)].as_slice());
    let groups = [Language::Ours, Language::Curator].map(latches);
    share(&server, "leader with Curator", &groups, 30).await;
}

async fn locks_over_the_adapter_and_of_the_peers_take_turns_in_order(server: TestServer) {
    let locks = |language| (language, [("lock", 5)].as_slice());
    let kazoo = (Language::Kazoo, [("renamed", 5)].as_slice());
    let groups = [locks(Language::Adapter), locks(Language::Curator), kazoo];
    share(&server, "lock over the adapter", &groups, 40).await;
}

async fn readers_and_writers_over_both_connections_and_of_curator_share(server: TestServer) {
    let ours = [("read", 3), ("write", 2), ("downgrade", 1)];
    let curators = [("read", 3), ("write", 2)];
    let groups = [
        (Language::Ours, ours.as_slice()),
        (Language::Adapter, ours.as_slice()),
        (Language::Curator, curators.as_slice()),
    ];
    share(&server, "read/write lock over the adapter", &groups, 40).await;
}

async fn leaders_over_both_connections_and_of_curator_take_turns(server: TestServer) {
    let latches = |language| (language, [("latch", 4)].as_slice());
    let groups = [Language::Ours, Language::Adapter, Language::Curator].map(latches);
    share(&server, "leader over the adapter", &groups, 40).await;
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
