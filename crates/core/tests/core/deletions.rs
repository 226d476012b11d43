//! Many znodes deleted at once over one session.

use crate::support::*;

/// How many deletions of a session go alone at once.
const ALONE: usize = 16;

/// The requests of a turn.
const KINDS: [RequestKind; 4] = [
    RequestKind::Create,
    RequestKind::List,
    RequestKind::Delete,
    RequestKind::Transact,
];

/// Requests among many deletions.
const REQUESTS: [(RequestKind, u64); 6] = [
    (RequestKind::Transact, 1),
    (RequestKind::Transact, 2),
    (RequestKind::Transact, 3),
    (RequestKind::Delete, 1),
    (RequestKind::Delete, 8),
    (RequestKind::Delete, 16),
];

/// One session with many locks.
struct Crowd {
    simulation: Simulation,
    session: Session,
    locks: Vec<Queue>,
}

impl Crowd {
    async fn new(seed: u64, locks: usize) -> Crowd {
        let paths = (0..locks).map(|lock| format!("/locks/{lock}")).collect();
        Crowd::of(seed, paths).await
    }

    async fn of(seed: u64, paths: Vec<String>) -> Crowd {
        let simulation = simulation!(seed, trace_limit: 0);
        let options = ConnectOptions::new().tick(2 * SECOND);
        let session = open(simulation.ensemble("a"), options).await;
        let lock = |path: &String| queue_by(&session, path, FIRST_ALONE);
        let locks = paths.iter().map(lock).collect();
        let crowd = Crowd {
            simulation,
            session,
            locks,
        };
        // This creates the directories, and sends all requests that are sent only once.
        join_all(crowd.locks.iter().map(take_turn)).await;
        crowd
    }

    async fn acquire(&self) -> Vec<Hold> {
        join_all(self.locks.iter().map(hold)).await
    }

    fn sent(&self, kind: RequestKind) -> usize {
        let sent = self.simulation.counters().requests(kind);
        usize::try_from(sent).expect("a small number")
    }

    /// The znodes that go with their sessions.
    fn standing(&self) -> Vec<String> {
        let tree = self.simulation.administrator().tree().into_iter();
        tree.filter(|znode| znode.stat.ephemeral_owner != 0)
            .map(|znode| znode.path)
            .collect()
    }

    /// Waits until no znode remains.
    async fn assert_nothing_remains(&self) {
        let gone = timeout(PATIENCE, until(|| self.standing().is_empty())).await;
        assert!(gone.is_ok(), "remain: {:?}", self.standing());
    }

    /// Waits until no znode remains, and not because the session has ended.
    async fn assert_all_are_deleted(&self) {
        let session = self.session.id();
        self.assert_nothing_remains().await;
        assert_eq!(self.session.id(), session);
    }
}

fn release(holds: Vec<Hold>) -> Vec<JoinHandle<Result<(), Error>>> {
    let release = |hold: Hold| tokio::spawn(hold.release());
    holds.into_iter().map(release).collect()
}

async fn outcomes(releases: Vec<JoinHandle<Result<(), Error>>>) -> Vec<Result<(), Error>> {
    let all = timeout(PATIENCE, join_all(releases));
    let all = all.await.expect("none hangs").into_iter();
    all.map(|outcome| outcome.expect("no panic")).collect()
}

/// Releases all at once, each with success.
async fn assert_released(holds: Vec<Hold>) {
    for outcome in outcomes(release(holds)).await {
        outcome.expect("it is released");
    }
}

