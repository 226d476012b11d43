//! Overviews that are kept up to date.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Acl, AuthId, ConnectOptions, CreateMode, Permission, Session};
use zookeeper_recipes_overview::{Error, LiveOverview, Overview, QueueKind};

use zookeeper_recipes_simulation::{Fault, FaultKind, Opcode, RequestKind, Simulation};
use zookeeper_recipes_suite::{LOCK, eventually, in_time, simulated_session};

use crate::support::{
    CURATOR, GO, KAZOO, VIEWER, client, create, everyone, look, queue, rows, viewer,
};

const PAUSE: Duration = Duration::from_secs(1);

type Live = watch::Receiver<LiveOverview>;

async fn live(viewer: &Session) -> Live {
    Overview::watch(viewer, "/", PAUSE).await.expect("a look")
}

/// What an overview shows, as text.
fn shown(overview: &Overview) -> Vec<String> {
    let queues = overview.queues().iter().map(|queue| {
        let (kind, holders, marks) = (queue.kind(), queue.holders(), queue.marks());
        let (path, foreign, job) = (queue.path(), queue.foreign(), queue.job());
        let rows: Vec<_> = queue.contenders().collect();
        format!("{path}: {kind} {holders:?} {marks:?} {foreign:?} {job:?} {rows:?}")
    });
    let circles = overview.circles().iter().map(|it| format!("{it:?}"));
    let unread = overview.unread().iter().map(|it| format!("{it:?}"));
    let exists = [format!("exists: {}", overview.exists())];
    exists
        .into_iter()
        .chain(queues)
        .chain(circles)
        .chain(unread)
        .collect()
}

/// Waits until the next two looks are over.
async fn settled(live: &mut Live) -> Arc<Overview> {
    for _ in 0..2 {
        live.borrow_and_update();
        in_time("a look ends", live.changed()).await.expect("open");
    }
    live.borrow().overview.clone()
}

async fn until_shown(live: &mut Live, what: impl FnMut(&LiveOverview) -> bool) {
    let shown = in_time("it is shown", live.wait_for(what)).await;
    drop(shown.expect("open"));
}

#[tokio::test(start_paused = true)]
async fn changes_are_shown_after_each_pause_also_over_the_end_of_the_session() {
    for unknown in [vec![], vec![Opcode::AddWatch]] {
        let is_watched = unknown.is_empty();
        let simulation = Simulation::with(|it| it.unknown = unknown);
        let viewer = viewer(&simulation).await;
        let mut live = live(&viewer).await;
        assert!(live.borrow().overview.queues().is_empty());
        assert_eq!(live.borrow().is_watched, is_watched);
        let session = simulated_session(&simulation, "holder").await;
        let hold = LOCK.at(&session, "/lock", 1).acquire().await.expect("free");
        until_shown(&mut live, |it| it.overview.queues().len() == 1).await;
        let expired = viewer.id().expect("it is open");
        simulation.administrator().expire(expired);
        hold.release().await.expect("it is held");
        until_shown(&mut live, |it| it.overview.queues().is_empty()).await;
        assert_ne!(viewer.id(), Some(expired));
        let (failures, looked_at) = (live.borrow().failures, live.borrow().looked_at);
        assert_eq!(failures, 0);
        simulation.process(VIEWER).partition(PAUSE * 3);
        sleep(PAUSE * 2).await;
        let found = live.borrow().clone();
        assert!(found.looked_at - looked_at < PAUSE, "no server answers");
        assert!(found.age() > PAUSE);
    }
}

#[tokio::test(start_paused = true)]
async fn looks_end_with_the_session_and_with_the_last_receiver() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let refused = Overview::watch(&viewer, "/", Duration::ZERO).await;
    assert!(matches!(refused, Err(Error::InvalidInput(_))));
    let probes = requests_at_rest(&simulation).await;
    drop(live(&viewer).await);
    sleep(PAUSE * 2).await;
    let requests = requests_at_rest(&simulation).await;
    assert!(requests <= probes + 1, "nobody looks any more: {requests}");
    assert_eq!(simulation.administrator().watches().len(), 0);
    let mut live = live(&viewer).await;
    // The task has a clone of the session.
    viewer.close().await;
    let over = |it: &LiveOverview| matches!(it.error, Some(Error::NoSession { .. }));
    until_shown(&mut live, over).await;
    let ended = in_time("the sender is dropped", live.changed()).await;
    assert!(ended.is_err());
}

