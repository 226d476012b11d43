//! Random queues, judged by the rules of the recipes themselves.

use std::collections::BTreeSet;

use fastrand::Rng;
use zookeeper_recipes_core::{Contender, CreateMode, NodePath, QueueView, Rule, Verdict};
use zookeeper_recipes_election::FirstCandidate;
use zookeeper_recipes_lock::FirstInQueue;
use zookeeper_recipes_overview::{
    ContenderState, ContenderStatus, Overview, QueueKind, QueueStatus,
};
use zookeeper_recipes_rwlock::ReadOrWrite;
use zookeeper_recipes_semaphore::WithinPermits;
use zookeeper_recipes_simulation::Simulation;

use crate::support::{CURATOR, GO, KAZOO, client, create, everyone, look, viewer};

const QUEUES: usize = 4;

/// The names of contenders that queue together, and some that nobody mixes on purpose.
const FLAVOURS: [&[&str]; 5] = [
    &["_c_-lock-", "__lock__"],
    &["_c_-__READ__", "_c_-__WRIT__", "__rlock__", "__lock__"],
    &["_c_-permit-1-", "_c_-permit-2-", "_c_-permit-4-"],
    &["_c_-latch-", "_c_-standby-latch-"],
    &[
        "_c_-lock-",
        "__lock__",
        "_c_-__READ__",
        "_c_-permit-2-",
        "_c_-latch-",
        "_c_-lease-",
    ],
];

/// A few sessions in a few queues, each of one flavour.
async fn random(rng: &mut Rng) -> Overview {
    let simulation = Simulation::with(|it| it.trace_limit = 0);
    let mut clients = Vec::new();
    for number in 0..rng.usize(2..5) {
        clients.push(client(&simulation, &format!("client {number}")).await);
    }
    for queue in 0..QUEUES {
        let flavour = FLAVOURS[rng.usize(..FLAVOURS.len())];
        let permits = ["", "1", "2", "3", "3", "5"][rng.usize(..6)];
        create(&simulation, &format!("/{queue}"), permits);
        for _ in 0..rng.usize(0..6) {
            let label = flavour[rng.usize(..flavour.len())];
            let name = match label.strip_prefix("_c_-") {
                Some(label) if rng.bool() => format!("{CURATOR}{label}"),
                Some(label) => format!("{GO}{label}"),
                None => format!("{KAZOO}{label}"),
            };
            let path = format!("/{queue}/{name}");
            if rng.u8(..) < 10 {
                let administrator = simulation.administrator();
                let left = administrator.create(&path, b"", CreateMode::PersistentSequential);
                left.expect("a contender queues");
                continue;
            }
            let client = &clients[rng.usize(..clients.len())];
            let mode = CreateMode::EphemeralSequential;
            let queued = client.create(&path, b"", mode, &everyone());
            queued.await.expect("a contender queues");
        }
    }
    look(&viewer(&simulation).await).await
}

/// A contender, by its queue and its place.
#[derive(Clone, Debug)]
struct Row<'o> {
    queue: &'o QueueStatus,
    status: ContenderStatus,
    contender: Contender,
}

impl Row<'_> {
    fn key(&self) -> (String, usize) {
        (self.queue.path().to_owned(), self.status.position)
    }

    fn is_in(&self, other: &Row<'_>) -> bool {
        self.queue.path() == other.queue.path()
    }
}

fn rows(overview: &Overview) -> Vec<Row<'_>> {
    let queues = overview.queues().iter();
    let rows = queues.flat_map(|queue| {
        queue.contenders().map(move |status| Row {
            queue,
            contender: Contender::parse(&status.name, |_| true).expect("a contender"),
            status,
        })
    });
    rows.collect()
}

fn rule(row: &Row<'_>) -> Option<Box<dyn Rule>> {
    Some(match row.contender.label() {
        "__lock__" if row.queue.kind() == QueueKind::ReadWriteLock => Box::new(ReadOrWrite::Write),
        "lock-" | "__lock__" => Box::new(FirstInQueue),
        "__READ__" | "__rlock__" => Box::new(ReadOrWrite::Read),
        "__WRIT__" => Box::new(ReadOrWrite::Write),
        "latch-" => Box::new(FirstCandidate::default()),
        "standby-latch-" => Box::new(FirstCandidate::standby()),
        label => {
            let weight = label.strip_prefix("permit-")?.strip_suffix('-')?;
            let path = NodePath::new(row.queue.path()).expect("a good path");
            let weight = weight.parse().expect("a number");
            // It is opened by the largest number, and learns the right one.
            let rule = WithinPermits::new(&path, row.queue.permits()?.max(weight), weight);
            Box::new(rule.expect("a good weight"))
        }
    })
}

