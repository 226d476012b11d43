//! Sessions that one process leaves to another while something goes wrong.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FutureExt, join};
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_core::{
    Acl, AuthId, ConnectOptions, CreateMode, DetachedSession, Directories, Error, Hold, HoldState,
    LossReason, Permission, Queue, Session, SessionId,
};
use zookeeper_recipes_lock::SingleNodeLock;
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation, SimulationOptions};

use crate::altered_ensemble::{Alterations, Altered};
use crate::support::{First, SINGLE, begin_single, everyone};

const PATH: &str = "/locks/left";
const DELAY: Duration = Duration::from_millis(100);
const TICK: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(10);

fn simulation() -> Simulation {
    Simulation::new(SimulationOptions {
        network_delay: DELAY..=DELAY,
        session_timeout: TIMEOUT,
        tick: TICK,
        ..SimulationOptions::default()
    })
}

fn options() -> ConnectOptions {
    ConnectOptions::new().tick(TICK)
}

fn queue(session: &Session, path: &str) -> Queue {
    Queue::new(session, path, First).expect("a good path")
}

async fn held(simulation: &Simulation) -> (Session, Hold) {
    let session = Session::open(simulation.ensemble("first"), options()).await;
    let session = session.expect("a session opens");
    let hold = queue(&session, PATH).acquire().await.expect("it is free");
    (session, hold)
}

/// The session of a first process that has ended, with its hold.
async fn left(simulation: &Simulation) -> DetachedSession {
    let (session, hold) = held(simulation).await;
    session.detach([hold]).await.expect("it is held")
}

async fn resume(simulation: &Simulation, detached: &DetachedSession) -> Result<Session, Error> {
    Session::resume_in(simulation.ensemble("second"), options(), detached).await
}

/// As another process reads it.
fn copy(detached: &DetachedSession) -> DetachedSession {
    DetachedSession::from_secret(&detached.to_secret()).expect("it is whole")
}

/// The form of the secret, with a password of three bytes.
const SECRET: &str = "zookeeper-recipes detached session 3
session -7 1099511627776 10000 0,255,16
ticket /locks/a ticket
hold 77 3 /locks/x 1
hold 9223372036854775807 3 /locks/y
leftover /locks/z 1-
leftover /locks/y
end
";

#[test]
fn secret_says_all_that_one_process_leaves() {
    let detached = DetachedSession::from_secret(SECRET).expect("it is well formed");
    assert_eq!(detached.session_id(), SessionId(-7));
    assert_eq!(Vec::from_iter(detached.holds()), ["/locks/x 1", "/locks/y"]);
    assert_eq!(detached.to_secret(), SECRET);
}

#[test]
fn part_of_the_secret_is_refused() {
    for end in 0..SECRET.trim_end().len() {
        let part = &SECRET[..end];
        assert!(DetachedSession::from_secret(part).is_err(), "{part}");
    }
}

/// A file, a shell and an environment variable each change the last newline.
#[test]
fn white_space_at_the_end_of_the_secret_does_not_matter() {
    let whole = SECRET.trim_end();
    for end in ["", "\n", "\r\n", "\n\n", " "] {
        let read = DetachedSession::from_secret(&format!("{whole}{end}"));
        let read = read.unwrap_or_else(|error| panic!("{end:?}: {error}"));
        assert_eq!(read.to_secret(), SECRET);
    }
}