/// A server that has too much to do refuses the watch.
#[tokio::test(start_paused = true)]
async fn tree_is_watched_again_soon_after_a_reconnect_at_which_the_watch_was_refused() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let mut live = live(&viewer).await;
    let refused = Fault::new(FaultKind::Throttled).of_process(VIEWER);
    let refused = refused.on(RequestKind::Other);
    simulation.faults().inject(refused);
    simulation.process(VIEWER).disconnect();
    settled(&mut live).await;
    assert_eq!(simulation.faults().waiting(), 0);
    settled(&mut live).await;
    assert!(live.borrow().is_watched);
}

/// The server seems not to know the watch. Without it, each look reads all.
#[tokio::test(start_paused = true)]
async fn tree_is_watched_some_time_after_the_connection_broke_at_the_watch() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let lost = Fault::new(FaultKind::RequestLost).of_process(VIEWER);
    simulation.faults().inject(lost.on(RequestKind::Other));
    let mut live = live(&viewer).await;
    assert_eq!(simulation.faults().waiting(), 0);
    assert!(!live.borrow().is_watched);
    sleep(Duration::from_secs(1_300)).await;
    settled(&mut live).await;
    assert!(live.borrow().is_watched);
}

/// As ClickHouse Keeper does. The watch costs one session.
#[tokio::test(start_paused = true)]
async fn server_that_closes_at_the_watch_and_forgets_the_session_is_read_at_the_interval() {
    let simulation = Simulation::with(|it| {
        it.unknown = vec![Opcode::AddWatch];
        it.forgets_sessions = true;
    });
    let viewer = viewer(&simulation).await;
    let lost = viewer.id();
    let mut live = live(&viewer).await;
    let kept = viewer.id();
    assert_ne!(kept, lost);
    sleep(Duration::from_secs(1_300)).await;
    settled(&mut live).await;
    assert_eq!((viewer.id(), live.borrow().is_watched), (kept, false));
}

/// The requests of the viewer in ten pauses, in which nothing changes.
async fn requests_at_rest(simulation: &Simulation) -> u64 {
    let before = simulation.counters().requests_of(VIEWER);
    sleep(PAUSE * 10).await;
    simulation.counters().requests_of(VIEWER) - before
}

/// Changes a small tree in any way that clients can.
struct Chaos {
    simulation: Simulation,
    clients: Vec<Arc<ServerSession>>,
    rng: Rng,
}

impl Chaos {
    const DIRECTORIES: [&str; 9] = [
        "/a",
        "/a/b",
        "/a/locks",
        "/a/locks/0",
        "/a/plan",
        "/a/owned",
        "/a/partitions",
        "/a/orders",
        "/заказ",
    ];

    async fn new(seed: u64) -> Chaos {
        let simulation = Simulation::with(|it| {
            it.seed = seed;
            it.trace_limit = 0;
        });
        let mut clients = Vec::new();
        for number in 0..3 {
            clients.push(client(&simulation, &format!("client {number}")).await);
        }
        Chaos {
            simulation,
            clients,
            rng: Rng::with_seed(seed),
        }
    }

