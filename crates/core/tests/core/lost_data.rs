//! Servers that come back without their data, on a simulated ensemble.

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(4);
const TICK: Duration = Duration::from_millis(500);
const SOON: Duration = Duration::from_secs(1);

async fn another_session(session: &Session) -> Duration {
    let (began, before) = (Instant::now(), session.id());
    while session.id().is_none() || session.id() == before {
        sleep(Duration::from_millis(10)).await;
        assert!(began.elapsed() < TIMEOUT * 20, "{:?}", session.state());
    }
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn session_continues_in_a_new_one_if_the_servers_have_lost_their_data() {
    for seed in 0..20 {
        let servers = [1, 3][seed as usize % 2];
        let simulation = simulation!(seed, servers, session_timeout: TIMEOUT, tick: TICK);
        let session = simulated_session(&simulation, "one").await;
        for _ in 0..10 {
            let hold = lock(&session, "/lock").acquire().await.expect("it is free");
            hold.release().await.expect("it is held");
        }
        let hold = lock(&session, "/lock").acquire().await.expect("it is free");
        simulation.faults().lose_data(SOON);
        let took = another_session(&session).await;
        assert!(took <= 3 * TIMEOUT + SOON, "seed {seed}: {took:?}");
        assert_eq!(hold.state(), HoldState::Lost(LossReason::LeaseElapsed));
        let next = lock(&session, "/lock").acquire().await.expect("it is free");
        assert!(next.is_held());
    }
}

/// The servers have the session again, and lose no znode of it.
#[tokio::test(start_paused = true)]
async fn session_is_kept_for_any_length_of_an_outage_without_a_quorum() {
    let simulation = simulation!(servers: 3, session_timeout: TIMEOUT, tick: TICK);
    let session = simulated_session(&simulation, "one").await;
    let hold = lock(&session, "/lock").acquire().await.expect("it is free");
    let id = session.id();
    simulation.faults().elect(1, 60 * TIMEOUT);
    sleep(59 * TIMEOUT).await;
    assert_eq!(session.id(), id);
    assert_eq!(hold.state(), HoldState::Lost(LossReason::LeaseElapsed));
    sleep(2 * TIMEOUT).await;
    assert!(session.is_connected());
    assert_eq!(session.id(), id);
}

/// Two processes, whose sessions a backup has.
struct Processes {
    simulation: Simulation,
    one: Session,
    other: Session,
}

impl Processes {
    async fn new(seed: u64) -> Processes {
        let simulation = simulation!(
            seed,
            servers: [1, 3][seed as usize % 2],
            session_timeout: TIMEOUT,
            tick: TICK,
        );
        let one = simulated_session(&simulation, "one").await;
        let other = simulated_session(&simulation, "other").await;
        let hold = lock(&other, "/lock").acquire().await.expect("it is free");
        hold.release().await.expect("it is held");
        Processes {
            simulation,
            one,
            other,
        }
    }

    /// Has the servers lose what `one` creates, while both sessions continue.
    async fn lose<T>(&self, create: impl AsyncFnOnce() -> T) -> T {
        let ids = [self.one.id(), self.other.id()];
        let backup = self.simulation.faults().back_up();
        let created = create().await;
        self.simulation.faults().restore(&backup, SOON / 2);
        sleep(SOON).await;
        admit_clients(&self.simulation);
        for session in [&self.one, &self.other] {
            until(|| session.is_connected()).await;
        }
        assert_eq!([self.one.id(), self.other.id()], ids);
        created
    }
}

/// Commits as many transactions as the clients have seen: the servers admit no client before.
fn admit_clients(simulation: &Simulation) {
    for number in 0..50 {
        make(simulation, &format!("/later-{number}"));
    }
}

async fn single(session: &Session) -> NamedZnode {
    let id = session.id().expect("open");
    let path = NodePath::new(SINGLE).expect("a good path");
    let options = QueueOptions::new().directories(Directories::Persistent);
    let is_own = move |_: &[u8], stat: &Stat| stat.ephemeral_owner == id.0;
    let znode = NamedZnode::begin(session, &path, &options, is_own);
    znode.await.expect("its session is open")
}

async fn hold_single(session: &Session) -> Hold {
    let mut znode = single(session).await;
    let stat = znode
        .create(b"")
        .await
        .expect("an answer")
        .expect("it is free");
    let hold = znode.hold("single", &stat).await;
    hold.expect("an answer").expect("the lease lasts")
}

#[tokio::test(start_paused = true)]
async fn attempt_that_is_polled_late_does_not_hold_by_a_contender_that_was_lost() {
    for seed in 0..20 {
        let processes = Processes::new(seed).await;
        let queue = lock(&processes.one, "/lock");
        let enters = async || {
            let late = begun(queue.acquire());
            sleep(SOON).await;
            [late]
        };
        let [late] = processes.lose(enters).await;
        let next = hold(&lock(&processes.other, "/lock")).await;
        let late = late.await;
        assert_fails!(late, Error::ContenderDeleted);
        assert!(next.is_held());
    }
}

/// A server that comes back from a backup gives out the number that the contender expects.
#[tokio::test(start_paused = true)]
async fn contender_that_was_alone_before_the_servers_lost_data_waits_for_another() {
    for seed in 0..20 {
        let processes = Processes::new(seed).await;
        let queue = lock(&processes.one, "/lock");
        // More turns than transactions until the servers admit clients.
        for _ in 0..100 {
            take_turn(&queue).await;
        }
        processes.lose(async || take_turn(&queue).await).await;
        let next = hold(&lock(&processes.other, "/lock")).await;
        // Until the lease is renewed: a contender without one lists the queue.
        sleep(SOON).await;
        let late = spawned(&queue);
        while queue.contenders().await.expect("an answer").len() < 2 {
            sleep(SOON / 100).await;
        }
        sleep(SOON).await;
        assert!(!late.is_finished(), "seed {seed}: it holds, too");
        assert!(next.is_held(), "seed {seed}: {:?}", next.state());
        next.release().await.expect("it is held");
        let late = late.await.expect("no panic").expect("it is free");
        assert!(late.is_held());
    }
}

#[tokio::test(start_paused = true)]
async fn single_znode_whose_create_is_polled_late_does_not_hold_if_it_was_lost() {
    for seed in 0..20 {
        let processes = Processes::new(seed).await;
        let mut znode = single(&processes.one).await;
        let mut own = Some(&mut znode);
        let enters = async || {
            let late = begun(own.take().expect("it enters once").create(b""));
            sleep(SOON).await;
            [late]
        };
        let [late] = processes.lose(enters).await;
        let next = hold_single(&processes.other).await;
        let stat = late.await.expect("an answer").expect("it was created");
        let late = znode.hold("single", &stat).await;
        assert!(matches!(late, Ok(None)), "seed {seed}: {late:?}");
        sleep(TIMEOUT).await;
        assert!(next.is_held(), "seed {seed}: {:?}", next.state());
    }
}

/// The deletion waits for the connection. It is sent before the session learns of the loss.
#[tokio::test(start_paused = true)]
async fn holder_whose_single_znode_was_lost_does_not_delete_that_of_the_next_one() {
    let mut held_meanwhile = 0;
    for seed in 0..20 {
        let processes = Processes::new(seed).await;
        let simulation = &processes.simulation;
        let backup = simulation.faults().back_up();
        let held = hold_single(&processes.one).await;
        simulation.faults().restore(&backup, SOON / 2);
        sleep(SOON / 10).await;
        assert!(!processes.one.is_connected(), "seed {seed}");
        // It ends before the lease does.
        simulation.process("one").partition(SOON * 11 / 5);
        sleep(SOON).await;
        admit_clients(simulation);
        let next = hold_single(&processes.other).await;
        assert!(!processes.one.is_connected(), "seed {seed}");
        held_meanwhile += u32::from(held.is_held());
        // It may be lost before the deletion is sent.
        let _ = held.release().await;
        sleep(TIMEOUT).await;
        assert!(next.is_held(), "seed {seed}: {:?}", next.state());
    }
    assert!(held_meanwhile >= 5, "{held_meanwhile}");
}

/// The server admits it again only when the next holder's znode is older than what it has seen.
#[tokio::test(start_paused = true)]
async fn holder_whose_single_znode_was_lost_is_lost_once_it_can_see_that_of_the_next_one() {
    for seed in 0..20 {
        let simulation = simulation!(seed, session_timeout: 10 * TIMEOUT, tick: TICK);
        let one = simulated_session(&simulation, "one").await;
        let backup = simulation.faults().back_up();
        for _ in 0..10 {
            take_turn(&lock(&one, "/lock")).await;
        }
        let held = hold_single(&one).await;
        // Until its znode is watched.
        sleep(2 * TIMEOUT).await;
        simulation.faults().restore(&backup, SOON / 2);
        sleep(SOON).await;
        let next = hold_single(&simulated_session(&simulation, "next").await).await;
        admit_clients(&simulation);
        until(|| one.is_connected()).await;
        sleep(SOON).await;
        let lost = HoldState::Lost(LossReason::Deleted);
        assert_eq!(held.state(), lost, "seed {seed}");
        assert!(next.is_held(), "seed {seed}: {:?}", next.state());
    }
}

#[tokio::test(start_paused = true)]
async fn watch_resolves_once_its_session_has_reconnected_unless_it_is_kept() {
    let simulation = simulation!(servers: 3, session_timeout: TIMEOUT, tick: TICK);
    make(&simulation, "/node");
    let session = simulated_session(&simulation, "one").await;
    let path = NodePath::new("/node").expect("a good path");
    let server = session.server(&path).await.expect("it is open");
    let (_, _, data) = server.get_and_watch("/node").await.expect("it exists");
    let (_, existing) = server.exists_and_watch("/node").await.expect("an answer");
    let (_, missing) = server
        .exists_and_watch("/missing")
        .await
        .expect("an answer");
    let (_, children) = server.list_and_watch("/node").await.expect("it exists");
    let (_, _, mut kept) = server.get_and_keep_watch("/node").await.expect("it exists");
    simulation.process("one").disconnect();
    let reconnected = join_all([data, existing, missing, children]);
    let events = in_time("a reconnect", reconnected).await;
    assert_eq!(events, [WatchEvent::Unwatched; 4]);
    server.sync("/").await.expect("it is connected");
    assert_eq!((&mut kept).now_or_never(), None);
    // One that is asked for without a connection is set over the next one.
    simulation.process("one").partition(SOON);
    simulation.process("one").disconnect();
    until(|| server.connection().is_none()).await;
    let (_, _, mut later) = server.get_and_watch("/node").await.expect("it exists");
    sleep(SOON).await;
    assert_eq!((&mut later).now_or_never(), None);
    let deleted = simulation.administrator().delete("/node");
    deleted.expect("it exists");
    for watch in [kept, later] {
        let event = in_time("the deletion", watch).await;
        assert_eq!(event, WatchEvent::Fired(EventType::NodeDeleted));
    }
}