#[tokio::test(start_paused = true)]
async fn many_releases_at_once_go_together() {
    // A transaction takes 64 at most, and one release too many is a request of its own.
    for (locks, alone, transactions) in [
        (ALONE + 1, ALONE + 1, 0),
        (ALONE + 2 * 64 + 56, ALONE, 3),
        (ALONE + 6 * 64, ALONE, 6),
    ] {
        let crowd = Crowd::new(0, locks).await;
        // The session sends no probe while the locks are held: it would mark the releases.
        sleep(Duration::from_millis(300)).await;
        let before = crowd.simulation.counters();
        assert_released(crowd.acquire().await).await;
        assert_eq!(crowd.standing(), [""; 0]);
        let sent = sent_since(&crowd.simulation, &before, KINDS);
        let expected = [locks, locks, alone, transactions].map(|number| number as u64);
        assert_eq!(sent, expected, "{locks} locks");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_among_many_costs_little_more_than_two_requests() {
    const LOCKS: usize = 200;
    const TURNS: usize = 10;
    let crowd = Crowd::new(0, LOCKS).await;
    let sent = || KINDS.map(|kind| crowd.sent(kind)).iter().sum::<usize>();
    let before = sent();
    let turns = crowd.locks.iter().map(async |lock| {
        for _ in 0..TURNS {
            take_turn(lock).await;
        }
    });
    join_all(turns).await;
    let in_hundred_turns = (sent() - before) * 100 / (LOCKS * TURNS);
    assert!(in_hundred_turns <= 230, "{in_hundred_turns}");
}

#[tokio::test(start_paused = true)]
async fn few_releases_at_once_are_sent_one_by_one_and_without_delay() {
    let crowd = Crowd::new(1, ALONE).await;
    let kinds = [RequestKind::Delete, RequestKind::Transact];
    for round in 1..=3 {
        let holds = crowd.acquire().await;
        let [deletes, transactions] = kinds.map(|kind| crowd.sent(kind));
        let releases: Vec<_> = holds
            .into_iter()
            .map(|hold| begun(hold.release()))
            .collect();
        // The session sends what its tasks have asked for once they wait.
        sleep(Duration::from_millis(1)).await;
        let sent = [deletes + ALONE, transactions];
        assert_eq!(kinds.map(|kind| crowd.sent(kind)), sent, "round {round}");
        for outcome in join_all(releases).await {
            outcome.expect("it is released");
        }
        assert_eq!(kinds.map(|kind| crowd.sent(kind)), sent, "round {round}");
        assert_eq!(crowd.standing(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn long_paths_go_in_several_transactions() {
    let name = |lock: usize| format!("/locks/{}{lock:02}", "a".repeat(8 * 1024));
    let crowd = Crowd::of(0, (0..ALONE + 24).map(name).collect()).await;
    let transactions = crowd.sent(RequestKind::Transact);
    assert_released(crowd.acquire().await).await;
    assert_eq!(crowd.sent(RequestKind::Transact), transactions + 3);
}

#[tokio::test(start_paused = true)]
async fn release_among_many_reports_its_loss_alone_if_its_znode_was_deleted_by_hand() {
    let crowd = Crowd::new(0, 200).await;
    // One that goes alone, and one in each transaction.
    for by_hand in [0, 20, 100, 199] {
        let holds = crowd.acquire().await;
        delete(&crowd.simulation, holds[by_hand].node_path());
        let released = outcomes(release(holds)).await.into_iter().enumerate();
        for (index, outcome) in released {
            let is_lost = matches!(outcome, Err(Error::Lost { .. }));
            assert_eq!(is_lost, index == by_hand, "{index}: {outcome:?}");
            assert!(is_lost || outcome.is_ok(), "{index}: {outcome:?}");
        }
        assert_eq!(crowd.standing(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_among_many_that_is_refused_is_refused_alone() {
    let crowd = Crowd::new(0, 100).await;
    let directory = "/locks/closed";
    let granted = Permission::READ | Permission::CREATE;
    make_granting(&crowd.simulation, directory, granted);
    let closed = queue_by(&crowd.session, directory, FIRST_ALONE);

    let mut holds = crowd.acquire().await;
    holds.insert(50, closed.acquire().await.expect("it is free"));
    let standing = holds[50].node_path().to_owned();
    for (at, outcome) in outcomes(release(holds)).await.into_iter().enumerate() {
        match (at, outcome) {
            (50, Err(Error::Refused { refusal, path, .. })) => {
                assert_eq!(refusal, Refusal::NoPermission(Permission::DELETE));
                assert_eq!(path, directory);
            }
            (50, outcome) => panic!("{outcome:?}"),
            (_, outcome) => outcome.expect("it is released"),
        }
    }
    assert_eq!(crowd.standing(), [standing]);
    grant(&crowd.simulation, directory, Permission::ALL);
    crowd.assert_all_are_deleted().await;
}

/// As after a drop: an operator may correct the access control list.
#[tokio::test(start_paused = true)]
async fn release_of_a_single_znode_that_is_refused_is_repeated() {
    let crowd = Crowd::new(0, 1).await;
    let hold = hold(&single_node(&crowd.session, "/locks/single")).await;
    grant(&crowd.simulation, "/locks", Permission::READ);
    let refused = hold.release().await;
    assert_fails!(refused, Error::Refused);
    assert_eq!(crowd.standing(), ["/locks/single"]);
    grant(&crowd.simulation, "/locks", Permission::ALL);
    crowd.assert_all_are_deleted().await;
}

#[tokio::test(start_paused = true)]
async fn each_of_many_releases_is_done_whatever_is_lost() {
    let late = Duration::from_millis(2_500);
    let faults = [
        FaultKind::RequestLost,
        FaultKind::ReplyLost,
        FaultKind::RequestLate(late),
        FaultKind::ReplyLate(late),
        FaultKind::Asleep(late),
    ];
    for (kind, nth) in REQUESTS {
        for fault in faults {
            let case = format!("{fault:?} at {kind:?} {nth}");
            let crowd = Crowd::new(nth, 200).await;
            let holds = crowd.acquire().await;
            let session = crowd.session.id();
            let faults = crowd.simulation.faults();
            faults.inject(Fault::new(fault).on(kind).nth(nth));
            let mut releases = release(holds);
            sleep(Duration::from_millis(nth)).await;
            // Some are dropped under way. They hold up no other, and leave nothing.
            for dropped in (0..releases.len()).rev().step_by(3) {
                releases.swap_remove(dropped).abort();
            }
            for outcome in outcomes(releases).await {
                outcome.unwrap_or_else(|error| panic!("{case}: {error}"));
            }
            assert_eq!(faults.waiting(), 0, "{case}: it has happened");
            crowd.assert_nothing_remains().await;
            assert_eq!(crowd.session.id(), session, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn many_releases_all_end_with_their_session() {
    for (kind, nth) in REQUESTS {
        let crowd = Crowd::new(nth, 200).await;
        let holds = crowd.acquire().await;
        let faults = crowd.simulation.faults();
        faults.inject(Fault::new(FaultKind::SessionExpired).on(kind).nth(nth));
        let outcomes = outcomes(release(holds)).await;
        let over = |outcome: &Result<(), Error>| match outcome {
            Ok(()) => false,
            Err(Error::SessionOver { .. }) => true,
            Err(Error::Lost { reason, .. }) => matches!(reason, LossReason::Session(_)),
            Err(error) => panic!("{error}"),
        };
        let over = outcomes.iter().filter(|outcome| over(outcome)).count();
        assert!(over >= 56, "{over} at {kind:?} {nth}");
        crowd.assert_nothing_remains().await;

        // The next session begins anew.
        for outcome in join_all(release(crowd.acquire().await)).await {
            outcome.expect("no panic").expect("it is released");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn many_releases_all_end_when_the_session_is_closed() {
    for at in 0..8 {
        let crowd = Crowd::new(at, 200).await;
        let releases = release(crowd.acquire().await);
        sleep(Duration::from_millis(at)).await;
        in_time("close", crowd.session.clone().close()).await;
        outcomes(releases).await;
        crowd.assert_nothing_remains().await;
    }
}

#[tokio::test(start_paused = true)]
async fn holds_dropped_all_at_once_leave_nothing() {
    let crowd = Crowd::new(0, 200).await;
    let holds = crowd.acquire().await;
    let transactions = crowd.sent(RequestKind::Transact);
    // As it is where the last handle goes, and the runtime is not this thread's.
    let dropping = std::thread::spawn(move || drop(holds));
    dropping.join().expect("no panic");
    crowd.assert_all_are_deleted().await;
    let sent = crowd.sent(RequestKind::Transact) - transactions;
    assert!((3..=6).contains(&sent), "{sent} transactions");
}

#[tokio::test(start_paused = true)]
async fn releases_that_nobody_polls_hold_up_no_other() {
    let crowd = Crowd::new(0, 200).await;
    let mut holds = crowd.acquire().await;
    let others = holds.split_off(150);
    let unpolled: Vec<_> = holds
        .into_iter()
        .map(|hold| begun(hold.release()))
        .collect();
    assert_released(others).await;
    assert_eq!(crowd.standing(), [""; 0]);
    for outcome in join_all(unpolled).await {
        outcome.expect("it is released");
    }
}

#[tokio::test(start_paused = true)]
async fn znodes_of_names_that_others_use_are_deleted_one_by_one() {
    let crowd = Crowd::new(0, 0).await;
    let lock = |number| single_node(&crowd.session, format!("/single/{number}"));
    let locks: Vec<_> = (0..100).map(lock).collect();
    assert_released(join_all(locks.iter().map(hold)).await).await;
    let kinds = [RequestKind::Delete, RequestKind::Transact];
    assert_eq!(kinds.map(|kind| crowd.sent(kind)), [100, 0]);
}