    fn directory(&mut self) -> &'static str {
        Chaos::DIRECTORIES[self.rng.usize(..Chaos::DIRECTORIES.len())]
    }

    async fn step(&mut self) {
        let administrator = self.simulation.administrator();
        let directory = self.directory();
        // Each may be refused: the directory may be missing, or not be empty.
        match self.rng.u8(0..100) {
            0..15 => {
                let data = ["", "1", "2"][self.rng.usize(..3)];
                let _ = administrator.create(directory, data.as_bytes(), CreateMode::Persistent);
            }
            15..25 => drop(administrator.set_data(directory, [b"1", b"2"][self.rng.usize(..2)])),
            25..35 => drop(administrator.delete(directory)),
            35..65 => self.queue(directory).await,
            65..90 => {
                let names = administrator.children(directory);
                if let Some(name) = self.rng.choice(names) {
                    let path = format!("{directory}/{name}");
                    match self.rng.bool() {
                        true => drop(administrator.delete(&path)),
                        false => drop(administrator.set_data(&path, b"other")),
                    }
                }
            }
            90..94 => self.simulation.process(VIEWER).disconnect(),
            94..97 => self.delay_a_read(),
            _ => {
                let number = self.rng.usize(..self.clients.len());
                administrator.expire(self.clients[number].id);
                self.clients[number] = client(&self.simulation, &format!("client {number}")).await;
            }
        }
    }

    /// Lets more happen between a change and its read.
    fn delay_a_read(&mut self) {
        let by = Duration::from_millis(self.rng.u64(100..1_000));
        let late = Fault::new(FaultKind::RequestLate(by)).of_process(VIEWER);
        self.simulation
            .faults()
            .inject(late.on(RequestKind::GetEach));
    }

    async fn queue(&mut self, directory: &str) {
        let labels = [
            "lock-",
            "__WRIT__",
            "__READ__",
            "permit-1-",
            "permit-2-",
            "latch-",
        ];
        let label = labels[self.rng.usize(..labels.len())];
        let (name, mode) = match self.rng.u8(0..10) {
            0..6 => (format!("{CURATOR}{label}"), CreateMode::EphemeralSequential),
            6 => (format!("{GO}{label}"), CreateMode::EphemeralSequential),
            7 => (KAZOO.to_owned(), CreateMode::Ephemeral),
            8 => ("member".to_owned(), CreateMode::Ephemeral),
            _ => (
                format!("{CURATOR}{label}"),
                CreateMode::PersistentSequential,
            ),
        };
        let client = &self.clients[self.rng.usize(..self.clients.len())];
        let path = format!("{directory}/{name}");
        let _ = client.create(&path, b"owner", mode, &everyone()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_up_to_date_is_what_a_look_shows() {
    for seed in 0..100 {
        let mut chaos = Chaos::new(seed).await;
        for _ in 0..20 {
            chaos.step().await;
        }
        let viewer = viewer(&chaos.simulation).await;
        let other = simulated_session(&chaos.simulation, "other").await;
        let mut live = live(&viewer).await;
        for _ in 0..6 {
            for _ in 0..chaos.rng.usize(1..12) {
                chaos.step().await;
                sleep(Duration::from_millis(chaos.rng.u64(0..300))).await;
            }
            // A late read ends a look later, and so does the one of a member without contenders.
            settled(&mut live).await;
            let kept = settled(&mut live).await;
            assert_eq!(shown(&kept), shown(&look(&other).await), "seed {seed}");
        }
        assert!(live.borrow().is_watched);
    }
}

/// Makes changes while a read is under way, of what has changed before.
async fn during_a_read(simulation: &Simulation, changes: impl Future<Output = ()>) {
    let late = Fault::new(FaultKind::RequestLate(PAUSE / 2)).of_process(VIEWER);
    let faults = simulation.faults();
    faults.inject(late.on(RequestKind::GetEach));
    eventually("a read is under way", async || faults.waiting() == 0).await;
    changes.await;
}

/// The place of a writer that has left is read again, because a reader may have got it.
#[tokio::test(start_paused = true)]
async fn queue_that_is_deleted_and_created_while_it_is_read_again_is_shown() {
    let simulation = Simulation::default();
    let (viewer, one) = (viewer(&simulation).await, client(&simulation, "one").await);
    create(&simulation, "/rw", "");
    let writer = queue(&one, &format!("/rw/{CURATOR}__WRIT__"), "one").await;
    let mut live = live(&viewer).await;
    one.delete(&writer).await.expect("it is there");
    during_a_read(&simulation, async {
        one.delete("/rw").await.expect("it is empty");
        create(&simulation, "/rw", "");
        queue(&one, &format!("/rw/{CURATOR}__READ__"), "one").await;
    })
    .await;
    let kept = settled(&mut live).await;
    assert_eq!(kept.queues().len(), 1, "{kept:?}");
    assert_eq!(rows(&kept.queues()[0]), ["one read holds"]);
}

#[tokio::test(start_paused = true)]
async fn new_queue_is_shown_below_one_that_is_read_again() {
    let simulation = Simulation::default();
    let (viewer, one) = (viewer(&simulation).await, client(&simulation, "one").await);
    create(&simulation, "/rw", "");
    let writer = queue(&one, &format!("/rw/{CURATOR}__WRIT__"), "one").await;
    let mut live = live(&viewer).await;
    one.delete(&writer).await.expect("it is there");
    create(&simulation, "/rw/below", "");
    queue(&one, &format!("/rw/below/{CURATOR}lock-"), "one").await;
    during_a_read(&simulation, async {
        queue(&one, &format!("/rw/{CURATOR}__READ__"), "one").await;
    })
    .await;
    let kept = settled(&mut live).await;
    let shown: Vec<_> = kept.queues().iter().map(|it| rows(it)).collect();
    assert_eq!(shown, [["one read holds"], ["one lock holds"]]);
}

/// Its data says so, which was not read beside the other member.
#[tokio::test(start_paused = true)]
async fn group_whose_other_member_leaves_is_shown_as_a_semaphore_of_kazoo() {
    let simulation = Simulation::default();
    let (viewer, one) = (viewer(&simulation).await, client(&simulation, "one").await);
    create(&simulation, "/semaphore", "2");
    for name in [KAZOO, "member"] {
        let (path, mode) = (format!("/semaphore/{name}"), CreateMode::Ephemeral);
        let created = one.create(&path, b"one", mode, &everyone()).await;
        created.expect("it is new");
    }
    let mut live = live(&viewer).await;
    let kind = |it: &Overview| it.queues()[0].kind();
    assert_eq!(kind(&live.borrow().overview), QueueKind::Group);
    one.delete("/semaphore/member").await.expect("it is there");
    let kept = settled(&mut live).await;
    assert_eq!(kind(&kept), QueueKind::KazooSemaphore);
}

/// What is below an assignment is of another kind then, and all kinds are found anew.
#[tokio::test(start_paused = true)]
async fn members_are_shown_whose_last_contender_leaves_as_an_assignment_ends() {
    let simulation = Simulation::default();
    let (viewer, one) = (viewer(&simulation).await, client(&simulation, "one").await);
    create(&simulation, "/a", "");
    create(&simulation, "/b", "");
    for name in ["plan", "owned", "locks", "partitions", "orders"] {
        create(&simulation, &format!("/b/{name}"), "");
    }
    let member = one.create("/a/member", b"one", CreateMode::Ephemeral, &everyone());
    member.await.expect("it is new");
    let contender = queue(&one, &format!("/a/{CURATOR}lock-"), "one").await;
    let mut live = live(&viewer).await;
    one.delete(&contender).await.expect("it is there");
    let administrator = simulation.administrator();
    administrator.delete("/b/plan").expect("it is there");
    settled(&mut live).await;
    let kept = settled(&mut live).await;
    let kinds: Vec<_> = kept.queues().iter().map(|it| it.kind()).collect();
    assert_eq!(kinds, [QueueKind::Group]);
}

/// Nothing is read below a directory as long as the session may not.
#[tokio::test(start_paused = true)]
async fn queue_is_shown_in_a_directory_that_was_created_anew_to_be_readable() {
    let simulation = Simulation::default();
    let (viewer, one) = (viewer(&simulation).await, client(&simulation, "one").await);
    create(&simulation, "/a", "");
    let administrator = simulation.administrator();
    let nobody = [Acl::new(Permission::CREATE, AuthId::anyone())];
    administrator.set_acl("/a", &nobody).expect("it is there");
    let mut live = live(&viewer).await;
    assert_eq!(live.borrow().overview.unread().len(), 1);
    administrator.delete("/a").expect("it is there");
    create(&simulation, "/a", "");
    queue(&one, &format!("/a/{CURATOR}lock-"), "one").await;
    let kept = settled(&mut live).await;
    let shown: Vec<_> = kept.queues().iter().map(|it| rows(it)).collect();
    assert_eq!(shown, [["one lock holds"]]);
    assert!(kept.unread().is_empty());
}

/// A lock that is handed on by its clients.
async fn hand_on(client: &ServerSession, path: &str, holder: &mut String) {
    let next = queue(client, &format!("{path}/{CURATOR}lock-"), "owner").await;
    client.delete(holder).await.expect("it is there");
    *holder = next;
}

#[tokio::test(start_paused = true)]
async fn handoffs_cost_a_read_of_many_holders_and_no_list() {
    let simulation = Simulation::with(|it| it.trace_limit = 0);
    let one = client(&simulation, "one").await;
    let mut holders = Vec::new();
    for number in 0..200 {
        let path = format!("/{number}");
        create(&simulation, &path, "");
        let holder = queue(&one, &format!("{path}/{CURATOR}lock-"), "owner").await;
        holders.push((path, holder));
    }
    let viewer = viewer(&simulation).await;
    let probes = requests_at_rest(&simulation).await;
    let mut live = live(&viewer).await;
    settled(&mut live).await;
    let requests = requests_at_rest(&simulation).await;
    assert!(
        requests <= probes + 11,
        "a sync for each pause: {requests} and {probes}"
    );
    let kinds = [RequestKind::List, RequestKind::GetEach];
    let sent = || kinds.map(|kind| simulation.counters().requests(kind));
    let before = sent();
    // In one pause, each holder is another one many times over.
    for _ in 0..5 {
        let handoffs = holders
            .iter_mut()
            .map(|(path, holder)| hand_on(&one, path, holder));
        join_all(handoffs).await;
    }
    let kept = settled(&mut live).await;
    let [lists, reads] = [0, 1].map(|it| sent()[it] - before[it]);
    println!("1,000 handoffs: {lists} lists, {reads} reads");
    assert_eq!(lists, 0);
    assert!(reads <= 8, "{reads}");
    for (queue, (path, holder)) in kept.queues().iter().zip({
        holders.sort();
        &holders
    }) {
        let found = queue.contenders().next().expect("a holder");
        assert_eq!(format!("{path}/{}", found.name), *holder);
    }
}

#[tokio::test(start_paused = true)]
async fn burst_of_changes_is_shown_by_few_requests() {
    const NUMBER: usize = 10_000;
    let simulation = Simulation::with(|it| it.trace_limit = 0);
    let viewer = viewer(&simulation).await;
    let one = client(&simulation, "one").await;
    create(&simulation, "/lock", "");
    let mut live = live(&viewer).await;
    let before = simulation.counters().requests_of(VIEWER);
    let prefix = format!("/lock/{CURATOR}lock-");
    let queued = (0..NUMBER).map(|_| queue(&one, &prefix, "owner"));
    join_all(queued.collect::<Vec<_>>()).await;
    until_shown(&mut live, |it| {
        let queues = it.overview.queues();
        queues.first().is_some_and(|queue| queue.len() == NUMBER)
    })
    .await;
    let requests = simulation.counters().requests_of(VIEWER) - before;
    println!("{NUMBER} contenders: {requests} requests");
    assert!(requests < 3 * NUMBER as u64 / 128, "{requests}");
    simulation.administrator().expire(one.id);
    until_shown(&mut live, |it| it.overview.queues().is_empty()).await;
}

/// The death of a holder is the end of its session.
#[tokio::test(start_paused = true)]
async fn end_of_a_holder_is_shown_within_the_pause() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let [one, other] = ["one", "other"].map(|name| client(&simulation, name));
    let (one, other) = (one.await, other.await);
    create(&simulation, "/lock", "");
    queue(&one, &format!("/lock/{CURATOR}lock-"), "one").await;
    queue(&other, &format!("/lock/{CURATOR}lock-"), "other").await;
    let mut live = live(&viewer).await;
    simulation.administrator().expire(one.id);
    let began = simulation.now();
    until_shown(&mut live, |it| {
        rows(&it.overview.queues()[0]) == ["other lock holds"]
    })
    .await;
    assert!(simulation.now() - began < PAUSE + PAUSE / 4);
}

/// A server reports no change of the rights to a znode.
#[tokio::test(start_paused = true)]
async fn rights_that_change_are_shown_by_the_next_whole_look() {
    let simulation = Simulation::default();
    let viewer = viewer(&simulation).await;
    let one = client(&simulation, "one").await;
    create(&simulation, "/lock", "");
    queue(&one, &format!("/lock/{CURATOR}lock-"), "one").await;
    let mut live = live(&viewer).await;
    assert_eq!(live.borrow().overview.queues().len(), 1);
    let unread = [Acl::new(Permission::CREATE, AuthId::anyone())];
    let administrator = simulation.administrator();
    let before = administrator
        .set_acl("/lock", &unread)
        .expect("it is there");
    queue(&one, &format!("/lock/{CURATOR}lock-"), "unseen").await;
    sleep(Duration::from_secs(601)).await;
    let kept = settled(&mut live).await;
    assert!(kept.queues().is_empty(), "{:?}", kept.queues());
    assert_eq!(kept.unread().len(), 1);
    administrator
        .set_acl("/lock", &before)
        .expect("it is there");
    sleep(Duration::from_secs(601)).await;
    let kept = settled(&mut live).await;
    assert_eq!((kept.queues().len(), kept.unread().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn changes_below_a_chroot_and_beside_the_path_are_told_apart() {
    let simulation = Simulation::default();
    for path in [
        "/app",
        "/app/заказ",
        "/app/заказ/ü ☃",
        "/app/заказы",
        "/outside",
    ] {
        create(&simulation, path, "");
    }
    let process = simulation.process(VIEWER).with_chroot("/app");
    let session = Session::open(process.ensemble(), ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    let mut live = Overview::watch(&session, "/заказ", PAUSE)
        .await
        .expect("a look");
    let one = client(&simulation, "one").await;
    for directory in ["/app/заказ/ü ☃", "/app/заказы", "/outside", "/app/заказ"]
    {
        queue(&one, &format!("{directory}/{CURATOR}lock-"), "ключ").await;
    }
    let kept = settled(&mut live).await;
    let paths: Vec<_> = kept.queues().iter().map(|it| it.path()).collect();
    assert_eq!(paths, ["/заказ", "/заказ/ü ☃"]);
    assert!(live.borrow().is_watched);
}
