//! The bytes of a session's ephemeral znodes, which the servers list when the session ends.

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The least `jute.maxbuffer` that a session accepts.
const MIN: usize = 256 * 1024;
/// The most bytes of such a session.
const LIMIT: usize = MIN - 1024;
const CHROOT: &str = "/app";

async fn simulation() -> (Simulation, Session) {
    let simulation = simulation!(session_timeout: TIMEOUT, trace_limit: 0);
    make(&simulation, CHROOT);
    let session = session(&simulation, "one").await;
    (simulation, session)
}

async fn session(simulation: &Simulation, process: &str) -> Session {
    let ensemble = simulation.process(process).with_chroot(CHROOT).ensemble();
    let options = ConnectOptions::new().jute_maxbuffer(MIN);
    open(ensemble, options).await
}

fn left(session: &Session) -> usize {
    session.ephemeral_bytes_left().expect("a session is open")
}

/// The bytes by which the servers list the znodes of this session.
fn listed(simulation: &Simulation, session: Option<SessionId>) -> usize {
    let tree = simulation.administrator().tree();
    let own = tree
        .iter()
        .filter(|node| Some(SessionId(node.stat.ephemeral_owner)) == session);
    own.map(|node| 4 + node.path.len()).sum()
}

/// A path of this length, below which or at which a znode is created.
fn long(number: usize) -> String {
    format!("/{number}-{}", "a".repeat(2_000))
}

/// Holds at paths with these numbers.
async fn holds(session: &Session, numbers: std::ops::Range<usize>) -> Vec<Hold> {
    let acquired = numbers.map(async |number| hold(&lock(session, &long(number))).await);
    join_all(acquired).await
}

/// Holds at so many paths that another one is refused.
async fn full(session: &Session) -> Vec<Hold> {
    let mut held = holds(session, 0..100).await;
    loop {
        let next = lock(session, &long(held.len()));
        match next.acquire().await {
            Ok(hold) => held.push(hold),
            Err(error) => {
                assert_full(&error);
                return held;
            }
        }
    }
}

fn assert_full(error: &Error) {
    let is_full = matches!(
        error,
        Error::Refused { refusal: Refusal::TooManyEphemerals { bytes, limit: LIMIT }, .. }
            if *bytes > LIMIT
    );
    assert!(is_full && !error.is_retryable(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("another session"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn session_refuses_the_contender_that_would_make_its_list_too_long() {
    let (simulation, session) = simulation().await;
    assert_eq!(left(&session), LIMIT);
    let mut held = full(&session).await;
    let listed = listed(&simulation, session.id());
    assert_eq!(left(&session), LIMIT - listed);
    assert!(
        LIMIT - listed < 2_100,
        "{listed} bytes and no room for one more"
    );
    let released = held.pop().expect("it holds");
    released.release().await.expect("it is held");
    held.extend(holds(&session, 999..1_000).await);
    let refused = lock(&session, "/short").try_acquire().await;
    assert!(refused.expect("it is short").is_some());
    let other = self::session(&simulation, "other").await;
    assert_eq!(left(&other), LIMIT, "another session has room");
}

#[tokio::test(start_paused = true)]
async fn each_way_to_create_an_ephemeral_znode_is_refused_in_a_full_session() {
    let (_simulation, session) = simulation().await;
    let held = full(&session).await;
    let path = long(5_000);
    let single = single_node(&session, &path);
    assert_full(&single.acquire().await.expect_err("too long"));
    let tried = lock(&session, &path).try_acquire().await;
    assert_full(&tried.expect_err("too long"));
    for mode in [CreateMode::Ephemeral, CreateMode::EphemeralSequential] {
        let write = held[0].transaction().create(&path, b"", mode);
        assert_full(&write.commit().await.expect_err("too long"));
    }
    let before = left(&session);
    let write = held[0]
        .transaction()
        .create(&path, b"", CreateMode::Persistent);
    write.commit().await.expect("it is not ephemeral");
    assert_eq!(left(&session), before);
}

/// One znode takes the place of the other in one transaction.
#[tokio::test(start_paused = true)]
async fn hold_of_a_full_session_can_be_replaced() {
    let (simulation, session) = simulation().await;
    let mut held = full(&session).await;
    let hold = held.pop().expect("it holds");
    let replaced = hold.replace("lock-", "lock-", b"", &everyone()).await;
    held.push(replaced.expect("nothing is added"));
    assert_eq!(LIMIT - left(&session), listed(&simulation, session.id()));
}

#[tokio::test(start_paused = true)]
async fn znodes_of_guarded_transactions_count_until_one_deletes_them() {
    let (simulation, session) = simulation().await;
    let hold = lock(&session, "/lock").acquire().await.expect("it is free");
    let counts = || (LIMIT - left(&session), listed(&simulation, session.id()));
    let create = |mode| hold.transaction().create("/written", b"", mode).commit();
    for mode in [CreateMode::Ephemeral, CreateMode::EphemeralSequential] {
        create(mode).await.expect("it is new");
    }
    let (counted, listed) = counts();
    assert_eq!(counted, listed);
    create(CreateMode::Ephemeral).await.expect_err("it exists");
    assert_eq!(counts(), (counted, listed));
    let delete = hold.transaction().operation(Operation::delete("/written"));
    delete.commit().await.expect("it exists");
    let (counted, listed) = counts();
    assert_eq!(counted, listed);
}

/// A create whose reply is lost counts until its znode is known to be gone.
#[tokio::test(start_paused = true)]
async fn nothing_counts_once_nothing_is_left() {
    let (simulation, session) = simulation().await;
    let lock = lock(&session, "/lock");
    let single = single_node(&session, "/single");
    let recipes: [&dyn Recipe; 2] = [&lock, &single];
    for recipe in recipes {
        for kind in [FaultKind::RequestLost, FaultKind::ReplyLost] {
            inject(&simulation, kind, RequestKind::Create);
            let view = recipe.acquire().await.expect("it is free").view();
            take_turn(recipe).await;
            drop(view);
            // Dropped before the reply to the create, and during the wait.
            assert!(recipe.acquire().now_or_never().is_none());
            let hold = recipe.acquire().await.expect("it is free");
            let waits = timeout(TIMEOUT, recipe.acquire()).await;
            waits.expect_err("it is held");
            // Deleted by hand.
            let path = format!("{CHROOT}{}", hold.node_path());
            delete(&simulation, &path);
            hold.lost().await;
            let view = hold.view();
            drop(hold);
            sleep(TIMEOUT).await;
            assert_eq!(listed(&simulation, session.id()), 0);
            assert_eq!(left(&session), LIMIT, "{kind:?}: {:?}", recipe.path());
            drop(view);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_counts_after_a_lapse() {
    let (simulation, session) = simulation().await;
    let lock = lock(&session, "/lock");
    let hold = lock.acquire().await.expect("it is free");
    let lapses = hold.remaining() + TIMEOUT / 100;
    simulation.process("one").partition(lapses);
    hold.lost().await;
    session.wait_connected().await.expect("it has not expired");
    assert_eq!(session.id(), Some(hold.session_id()));
    sleep(TIMEOUT).await;
    assert_eq!(left(&session), LIMIT);
    drop(hold);
}
