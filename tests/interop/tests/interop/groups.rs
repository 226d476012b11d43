//! Locks, read/write locks and elections that contenders of several libraries share.

use zookeeper_recipes_interop::Referee;
use zookeeper_recipes_suite::{TestServer, on_both_servers};

use crate::process::{Contenders, Language, PATIENCE, Task, until};
use crate::support::{present, share};

on_both_servers!(embedded at night:
    locks_of_all_libraries_take_turns_in_order,
    kazoo_told_of_our_names_and_ours_take_turns_in_order,
    leaders_over_both_connections_and_of_curator_take_turns_and_see_each_other,
    pairs_that_must_not_share_a_path_hold_together,
);

/// Ours over both connections, Curator's, and kazoo's under Curator's name for its znodes.
async fn locks_of_all_libraries_take_turns_in_order(server: TestServer) {
    let locks = |language| (language, [("lock", 6)].as_slice());
    let groups = [
        locks(Language::Ours),
        locks(Language::Adapter),
        locks(Language::Curator),
        (Language::Kazoo, [("renamed", 6)].as_slice()),
    ];
    share(&server, "locks of all libraries", &groups, 30).await;
}

async fn kazoo_told_of_our_names_and_ours_take_turns_in_order(server: TestServer) {
    let locks = |language| (language, [("lock", 10)].as_slice());
    let groups = [Language::Ours, Language::Kazoo].map(locks);
    share(&server, "lock with kazoo", &groups, 30).await;
}

async fn leaders_over_both_connections_and_of_curator_take_turns_and_see_each_other(
    server: TestServer,
) {
    let latches = |language| (language, [("latch", 4)].as_slice());
    let groups = [Language::Ours, Language::Adapter, Language::Curator].map(latches);
    share(&server, "leaders", &groups, 30).await;
}

/// Pairs that must never share a path hold together. The referee finds what no pair above may do.
async fn pairs_that_must_not_share_a_path_hold_together(server: TestServer) {
    let pairs = [
        [(Language::Ours, "lock"), (Language::Kazoo, "stock")],
        [(Language::Curator, "lock"), (Language::Kazoo, "stock")],
        [(Language::Kazoo, "lock"), (Language::Curator, "lock")],
        [(Language::Ours, "lock"), (Language::Curator, "write")],
    ];
    for (place, pair) in pairs.iter().enumerate() {
        let [holder, intruder] = present("pairs that must not share a path", pair)[..] else {
            continue;
        };
        let referee = Referee::listen(1).expect("a free port");
        let task = Task {
            path: &format!("/shared-{place}"),
            ..Task::new(&server, 1, PATIENCE)
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