/// What its rule says of a contender behind these, and the places that it waits for.
fn state(row: &Row<'_>, before: &[&Row<'_>]) -> ContenderState {
    let Some(rule) = rule(row) else {
        return ContenderState::Unknown;
    };
    let counted = before.iter();
    let counted = counted.filter(|other| rule.counts(other.contender.label()));
    let (places, counted): (Vec<usize>, Vec<Contender>) = counted
        .map(|other| (other.status.position, other.contender.clone()))
        .unzip();
    let permits = row.queue.permits().map(|permits| permits.to_string());
    let data = permits.as_ref().map(|permits| permits.as_bytes());
    match rule.decide(&QueueView::new(&counted, &row.contender, data)) {
        Ok(Verdict::Hold) => ContenderState::Holds,
        Ok(Verdict::Wait { on }) => {
            ContenderState::WaitsFor(on.into_iter().map(|on| places[on]).collect())
        }
        // It wants more permits than there are.
        Err(_) => ContenderState::WaitsFor(Vec::new()),
        Ok(Verdict::StepBack) => panic!("nobody is behind"),
    }
}

/// The waits of contenders that cannot go on, each with the session that it waits for.
///
/// By the words of the crate: it is enough to let one contender after the other go on.
fn stuck<'r>(rows: &'r [Row<'r>]) -> Vec<(&'r Row<'r>, &'r Row<'r>)> {
    let waits = |row: &&Row<'_>| matches!(row.status.state, ContenderState::WaitsFor(_));
    let has_session = |row: &&Row<'_>| !row.status.is_persistent();
    let mut waiters: Vec<&Row<'_>> = rows.iter().filter(waits).filter(has_session).collect();
    let blockers = |waiters: &[&Row<'_>], waiter: &Row<'_>| {
        let waits_elsewhere = |row: &Row<'_>| {
            let own = |it: &&&Row<'_>| it.status.session_id == row.status.session_id;
            waiters.iter().filter(own).any(|it| !it.is_in(row))
        };
        let stays = |row: &&Row<'_>| {
            let is_waiter = waiters.iter().any(|it| it.key() == row.key());
            is_waiter || row.status.is_persistent() || !waits(row) && waits_elsewhere(row)
        };
        let before = rows.iter().filter(|it| {
            it.is_in(waiter)
                && it.status.position < waiter.status.position
                && it.status.session_id != waiter.status.session_id
        });
        let before: Vec<&Row<'_>> = before.filter(stays).collect();
        state(waiter, &before)
    };
    let can_go_on = |waiters: &[&Row<'_>], waiter: &Row<'_>| {
        !matches!(blockers(waiters, waiter), ContenderState::WaitsFor(_))
    };
    while let Some(free) = (0..waiters.len()).find(|it| can_go_on(&waiters, waiters[*it])) {
        waiters.remove(free);
    }
    let mut edges = Vec::new();
    for waiter in &waiters {
        let ContenderState::WaitsFor(on) = blockers(&waiters, waiter) else {
            continue;
        };
        let on = |it: &&Row<'_>| it.is_in(waiter) && on.contains(&it.status.position);
        let blockers = rows.iter().filter(on).filter(has_session);
        edges.extend(blockers.map(|blocker| (*waiter, blocker)));
    }
    edges
}

/// The edges that are left once those are removed that lead on to none.
fn with_circles<'r>(mut edges: Vec<(&'r Row<'r>, &'r Row<'r>)>) -> BTreeSet<[(String, usize); 2]> {
    loop {
        let leads_on = |(_, blocker): &(&Row<'_>, &Row<'_>)| {
            edges.iter().any(|(next, _)| {
                next.status.session_id == blocker.status.session_id
                    && (!next.is_in(blocker) || next.key() == blocker.key())
            })
        };
        let left: Vec<_> = edges.iter().copied().filter(leads_on).collect();
        if left.len() == edges.len() {
            let keys = left.into_iter();
            return keys
                .map(|(waiter, blocker)| [waiter.key(), blocker.key()])
                .collect();
        }
        edges = left;
    }
}

#[tokio::test(start_paused = true)]
async fn states_and_circles_are_those_of_the_rules() {
    let (mut waits, mut circles) = (0, 0);
    for seed in 0..400 {
        let overview = random(&mut Rng::with_seed(seed)).await;
        let rows = rows(&overview);
        for (index, row) in rows.iter().enumerate() {
            let before: Vec<_> = rows[..index].iter().filter(|it| it.is_in(row)).collect();
            assert_eq!(
                row.status.state,
                state(row, &before),
                "seed {seed}: {row:?}"
            );
            waits += usize::from(!before.is_empty());
        }
        let expected = with_circles(stuck(&rows));
        let shown = overview.circles();
        assert_eq!(
            shown.is_empty(),
            expected.is_empty(),
            "seed {seed}: {overview:?}"
        );
        for wait in shown.iter().flat_map(|circle| &circle.waits) {
            let places = [&wait.waiter, &wait.blocker].map(|it| (wait.path.clone(), it.position));
            assert!(expected.contains(&places), "seed {seed}: {wait:?}");
        }
        circles += shown.len();
    }
    println!("{waits} waits, {circles} circles");
    assert!(
        waits > 1000 && circles > 100,
        "{waits} waits, {circles} circles"
    );
}
