//! An overview of contenders of Curator and kazoo says who holds, as the referee saw it.

use std::collections::BTreeSet;
use std::time::Duration;

use zookeeper_recipes_core::Session;
use zookeeper_recipes_interop::Referee;
use zookeeper_recipes_overview::{ContenderState, Overview, QueueKind};
use zookeeper_recipes_suite::{LONG, TestServer, eventually, on_both_servers, session};

use crate::process::{Contenders, Language, PATIENCE, Task};
use crate::support::present;

on_both_servers!(embedded at night:
    overview_and_referee_agree_who_holds_also_after_a_holder_is_killed,
);

const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// Contenders that queue in this order, at a path of their own.
const QUEUES: [(QueueKind, &[(Language, &str)]); 4] = [
    (
        QueueKind::Lock,
        &[
            (Language::Curator, "lock"),
            (Language::Kazoo, "renamed"),
            (Language::Ours, "lock"),
        ],
    ),
    (
        QueueKind::Lock,
        &[(Language::Kazoo, "lock"), (Language::Ours, "lock")],
    ),
    (
        QueueKind::ReadWriteLock,
        &[
            (Language::Curator, "read"),
            (Language::Ours, "read"),
            (Language::Curator, "write"),
        ],
    ),
    (
        QueueKind::Election,
        &[(Language::Curator, "latch"), (Language::Ours, "latch")],
    ),
];

async fn overview_and_referee_agree_who_holds_also_after_a_holder_is_killed(server: TestServer) {
    let observer = session(&server, LONG).await;
    for (place, (kind, contenders)) in QUEUES.into_iter().enumerate() {
        let contenders = present("overviews", contenders);
        if contenders.is_empty() {
            continue;
        }
        let path = format!("/teams/{place}");
        let referee = Referee::listen(1).expect("a free port");
        let task = Task {
            path: &path,
            session_timeout: SESSION_TIMEOUT,
            ..Task::new(&server, 1, PATIENCE)
        };
        let mut processes = Vec::new();
        for (place, (language, mode)) in contenders.iter().enumerate() {
            let started = Contenders::start(*language, &task, &referee, &[(*mode, 1)]);
            processes.push(started);
            eventually("the contender has queued", async || {
                queued(&observer, &path).await.len() == place + 1
            })
            .await;
        }
        let names = contenders.iter();
        let names = names.map(|(language, mode)| format!("{}{mode}-0", language.prefix()));
        let names: Vec<String> = names.collect();
        let seen = queued(&observer, &path).await;
        let owners: Vec<&String> = seen.iter().map(|(owner, _)| owner).collect();
        assert_eq!(owners, names.iter().collect::<Vec<_>>());
        agree(&observer, &path, kind, &referee, &names).await;
        processes.remove(0).kill().await;
        agree(&observer, &path, kind, &referee, &names[1..]).await;
    }
}

/// Waits until the overview shows that exactly those of these hold who are inside.
async fn agree(
    observer: &Session,
    path: &str,
    kind: QueueKind,
    referee: &Referee,
    names: &[String],
) {
    eventually("both agree", async || {
        let inside = referee.report().inside.into_iter();
        // A process that was killed does not come out.
        let inside: BTreeSet<String> = inside.filter(|name| names.contains(name)).collect();
        let queued = queued(observer, path).await;
        let holders = queued.into_iter().filter(|(_, holds)| *holds);
        let holders: BTreeSet<String> = holders.map(|(owner, _)| owner).collect();
        !inside.is_empty() && inside == holders
    })
    .await;
    let overview = Overview::below(observer, path).await.expect("a look");
    assert_eq!(overview.queue(path).map(|it| it.kind()), Some(kind));
    assert!(overview.circles().is_empty());
}

/// The owners of the contenders in order, and whether each holds.
async fn queued(observer: &Session, path: &str) -> Vec<(String, bool)> {
    let overview = Overview::below(observer, "/").await.expect("a look");
    let queue = overview.queue(path).into_iter();
    let contenders = queue.flat_map(|queue| queue.contenders().collect::<Vec<_>>());
    let row = contenders.map(|it| (it.owner.to_string(), it.state == ContenderState::Holds));
    row.collect()
}
