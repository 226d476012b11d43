//! What a look costs.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use zookeeper_recipes_core::CreateMode;
use zookeeper_recipes_core::NodePath;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_simulation::{RequestKind, Simulation};
use zookeeper_recipes_suite::{QUIET, TestServer, proxy, session};

use crate::support::{CURATOR, VIEWER, client, create, everyone, look, queue, viewer};

/// Creates so many locks, each with a holder and a waiter.
async fn many_queues(client: &ServerSession, number: usize) {
    let create = |path: &str, mode| client.create(path, b"", mode, &everyone());
    for thousand in 0..number.div_ceil(1000) {
        let directory = format!("/{thousand}");
        let mut creates = vec![create(&directory, CreateMode::Persistent)];
        for lock in 0..number.min(1000) {
            let path = format!("{directory}/{lock}");
            creates.push(create(&path, CreateMode::Persistent));
            let contender = format!("{path}/{CURATOR}lock-");
            let queue = || create(&contender, CreateMode::EphemeralSequential);
            creates.extend([queue(), queue()]);
        }
        let created = join_all(creates).await;
        assert!(created.iter().all(Result::is_ok));
    }
}

/// `OVERVIEW_QUEUES` adds a look at so many queues: 334000 of them are more than a million znodes.
#[tokio::test(start_paused = true)]
async fn look_costs_a_list_for_each_queue_and_a_read_for_many_contenders() {
    let more = std::env::var("OVERVIEW_QUEUES").ok();
    let more = more.map(|it| it.parse().expect("OVERVIEW_QUEUES is a number"));
    for number in [1_000, 10_000].into_iter().chain(more) {
        let simulation = Simulation::with(|it| it.trace_limit = 0);
        let one = client(&simulation, "one").await;
        many_queues(&one, number).await;
        let viewer = viewer(&simulation).await;
        let sent = |kind| simulation.counters().requests(kind);
        let kinds = [RequestKind::List, RequestKind::GetEach];
        let before = kinds.map(sent);
        let all = simulation.counters().requests_of(VIEWER);
        let began = std::time::Instant::now();
        let overview = look(&viewer).await;
        println!("{number} queues: {:.1?}", began.elapsed());
        assert_eq!(overview.queues().len(), number);
        assert!(
            overview
                .queues()
                .iter()
                .all(|it| it.contenders().count() == 2)
        );
        let [lists, reads] = [0, 1].map(|it| sent(kinds[it]) - before[it]);
        let directories = 1 + number.div_ceil(1000);
        assert_eq!(lists as usize, directories + number);
        // Each batch has fewer than 128 znodes, of three for each queue: also room for the data.
        assert_eq!(reads as usize, number.div_ceil(42));
        let all = simulation.counters().requests_of(VIEWER) - all;
        println!("{number} queues: {all} requests");
        // The probes of the session, and the sync of the look.
        assert!(all - lists - reads < 20 + number as u64 / 1_000, "{all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_a_look_are_few_for_each_queue() {
    const NUMBER: usize = 1_000;
    let server = TestServer::embedded().await;
    let one = session(&server, QUIET).await;
    let path = NodePath::new("/any").expect("a good path");
    let one = one.server(&path).await.expect("it is open");
    many_queues(&one, NUMBER).await;
    let proxy = proxy(&server).await;
    let viewer = session(&proxy, QUIET).await;
    let before = proxy.counters();
    let overview = look(&viewer).await;
    let sent = proxy.counters().since(&before);
    assert_eq!(overview.queues().len(), NUMBER);
    let (up, down) = (sent.bytes_to_server(), sent.bytes_to_client());
    println!(
        "{NUMBER} queues: {} requests, {up} bytes up, {down} down",
        sent.requests()
    );
    // A list and the reads of two contenders, whose names have 55 bytes.
    assert!(up < 300 * NUMBER as u64, "{up}");
    assert!(down < 600 * NUMBER as u64, "{down}");
}

/// Sums over all contenders before each one would take seconds.
#[tokio::test(start_paused = true)]
async fn ten_thousand_contenders_are_judged_in_one_pass() {
    for (data, labels) in [
        ("5000", ["permit-1-", "permit-1-"]),
        ("", ["__READ__", "__rlock__"]),
        ("", ["lock-", "latch-"]),
    ] {
        let simulation = Simulation::with(|it| it.trace_limit = 0);
        let one = client(&simulation, "one").await;
        create(&simulation, "/queue", data);
        for place in 0..10_000 {
            let label = labels[place % 2];
            queue(&one, &format!("/queue/{CURATOR}{label}"), "").await;
        }
        let viewer = viewer(&simulation).await;
        let overview = look(&viewer).await;
        let judge = || {
            let began = Instant::now();
            let [session] = &overview.sessions()[..] else {
                panic!("{:?}", overview.sessions())
            };
            let lock = &overview.queues()[0];
            assert_eq!(lock.holders(), Some(session.holds));
            assert_eq!(session.holds + session.waits, 10_000);
            assert!(!lock.marks().is_empty());
            began.elapsed()
        };
        // The machine may be busy: one quick pass of many shows what a pass takes.
        let is_quick = (0..20).any(|_| judge() < Duration::from_secs(1));
        assert!(is_quick, "{labels:?}: each pass takes more than a second");
    }
}

/// So many contenders are searched on another thread.
#[tokio::test(start_paused = true)]
async fn deadlocks_among_many_contenders_are_found() {
    const SESSIONS: usize = 24;
    const NUMBER: usize = 6_000;
    let simulation = Simulation::with(|it| it.trace_limit = 0);
    let names: Vec<String> = (0..SESSIONS).map(|it| format!("client {it}")).collect();
    let clients = join_all(names.iter().map(|name| client(&simulation, name))).await;
    for (path, first) in [("/a", 0), ("/b", SESSIONS / 2)] {
        create(&simulation, path, "");
        let prefix = format!("{path}/{CURATOR}lock-");
        for place in first..first + NUMBER {
            queue(&clients[place % SESSIONS], &prefix, "").await;
        }
    }
    let viewer = viewer(&simulation).await;
    let began = Instant::now();
    let overview = look(&viewer).await;
    println!("{:?}", began.elapsed());
    let first = &overview.circles()[0];
    let sessions: Vec<_> = first.waits.iter().map(|it| it.waiter.session_id).collect();
    assert!(sessions.contains(&clients[0].id), "{sessions:?}");
}
