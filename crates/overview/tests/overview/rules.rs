//! Random queues, judged by the rules of the recipes themselves.

use std::collections::{BTreeMap, BTreeSet};

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

/// What the directory of each queue has as data.
type Data = BTreeMap<String, Vec<u8>>;

/// A few sessions in a few queues, each of one flavour.
async fn random(rng: &mut Rng) -> (Overview, Data) {
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
    name_successors(&simulation, rng);
    let overview = look(&viewer(&simulation).await).await;
    let tree = simulation.administrator().tree().into_iter();
    let data = tree.map(|node| (node.path, node.data)).collect();
    (overview, data)
}

/// Names one candidate of each second election as its successor.
fn name_successors(simulation: &Simulation, rng: &mut Rng) {
    let administrator = simulation.administrator();
    for queue in 0..QUEUES {
        let path = format!("/{queue}");
        let mut names = administrator.children(&path);
        names.retain(|name| name.contains("latch-"));
        if let Some(name) = rng.choice(names).filter(|_| rng.bool()) {
            let data = format!("zookeeper-recipes election\nsuccessor {name}\n");
            let named = administrator.set_data(&path, data.as_bytes());
            named.expect("it is there");
        }
    }
}

/// A contender, by its queue and its place.
#[derive(Clone, Debug)]
struct Row<'o> {
    queue: &'o QueueStatus,
    data: &'o [u8],
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

fn rows<'o>(overview: &'o Overview, data: &'o Data) -> Vec<Row<'o>> {
    let queues = overview.queues().iter();
    let rows = queues.flat_map(|queue| {
        queue.contenders().map(move |status| Row {
            queue,
            data: &data[queue.path()],
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

/// What its rule says of a contender between these, and the places that it waits for.
fn state(row: &Row<'_>, before: &[&Row<'_>], behind: &[&Row<'_>]) -> ContenderState {
    let Some(rule) = rule(row) else {
        return ContenderState::Unknown;
    };
    let counted = before.iter();
    let counted = counted.filter(|other| rule.counts(other.contender.label()));
    let (places, counted): (Vec<usize>, Vec<Contender>) = counted
        .map(|other| (other.status.position, other.contender.clone()))
        .unzip();
    let behind = behind.iter().map(|other| other.contender.clone());
    let behind: Vec<Contender> = behind.filter(|it| rule.counts(it.label())).collect();
    let view = QueueView::new(&counted, &row.contender, Some(row.data)).with_behind(&behind);
    match rule.decide(&view) {
        Ok(Verdict::Hold) => ContenderState::Holds,
        Ok(Verdict::Wait { on }) => {
            ContenderState::WaitsFor(on.into_iter().map(|on| places[on]).collect())
        }
        // It wants more permits than there are.
        Err(_) => ContenderState::WaitsFor(Vec::new()),
        // It may lead until it does.
        Ok(Verdict::StepBack) => ContenderState::Unknown,
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
        state(waiter, &before, &[])
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
        let (overview, data) = random(&mut Rng::with_seed(seed)).await;
        let rows = rows(&overview, &data);
        for (index, row) in rows.iter().enumerate() {
            let [before, behind] = [&rows[..index], &rows[index + 1..]]
                .map(|others| others.iter().filter(|it| it.is_in(row)).collect::<Vec<_>>());
            assert_eq!(
                row.status.state,
                state(row, &before, &behind),
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
