//! Leases: what is held is lost before the ensemble lets go of it.

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn session_reports_when_a_request_was_sent_and_answered_and_over_which_connection() {
    let delay = Duration::from_millis(300);
    let simulation = simulation!(network_delay: delay..=delay);
    let session = simulated_session(&simulation, "a").await;
    let path = NodePath::new("/lock").expect("a good path");
    let server = session.server(&path).await.expect("it is open");
    let mut earlier = None;
    for _ in 0..3 {
        let ensemble = session.ensemble();
        for exchange in [server.sync("/"), server.commit_noop()] {
            let sent = ensemble.now();
            let exchange = exchange.await.expect("an answer");
            assert!(exchange.sent <= sent);
            assert!(exchange.answered >= exchange.sent + 2 * delay);
            assert!(exchange.answered <= ensemble.now());
            assert_eq!(exchange.connection, server.connection());
        }
        assert!(server.connection() > earlier);
        earlier = server.connection();
        simulation.process("a").disconnect();
        while server.connection() == earlier || server.connection().is_none() {
            sleep(delay).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lease_of_a_new_session_counts_from_when_it_was_asked_for() {
    let delay = Duration::from_millis(300);
    let (tick, timeout) = (Duration::from_secs(2), Duration::from_secs(10));
    let simulation = simulation!(network_delay: delay..=delay, session_timeout: timeout, tick);
    make(&simulation, "/lock");
    let asked = Instant::now();
    let options = ConnectOptions::new().tick(tick);
    let session = open(simulation.ensemble("a"), options).await;
    let hold = hold(&lock(&session, "/lock")).await;
    assert!(asked.elapsed() >= 3 * delay);
    // The margin is half a tick and a fortieth of the session timeout.
    let lease = timeout - tick / 2 - timeout / 40;
    assert_eq!(asked.elapsed() + hold.remaining(), lease);
}

/// A session with this timeout and tick.
async fn opened(simulation: &Simulation, timeout: Duration, tick: Option<Duration>) -> Session {
    let mut options = ConnectOptions::new().session_timeout(timeout);
    if let Some(tick) = tick {
        options = options.tick(tick);
    }
    open(simulation.ensemble("a"), options).await
}

/// A session whose probes are answered at once, and its hold.
struct Probed {
    simulation: Simulation,
    session: Session,
    hold: Hold,
    /// When a probe was due.
    due: Instant,
    interval: Duration,
}

impl Probed {
    async fn new(timeout: Duration, tick: Option<Duration>, interval: Duration) -> Probed {
        let simulation = simulation!(
            session_timeout: timeout,
            max_session_timeout: Some(timeout),
            tick: Duration::from_millis(500),
            sync_limit: 1_000,
            network_delay: Duration::ZERO..=Duration::ZERO,
            commit_delay: Duration::ZERO..=Duration::ZERO,
        );
        let session = opened(&simulation, timeout, tick).await;
        let hold = hold(&lock(&session, "/lock")).await;
        sleep(timeout * 2).await;
        until(|| session.health().last_answer <= Some(MILLISECOND)).await;
        Probed {
            simulation,
            session,
            hold,
            due: Instant::now(),
            interval,
        }
    }

    /// The server answers nothing from now on, until this share of the tolerated silence, in
    /// thousandths, after the next probe is due.
    async fn silence(&self, share: u32) {
        let tolerated = self.session.tolerated_silence().expect("it is open");
        let silence = tolerated * share / 1_000;
        let since = self.due.elapsed().as_nanos() % self.interval.as_nanos();
        let since = Duration::from_nanos(u64::try_from(since).expect("less than an interval"));
        let pause = self.interval - since + silence;
        self.simulation.faults().pause_server(0, pause);
        sleep(pause).await;
    }
}

/// Session timeouts and ticks, and the interval between two probes, in milliseconds.
const TERMS: [(u64, Option<u64>, u64); 7] = [
    (4_000, None, 200),
    (4_000, Some(500), 400),
    (4_000, Some(1_000), 400),
    (10_000, None, 1_000),
    (10_000, Some(500), 1_000),
    (10_000, Some(2_000), 1_000),
    (30_000, None, 3_000),
];

fn terms() -> impl Iterator<Item = (Duration, Option<Duration>, Duration)> {
    let millis = Duration::from_millis;
    let terms = TERMS.into_iter();
    terms
        .map(move |(timeout, tick, interval)| (millis(timeout), tick.map(millis), millis(interval)))
}

/// What the documentation says of several silences: the share of each in the tolerated silence, in
/// thousandths, and the pauses after it. The pauses are of a session timeout, a wait and an interval.
type Silences = (
    &'static str,
    &'static [u32],
    fn(Duration, Duration, Duration) -> Vec<Duration>,
);

const SILENCES: [Silences; 3] = [
    // The answers that a silence has delayed are confirmed a wait after its end.
    (
        "each that is tolerated, and its end",
        &[500, 900, 950, 990],
        |timeout, _, _| vec![timeout],
    ),
    (
        "two fifths, however soon they follow each other",
        &[400],
        |_, _, interval| {
            let gaps = (0..20).map(|gap| Duration::from_millis(1) + interval * gap / 4);
            gaps.collect()
        },
    ),
    (
        "each that is tolerated, with the wait and two tenths between them",
        &[990],
        |timeout, wait, interval| {
            let more = (0..8).map(|more| wait + timeout / 5 + interval * more / 8);
            more.collect()
        },
    ),
];

#[tokio::test(start_paused = true)]
async fn tolerated_silences_end_no_hold() {
    for (case, shares, pauses) in SILENCES {
        for (timeout, tick, interval) in terms() {
            let wait = timeout / 40 + tick.unwrap_or(timeout / 4);
            for (share, pause) in shares.iter().flat_map(|share| {
                pauses(timeout, wait, interval)
                    .into_iter()
                    .map(|it| (*share, it))
            }) {
                let probed = Probed::new(timeout, tick, interval).await;
                for _ in 0..4 {
                    probed.silence(share).await;
                    sleep(pause).await;
                }
                sleep(timeout).await;
                let held = probed.hold.is_held();
                assert!(held, "{case}: {timeout:?} {tick:?} {share} {pause:?}");
            }
        }
    }
}

/// The tolerated silence is no guess that is far too short.
#[tokio::test(start_paused = true)]
async fn silence_that_is_longer_than_the_tolerated_one_ends_a_hold() {
    for (timeout, tick, interval) in terms() {
        let probed = Probed::new(timeout, tick, interval).await;
        probed.silence(1_400).await;
        assert!(!probed.hold.is_held(), "{timeout:?} {tick:?}");
    }
}

/// The transactions of a session that opens, and nothing else. Each is a proof.
async fn proofs_of_an_opening(fault: Option<FaultKind>) -> u64 {
    let simulation = Simulation::default();
    if let Some(kind) = fault {
        inject(&simulation, kind, RequestKind::Authenticate);
    }
    let session = simulated_session(&simulation, "a").await;
    sleep(SECOND).await;
    assert_eq!(simulation.faults().waiting(), 0);
    session.close().await;
    simulation.counters().requests(RequestKind::Transact)
}

/// The first connection breaks once the session is granted, and before the credentials are
/// answered. So the first connection that a request can use is a reconnect.
#[tokio::test(start_paused = true)]
async fn session_that_reconnects_before_its_first_request_proves_the_connection() {
    assert_eq!(proofs_of_an_opening(None).await, 0, "the opening is proof");
    for lost in [FaultKind::RequestLost, FaultKind::ReplyLost] {
        assert_eq!(proofs_of_an_opening(Some(lost)).await, 1);
    }
}

/// The session timeout of [`members`].
const T: Duration = Duration::from_secs(10);

/// An ensemble of this many members.
fn members(servers: usize, seed: u64) -> SimulationOptions {
    SimulationOptions {
        servers,
        seed,
        session_timeout: T,
        ..SimulationOptions::default()
    }
}

/// A simulation, and a session at a follower that lags behind for ever.
///
/// The lag is this part of the session timeout.
async fn at_a_lagging_follower(
    options: SimulationOptions,
    connect: ConnectOptions,
    lag: f64,
) -> (Simulation, Session, usize) {
    let simulation = Simulation::new(options);
    let administrator = simulation.administrator();
    loop {
        let session = open(simulation.ensemble("a"), connect.clone()).await;
        let server = administrator.server_of(session.id().expect("open"));
        let server = server.expect("it is connected");
        if server != administrator.leader() {
            let timeout = session.timeout().expect("it is open");
            simulation.faults().lag(server, timeout.mul_f64(lag));
            sleep(timeout * 2).await;
            return (simulation, session, server);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn session_leaves_a_server_at_which_it_gets_no_lease() {
    let connect = ConnectOptions::new();
    let (simulation, session, lagging) = at_a_lagging_follower(members(3, 0), connect, 0.3).await;
    let acquired = timeout(T * 5, hold(&lock(&session, "/lock"))).await;
    let hold = acquired.expect("another server answers in time");
    let server = simulation.administrator().server_of(hold.session_id());
    assert_ne!(server, Some(lagging));
}

/// The lease lasts for a while after each answer, and lapses before the next one.
#[tokio::test(start_paused = true)]
async fn session_leaves_a_server_at_which_it_would_lose_each_hold() {
    let (timeout, tick) = (Duration::from_secs(10), Duration::from_millis(500));
    let options = SimulationOptions {
        tick,
        ..members(3, 0)
    };
    let connect = ConnectOptions::new().tick(tick);
    let (simulation, session, lagging) = at_a_lagging_follower(options, connect, 0.36).await;
    let queue = lock(&session, "/lock");
    for _ in 0..3 {
        let turn = tokio::time::timeout(timeout * 6, take_turn(&queue)).await;
        turn.expect("another server answers in time");
    }
    let id = session.id().expect("open");
    assert_ne!(simulation.administrator().server_of(id), Some(lagging));
}

/// A minority of the members lags. The contender keeps its place until it is at another member.
#[tokio::test(start_paused = true)]
async fn contender_keeps_its_place_while_its_session_leaves_two_servers() {
    for seed in 0..20 {
        let (simulation, session, lagging) =
            at_a_lagging_follower(members(5, seed), ConnectOptions::new(), 0.3).await;
        let leader = simulation.administrator().leader();
        let other = (0..5).find(|server| ![leader, lagging].contains(server));
        let lag = T.mul_f64(0.3);
        simulation.faults().lag(other.expect("there are five"), lag);
        let queue = lock(&session, "/lock");
        let acquired = tokio::time::timeout(10 * T, queue.acquire()).await;
        let acquired = acquired.expect("in time");
        assert!(acquired.is_ok(), "seed {seed}: {acquired:?}");
    }
}

/// A session of a process so far away, and its queue. Its lease of the opening has lapsed.
async fn far_away(simulation: &Simulation, way: Duration) -> (Session, Queue) {
    let session = simulated_session(simulation, "far").await;
    let queue = lock(&session, "/lock");
    simulation.process("far").lengthen_path(way, 1_000 * T);
    sleep(2 * T).await;
    (session, queue)
}

/// Answers after this way and back are too late for a lease with this session timeout.
const TOO_FAR: Duration = Duration::from_millis(1_250);

/// Its session lives, and would bar the others for as long.
#[tokio::test(start_paused = true)]
async fn place_is_given_up_when_no_server_grants_a_lease() {
    let simulation = Simulation::new(members(1, 0));
    let (far, queue) = far_away(&simulation, TOO_FAR).await;
    let attempt = spawned(&queue);
    until(|| !simulation.administrator().children("/lock").is_empty()).await;
    let queue = lock_of(&simulation, "near", "/lock").await;
    // Its session leaves five servers: the first at once, because that has been late for so long.
    let acquired = tokio::time::timeout(7 * T, queue.acquire()).await;
    let hold = acquired.expect("in time").expect("the next in the queue");
    let failed = attempt.await.expect("no panic");
    let error = failed.expect_err("without a lease");
    let Error::NoLease {
        path,
        session,
        waited,
        answer,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((path.as_str(), Some(*session)), ("/lock", far.id()));
    assert!((4 * T..6 * T).contains(waited), "{error}");
    assert!(*answer >= 2 * TOO_FAR && error.is_retryable(), "{error}");
    assert_eq!(simulation.administrator().children("/lock").len(), 1);
    assert!(hold.is_held());
}

/// Otherwise each attempt of a task that tries again would bar the others.
#[tokio::test(start_paused = true)]
async fn session_without_a_lease_bars_the_others_once() {
    let simulation = Simulation::new(members(1, 0));
    let (_far, queue) = far_away(&simulation, TOO_FAR).await;
    let first = queue.acquire().await;
    assert_fails!(first, Error::NoLease);
    let again = tokio::spawn(async move {
        for _ in 0..5 {
            let failed = queue.acquire().await;
            assert_fails!(failed, Error::NoLease);
        }
    });
    // The znode of the first attempt is deleted.
    sleep(T).await;
    let queue = lock_of(&simulation, "near", "/lock").await;
    while !again.is_finished() {
        let turn = tokio::time::timeout(T / 10, take_turn(&queue)).await;
        turn.expect("nobody else is there");
        sleep(T / 10).await;
    }
    again.await.expect("each attempt fails in this way");
}

#[tokio::test(start_paused = true)]
async fn contender_whose_turn_has_not_come_needs_no_lease() {
    let simulation = Simulation::new(members(1, 0));
    let hold = hold(&lock_of(&simulation, "near", "/lock").await).await;
    let (_far, queue) = far_away(&simulation, TOO_FAR).await;
    let mut attempt = spawned(&queue);
    let waits = tokio::time::timeout(20 * T, &mut attempt).await;
    assert!(waits.is_err(), "{waits:?}");
    release(hold).await;
    let failed = attempt.await.expect("no panic");
    assert_fails!(failed, Error::NoLease);
}

/// Each answer is as late as a lease allows, and the process is cut off or asleep now and then.
#[tokio::test(start_paused = true)]
async fn slow_server_that_grants_leases_costs_no_place() {
    let simulation = Simulation::new(members(3, 0));
    let (_session, queue) = far_away(&simulation, Duration::from_millis(600)).await;
    let process = simulation.process("far");
    for tenths in 0..20 {
        let silence = T * (tenths % 10) * 9 / 100;
        let attempt = process.while_awake(queue.acquire());
        let trouble = async {
            sleep(T * tenths / 20).await;
            match tenths < 10 {
                true => process.partition(silence),
                false => process.sleep(silence),
            }
        };
        let both = async { tokio::join!(attempt, trouble).0 };
        let acquired = tokio::time::timeout(8 * T, both).await;
        let hold = acquired.expect("in time").expect("its turn");
        // The release may fail: the process may be cut off.
        let _ = process.while_awake(hold.release()).await;
        sleep(2 * T).await;
    }
}