#[test]
fn neither_its_debug_form_nor_an_error_shows_the_password() {
    let detached = DetachedSession::from_secret(SECRET).expect("it is well formed");
    assert!(!format!("{detached:?}").contains("0,255,16"));
    let error = DetachedSession::from_secret(&SECRET.replace("hold ", "held "));
    let error = error.expect_err("it is not well formed");
    assert!(!error.to_string().contains("0,255,16"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn lease_of_a_resumed_session_counts_from_when_it_was_asked_for() {
    let simulation = simulation();
    let detached = left(&simulation).await;
    let asked = Instant::now();
    let session = resume(&simulation, &detached).await.expect("an answer");
    let hold = queue(&session, PATH).acquire().await.expect("it is left");
    assert!(asked.elapsed() >= 3 * DELAY);
    // The margin is half a tick and a fortieth of the session timeout.
    let lease = TIMEOUT - TICK / 2 - TIMEOUT / 40;
    assert_eq!(asked.elapsed() + hold.remaining(), lease);
}

/// It has not claimed the session, and cannot know that another process has.
#[tokio::test(start_paused = true)]
async fn process_that_reaches_no_server_in_time_closes_nothing() {
    let simulation = simulation();
    let detached = left(&simulation).await;
    let second = resume(&simulation, &detached).await.expect("an answer");
    let hold = queue(&second, PATH).acquire().await.expect("it is left");
    let third = simulation.process("third");
    // Otherwise the second process takes its session back before the third one could close it.
    simulation.process("second").partition(DELAY * 20);
    // The servers hear of it, and it hears nothing of them in time.
    let briefly = options().connection_timeout(DELAY * 3 / 2);
    let resumed = Session::resume_in(third.ensemble(), briefly, &detached).await;
    assert!(matches!(resumed, Err(Error::Connect { .. })), "{resumed:?}");
    sleep(TIMEOUT).await;
    assert_eq!(hold.state(), HoldState::Held);
}

/// The thread of an attempt is delayed between its look at the session and its create.
#[tokio::test(start_paused = true)]
async fn znode_that_is_created_while_a_session_is_left_goes() {
    const OTHER: &str = "/locks/other";
    let mut created_late = 0;
    for late in 0..20 {
        let simulation = simulation();
        let administrator = simulation.administrator();
        for path in ["/locks", OTHER] {
            let made = administrator.create(path, b"", CreateMode::Persistent);
            made.expect("nothing is there");
        }
        let ensemble = Altered {
            ensemble: simulation.ensemble("altered"),
            alterations: Alterations {
                creates_late: Some((OTHER, DELAY * late / 4)),
                ..Alterations::default()
            },
        };
        let session = Session::open(Arc::new(ensemble), options()).await;
        let session = session.expect("a session opens");
        let hold = queue(&session, PATH).acquire().await.expect("it is free");
        let waiter = queue(&session, OTHER);
        let attempt = tokio::spawn(async move { waiter.acquire().await });
        sleep(Duration::from_millis(1)).await;
        let detached = session.detach([hold]).await.expect("it is held");
        assert!(attempt.await.expect("no panic").is_err());
        created_late += administrator.children(OTHER).len();
        let _session = resume(&simulation, &detached).await.expect("an answer");
        sleep(DELAY * 10).await;
        assert_eq!(administrator.children(OTHER), [""; 0], "{late}");
    }
    assert!(created_late > 0, "none was created late");
}

/// A task begins it before the session has ended here, and creates it while the session is left.
#[tokio::test(start_paused = true)]
async fn single_znode_is_not_created_while_a_session_is_left() {
    for late in 0..40 {
        let simulation = simulation();
        let (session, hold) = held(&simulation).await;
        let beside = session.clone();
        let mut detach = session.detach([hold]).boxed();
        assert!((&mut detach).now_or_never().is_none(), "it is under way");
        let create = async {
            let znode = begin_single(&beside).await;
            sleep(DELAY * late / 4).await;
            let _ = znode.create(b"", &everyone(), Directories::Container).await;
        };
        let (detached, ()) = join(detach, create).await;
        let detached = detached.expect("it is held");
        let _session = resume(&simulation, &detached).await.expect("an answer");
        sleep(DELAY * 10).await;
        let children = simulation.administrator().children("/");
        assert!(!children.contains(&SINGLE[1..].to_owned()), "{late}");
    }
}

/// What a lock of a single znode has done before its session is left.
#[derive(Clone, Copy, Debug)]
enum Did {
    Release,
    ReleaseWithAView,
    LoseItsZnode,
    FailToHold,
    LookUnderWay,
    Hold,
}

#[tokio::test(start_paused = true)]
async fn session_is_left_unless_a_single_znode_may_exist() {
    let all = [
        Did::Release,
        Did::ReleaseWithAView,
        Did::LoseItsZnode,
        Did::FailToHold,
        Did::LookUnderWay,
        Did::Hold,
    ];
    for did in all {
        let simulation = simulation();
        let administrator = simulation.administrator();
        let (session, hold) = held(&simulation).await;
        let lock = SingleNodeLock::new(&session, SINGLE).expect("a good path");
        let (mut view, mut kept) = (None, None);
        let mut look = lock.contenders().boxed();
        match did {
            Did::FailToHold => {
                let made = administrator.create(SINGLE, b"", CreateMode::Ephemeral);
                made.expect("nothing is there");
                let failed = lock.try_acquire().await;
                assert!(failed.expect("an answer").is_none());
            }
            Did::LookUnderWay => assert!((&mut look).now_or_never().is_none()),
            _ => {
                let single = lock.acquire().await.expect("it is free");
                view = Some(single.view()).filter(|_| matches!(did, Did::ReleaseWithAView));
                match did {
                    Did::Release | Did::ReleaseWithAView => {
                        single.release().await.expect("it is held")
                    }
                    _ => kept = Some(single),
                }
            }
        }
        if let (Did::LoseItsZnode, Some(single)) = (did, &kept) {
            administrator.delete(SINGLE).expect("it exists");
            single.lost().await;
        }
        let detached = session.detach([hold]).await;
        match did {
            Did::Hold => assert!(matches!(detached, Err(Error::InvalidInput(_))), "{did:?}"),
            _ => assert!(detached.is_ok(), "{did:?}: {detached:?}"),
        }
        drop((look, view, kept));
    }
}

/// The servers answer the deletion of a waiter's znode neither to the process that leaves nor, for
/// long, to the next one.
#[tokio::test(start_paused = true)]
async fn znode_of_a_waiter_goes_however_long_it_takes() {
    let simulation = simulation();
    let (session, hold) = held(&simulation).await;
    let waiter = queue(&session, PATH);
    let waiting = tokio::spawn(async move { waiter.acquire().await });
    let administrator = simulation.administrator();
    while administrator.children(PATH).len() < 2 {
        sleep(DELAY).await;
    }
    let never = || Fault::new(FaultKind::RequestLate(TIMEOUT)).on(RequestKind::Delete);
    simulation.faults().inject(never().of_process("first"));
    simulation.faults().inject(never().of_process("first"));
    let detached = session.detach([hold]).await.expect("it is held");
    assert!(waiting.await.expect("no panic").is_err());
    let late = Fault::new(FaultKind::RequestLate(TIMEOUT / 2)).on(RequestKind::Delete);
    simulation.faults().inject(late.of_process("second"));
    let session = resume(&simulation, &detached).await.expect("an answer");
    let hold = queue(&session, PATH).acquire().await.expect("it is left");
    sleep(TIMEOUT * 2).await;
    assert_eq!(administrator.children(PATH).len(), 1);
    assert_eq!(hold.state(), HoldState::Held);
}

/// Somebody deletes the znode, and the server of the next process hears of it late.
#[tokio::test(start_paused = true)]
async fn hold_that_is_taken_over_exists_at_the_leader() {
    let mut on_followers = 0;
    for seed in 0..10 {
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers: 3,
            session_timeout: TIMEOUT,
            tick: TICK,
            ..SimulationOptions::default()
        });
        let administrator = simulation.administrator();
        let (session, hold) = held(&simulation).await;
        let path = hold.node_path().to_owned();
        let detached = session.detach([hold]).await.expect("it is held");
        let session = resume(&simulation, &detached).await.expect("an answer");
        // Until the lease runs, the attempt would send a sync for it, and so would the next probe.
        sleep(TICK + TICK / 4).await;
        let server = administrator.server_of(detached.session_id());
        let follower = server.filter(|server| *server != administrator.leader());
        let Some(follower) = follower else { continue };
        on_followers += 1;
        simulation.faults().lag(follower, TICK);
        administrator.delete(&path).expect("it exists");
        let taken = queue(&session, PATH).acquire().await;
        assert!(
            matches!(taken, Err(Error::ContenderDeleted { .. })),
            "{taken:?}"
        );
    }
    assert!(on_followers > 0, "none was at a follower");
}

#[tokio::test(start_paused = true)]
async fn one_of_two_processes_that_resume_a_session_at_once_has_it() {
    let simulation = simulation();
    let detached = left(&simulation).await;
    let resume = async |process: &str| {
        let ensemble = simulation.ensemble(process);
        let session = Session::resume_in(ensemble, options(), &detached).await;
        session.expect("an answer")
    };
    let sessions = join(resume("second"), resume("third")).await;
    let sessions = [sessions.0, sessions.1];
    let id = Some(detached.session_id());
    assert_eq!(sessions.iter().filter(|it| it.id() == id).count(), 1);
    for session in &sessions {
        let taken = queue(session, PATH).try_acquire().await;
        let is_held = taken.expect("an answer").is_some();
        assert_eq!(is_held, session.id() == id);
    }
}

#[tokio::test(start_paused = true)]
async fn hold_is_released_if_the_attempt_that_takes_it_is_dropped() {
    let simulation = simulation();
    let detached = left(&simulation).await;
    let session = resume(&simulation, &detached).await.expect("an answer");
    let administrator = simulation.administrator();
    let taken = timeout(DELAY, queue(&session, PATH).acquire()).await;
    assert!(taken.is_err(), "no answer can come so soon");
    sleep(DELAY * 10).await;
    assert_eq!(administrator.children(PATH), [""; 0]);
}

/// The claim of a session would be lost with the process that is given the option.
#[tokio::test(start_paused = true)]
async fn option_that_does_not_fit_the_servers_costs_no_hold() {
    let simulation = simulation();
    let detached = left(&simulation).await;
    let misfit = ConnectOptions::new().tick(TIMEOUT * 2 / 3);
    let refused = Session::resume_in(simulation.ensemble("second"), misfit, &detached).await;
    assert!(
        matches!(refused, Err(Error::InvalidInput(_))),
        "{refused:?}"
    );
    let session = resume(&simulation, &copy(&detached))
        .await
        .expect("an answer");
    assert_eq!(session.id(), Some(detached.session_id()));
    let taken = queue(&session, PATH).try_acquire().await;
    assert!(taken.expect("an answer").is_some());
}

/// The servers commit the claim, and the answer comes too late for the first call.
#[tokio::test(start_paused = true)]
async fn second_call_takes_the_session_that_the_first_one_has_claimed() {
    for is_dropped in [false, true] {
        let simulation = simulation();
        let detached = left(&simulation).await;
        let late = Fault::new(FaultKind::ReplyLate(TIMEOUT / 2)).on(RequestKind::Transact);
        simulation.faults().inject(late.of_process("second"));
        let ensemble = simulation.ensemble("second");
        let briefly = match is_dropped {
            true => options(),
            false => options().connection_timeout(DELAY * 10),
        };
        let call = Session::resume_in(ensemble.clone(), briefly, &detached);
        match timeout(DELAY * 15, call).await {
            Err(_) => assert!(is_dropped, "it is dropped"),
            Ok(resumed) => assert!(matches!(resumed, Err(Error::Connect { .. })), "{resumed:?}"),
        }
        assert_eq!(simulation.faults().waiting(), 0, "the claim was sent");
        let session = Session::resume_in(ensemble, options(), &detached).await;
        let session = session.expect("an answer");
        assert_eq!(session.id(), Some(detached.session_id()), "{is_dropped}");
        let hold = queue(&session, PATH).try_acquire().await;
        let hold = hold.expect("an answer").expect("it is left");
        // Neither a later call nor another process has it, too.
        for detached in [detached.clone(), copy(&detached)] {
            // Otherwise the second process takes its session back before the third one has an answer.
            simulation.process("second").partition(DELAY * 10);
            let third = Session::resume_in(simulation.ensemble("third"), options(), &detached);
            let third = third.await.expect("an answer");
            assert_ne!(third.id(), session.id(), "{is_dropped}");
        }
        sleep(TIMEOUT).await;
        assert_eq!(hold.state(), HoldState::Held);
    }
}

/// The claim of a first process has no answer.
#[tokio::test(start_paused = true)]
async fn another_process_does_not_take_a_session_whose_claim_has_no_answer() {
    let simulation = simulation();
    let detached = left(&simulation).await;
    let late = Fault::new(FaultKind::ReplyLate(TIMEOUT / 2)).on(RequestKind::Transact);
    simulation.faults().inject(late.of_process("second"));
    let briefly = options().connection_timeout(DELAY * 10);
    let resumed = Session::resume_in(simulation.ensemble("second"), briefly, &detached).await;
    assert!(matches!(resumed, Err(Error::Connect { .. })), "{resumed:?}");
    let other = copy(&detached);
    let third = Session::resume_in(simulation.ensemble("third"), options(), &other).await;
    let third = third.expect("an answer");
    assert_ne!(third.id(), Some(detached.session_id()));
    let second = resume(&simulation, &detached).await.expect("an answer");
    assert_eq!(second.id(), Some(detached.session_id()));
}

/// The znode of a marked release is written by nobody but its owner, and by the super user.
#[tokio::test(start_paused = true)]
async fn inherited_hold_whose_znode_is_written_to_is_lost() {
    let simulation = simulation();
    let alone = |session: &Session| {
        Queue::new(session, PATH, crate::support::FirstAlone).expect("a good path")
    };
    let first = Session::open(simulation.ensemble("first"), options()).await;
    let first = first.expect("a session opens");
    let hold = alone(&first).acquire().await.expect("it is free");
    let znode = hold.node_path().to_owned();
    let third = Session::open(simulation.ensemble("third"), options()).await;
    let third = alone(&third.expect("a session opens"));
    let mut next = third.acquire().boxed();
    assert!(timeout(TICK, &mut next).await.is_err(), "it waits");
    let detached = first.detach([hold]).await.expect("it is held");
    let second = resume(&simulation, &detached).await.expect("an answer");
    let hold = alone(&second).acquire().await.expect("it is left");
    sleep(TIMEOUT).await;
    assert!(hold.is_held(), "{:?}", hold.state());

    simulation
        .administrator()
        .set_data(&znode, b"by hand")
        .expect("it exists");
    let next = timeout(TIMEOUT, next).await;
    let next = next
        .expect("it takes the write for a release")
        .expect("it holds");
    sleep(TIMEOUT * 3).await;
    assert!(next.is_held(), "{:?}", next.state());
    assert!(!hold.is_held(), "two hold for good");
}

#[tokio::test(start_paused = true)]
async fn inherited_hold_is_taken_at_its_own_path_only() {
    let simulation = simulation();
    let (session, hold) = held(&simulation).await;
    let znode = hold.node_path().to_owned();
    let detached = session.detach([hold]).await.expect("it is held");
    let second = resume(&simulation, &detached).await.expect("an answer");
    let other = queue(&second, "/locks/other").acquire().await;
    let other = other.expect("it is free").node_path().to_owned();
    assert!(other.starts_with("/locks/other/"), "{other}");
    let taken = queue(&second, PATH).acquire().await.expect("it is left");
    assert_eq!(taken.node_path(), znode);
}

/// From then on nobody may create the ticket of a session that is left there.
fn close_the_root(simulation: &Simulation) {
    let reads = [Acl::new(Permission::READ, AuthId::anyone())];
    let administrator = simulation.administrator();
    administrator.set_acl("/", &reads).expect("it exists");
}

#[tokio::test(start_paused = true)]
async fn session_is_left_though_nobody_may_create_a_child_of_the_root() {
    let simulation = simulation();
    let (session, hold) = held(&simulation).await;
    let znode = hold.node_path().to_owned();
    close_the_root(&simulation);
    let detached = session.detach([hold]).await.expect("it is held");
    assert_eq!(simulation.administrator().children("/locks").len(), 2);
    let second = resume(&simulation, &detached).await.expect("an answer");
    let hold = queue(&second, PATH).acquire().await.expect("it is left");
    assert_eq!(hold.node_path(), znode);
}

#[tokio::test(start_paused = true)]
async fn hold_whose_directory_is_gone_is_lost_and_not_left() {
    let simulation = simulation();
    let (session, hold) = held(&simulation).await;
    close_the_root(&simulation);
    // No event of this comes before the session is left.
    let administrator = simulation.administrator();
    for path in [hold.node_path(), PATH, "/locks"] {
        administrator.delete(path).expect("it exists");
    }
    let refused = session.detach([hold]).await.map(|left| left.session_id());
    let error = refused.expect_err("it is lost");
    let Error::Lost { reason, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(reason, LossReason::Deleted);
}

/// Somebody has deleted the znode, and has created one of the same name.
#[tokio::test(start_paused = true)]
async fn znode_of_another_owner_is_not_taken_over_as_an_inherited_hold() {
    let simulation = simulation();
    let (session, hold) = held(&simulation).await;
    let znode = hold.node_path().to_owned();
    let detached = session.detach([hold]).await.expect("it is held");
    let administrator = simulation.administrator();
    administrator.delete(&znode).expect("it exists");
    let again = administrator.create(&znode, b"", CreateMode::Persistent);
    again.expect("the name is free");
    let second = resume(&simulation, &detached).await.expect("an answer");
    let acquired = timeout(TIMEOUT, queue(&second, PATH).acquire()).await;
    let error = acquired.expect("an answer").expect_err("it is lost");
    assert!(matches!(error, Error::ContenderDeleted { .. }), "{error:?}");
}

/// The servers record the timeout with which a session was opened. A leader that is elected later
/// goes by it, until the session reconnects.
#[tokio::test(start_paused = true)]
async fn holder_that_resumed_with_a_longer_timeout_knows_its_loss_before_the_next_one_holds() {
    let simulation = Simulation::new(SimulationOptions {
        servers: 3,
        network_delay: DELAY / 10..=DELAY / 10,
        tick: TICK,
        ..SimulationOptions::default()
    });
    let (short, long) = (TICK * 3, TICK * 15);
    let first = options().session_timeout(short);
    let first = Session::open(simulation.ensemble("first"), first).await;
    let first = first.expect("a session opens");
    let hold = queue(&first, PATH).acquire().await.expect("it is free");
    let detached = first.detach([hold]).await.expect("it is held");

    let second = options().session_timeout(long);
    let second = Session::resume_in(simulation.ensemble("second"), second, &detached).await;
    let second = second.expect("an answer");
    let hold = queue(&second, PATH).acquire().await.expect("it is left");
    sleep(long).await;
    assert!(hold.is_held(), "{:?}", hold.state());

    // One broken network: the second process, and the leader, are cut off from the other servers.
    let leader = simulation.administrator().leader();
    simulation.process("second").partition(long * 4);
    simulation.faults().elect((leader + 1) % 3, TICK);
    let third = Session::open(simulation.ensemble("third"), options()).await;
    let third = third.expect("a session opens");
    let next = timeout(long * 2, queue(&third, PATH).acquire()).await;
    let next = next.expect("in time").expect("it is free");
    assert!(
        !(next.is_held() && hold.is_held()),
        "two hold, and the first still for {:?}",
        hold.remaining()
    );
}

/// The ticket still exists, so only the name of the first call distinguishes it from a later one.
#[tokio::test(start_paused = true)]
async fn call_after_one_that_has_the_session_gets_a_session_of_its_own() {
    let simulation = simulation();
    let detached = left(&simulation).await;
    let late = Fault::new(FaultKind::RequestLate(TIMEOUT)).on(RequestKind::Delete);
    simulation.faults().inject(late.of_process("second"));
    let second = resume(&simulation, &detached).await.expect("an answer");
    assert_eq!(second.id(), Some(detached.session_id()));
    // Otherwise the second process takes its session back before the third one has an answer.
    simulation.process("second").partition(DELAY * 10);
    let third = Session::resume_in(simulation.ensemble("third"), options(), &detached).await;
    let third = third.expect("an answer");
    let children = simulation.administrator().children("/");
    let is_ticket = |name: &String| name.starts_with("zookeeper-recipes-detached-");
    assert!(children.iter().any(is_ticket), "{children:?}");
    assert_ne!(third.id(), second.id());
    let hold = queue(&second, PATH).acquire().await.expect("it is left");
    let taken = queue(&third, PATH).try_acquire().await;
    assert!(taken.expect("an answer").is_none());
    sleep(TIMEOUT * 2).await;
    assert_eq!(hold.state(), HoldState::Held);
    assert_eq!(second.id(), Some(detached.session_id()));
}
