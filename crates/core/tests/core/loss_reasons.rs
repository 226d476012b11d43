//! The reason of a loss: each report of one loss names the same reason, and the right one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_core::{
    ConnectOptions, Ended, Error, Hold, HoldState, LossReason, Queue, Session, SessionEnd,
};
use zookeeper_recipes_simulation::{
    Administrator, Fault, FaultKind, RequestKind, Simulation, SimulationOptions,
};

use crate::altered_ensemble::{Alterations, Altered};
use crate::support::First;

const TICK: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(10);
const MILLISECOND: Duration = Duration::from_millis(1);
const EXPIRED: LossReason = LossReason::Session(SessionEnd::Expired);

/// The hold of a process that has a watch on its znode.
struct Watched {
    simulation: Simulation,
    administrator: Administrator,
    session: Session,
    hold: Hold,
}

async fn watched() -> Watched {
    let simulation = Simulation::new(SimulationOptions {
        tick: TICK,
        session_timeout: TIMEOUT,
        ..SimulationOptions::default()
    });
    let administrator = simulation.administrator();
    let options = ConnectOptions::new().tick(TICK);
    let session = Session::open(simulation.ensemble("one"), options).await;
    let session = session.expect("a session opens");
    let queue = Queue::new(&session, "/locks/a", First).expect("a good path");
    let hold = queue.acquire().await.expect("nobody is before it");
    let path = hold.node_path().to_owned();
    let is_watched = || administrator.watches().iter().any(|it| it.path == path);
    while !is_watched() {
        sleep(MILLISECOND).await;
    }
    Watched {
        simulation,
        administrator,
        session,
        hold,
    }
}

impl Watched {
    fn expire(&self) {
        self.administrator.expire(self.hold.session_id());
    }

    fn delete(&self) {
        let deleted = self.administrator.delete(self.hold.node_path());
        deleted.expect("it exists");
    }

    /// Waits until the hold is not held, without a question for the reason.
    async fn until_not_held(&self) {
        while self.hold.is_held() {
            sleep(MILLISECOND).await;
        }
    }

    async fn until_the_session_is_replaced(&self) {
        while self.session.id() == Some(self.hold.session_id()) {
            sleep(MILLISECOND).await;
        }
    }

    /// Each report of the loss, also after the session is over, names this reason.
    async fn assert_lost_for(self, reason: LossReason) {
        let (hold, view) = (&self.hold, self.hold.view());
        let lost = timeout(TIMEOUT * 3, hold.lost()).await;
        assert_eq!(lost.expect("it is lost"), reason, "lost()");
        assert_eq!(hold.state(), HoldState::Lost(reason), "state()");
        assert_eq!(view.ended().await, Ended::Lost(reason), "ended()");
        self.administrator.expire(hold.session_id());
        self.until_the_session_is_replaced().await;
        assert_eq!(hold.state(), HoldState::Lost(reason), "state(), later");
        assert_eq!(hold.lost().await, reason, "lost(), later");
        let released = self.hold.release().await;
        let Err(Error::Lost { reason: named, .. }) = released else {
            panic!("{released:?}");
        };
        assert_eq!(named, reason, "release()");
        assert_eq!(view.state(), HoldState::Lost(reason), "a view's state()");
    }
}

impl Watched {
    /// Delays the answers to the next requests of the holder's process by this time.
    fn answer_late(&self, late: Duration) {
        let faults = self.simulation.faults();
        faults.inject(Fault::new(FaultKind::ReplyLate(late)).on(RequestKind::Sync));
    }
}

#[tokio::test(start_paused = true)]
async fn expiry_is_no_deletion_by_another_client() {
    let watched = watched().await;
    watched.expire();
    watched.assert_lost_for(EXPIRED).await;
}

#[tokio::test(start_paused = true)]
async fn deletion_by_another_client_stays_one_when_the_session_ends() {
    let watched = watched().await;
    watched.delete();
    watched.assert_lost_for(LossReason::Deleted).await;
}

/// The lease has run out, and the znode is deleted with the session, before the process continues.
#[tokio::test(start_paused = true)]
async fn lapse_in_a_pause_stays_one_whether_or_not_somebody_asks_first() {
    for asks_first in [true, false] {
        let watched = watched().await;
        let process = watched.simulation.process("one");
        process.sleep(TIMEOUT * 2);
        sleep(TIMEOUT * 2 - MILLISECOND).await;
        let lapsed = LossReason::LeaseElapsed;
        match asks_first {
            true => assert_eq!(watched.hold.state(), HoldState::Lost(lapsed)),
            false => watched.until_the_session_is_replaced().await,
        }
        watched.assert_lost_for(lapsed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn end_of_the_session_during_an_outage_stays_one_when_the_lease_would_have_ended() {
    let watched = watched().await;
    let outage = watched.hold.remaining() / 2;
    watched.simulation.process("one").partition(outage);
    watched.expire();
    watched.until_not_held().await;
    sleep(TIMEOUT * 2).await;
    watched.assert_lost_for(EXPIRED).await;
}

#[tokio::test(start_paused = true)]
async fn hold_is_not_held_at_once_after_a_deletion_and_names_the_reason_after_an_answer() {
    const LATE: Duration = Duration::from_millis(300);
    let watched = watched().await;
    watched.answer_late(LATE);
    watched.delete();
    let began = Instant::now();
    watched.until_not_held().await;
    assert!(began.elapsed() < LATE / 3, "{:?}", began.elapsed());
    assert_eq!(watched.hold.remaining(), Duration::ZERO);
    let reason = watched.hold.lost().await;
    assert!(began.elapsed() >= LATE);
    assert_eq!(reason, LossReason::Deleted);
    watched.assert_lost_for(LossReason::Deleted).await;
}

#[tokio::test(start_paused = true)]
async fn work_ends_at_once_after_a_deletion_though_the_reason_comes_later() {
    const LATE: Duration = Duration::from_millis(300);
    let watched = watched().await;
    watched.answer_late(LATE);
    let worked_at = Arc::new(Mutex::new(Instant::now()));
    let noted = worked_at.clone();
    let work = async move {
        loop {
            *noted.lock().expect("no panic") = Instant::now();
            sleep(MILLISECOND).await;
        }
    };
    watched.delete();
    let deleted = Instant::now();
    let ended: Result<(), _> = watched.hold.run_until_lost(work).await;
    assert_eq!(ended, Err(LossReason::Deleted));
    let worked = *worked_at.lock().expect("no panic") - deleted;
    assert!(worked < LATE / 3 && deleted.elapsed() >= LATE, "{worked:?}");
}

#[tokio::test(start_paused = true)]
async fn release_after_a_deletion_waits_for_the_reason() {
    let watched = watched().await;
    watched.expire();
    watched.until_not_held().await;
    let released = watched.hold.release().await;
    let is_expiry = matches!(&released, Err(Error::Lost { reason, .. }) if *reason == EXPIRED);
    assert!(is_expiry, "{released:?}");
}

/// A report that cannot wait names what is known, and each later report names the same.
#[tokio::test(start_paused = true)]
async fn reason_that_was_asked_for_before_it_was_known_stays_open() {
    for expires in [true, false] {
        let watched = watched().await;
        match expires {
            true => watched.expire(),
            false => watched.delete(),
        }
        watched.until_not_held().await;
        let reason = LossReason::DeletedOrSessionOver;
        assert_eq!(watched.hold.state(), HoldState::Lost(reason));
        watched.assert_lost_for(reason).await;
    }
}

/// The documented limit for a deletion by hand is a sixth of the timeout.
#[tokio::test(start_paused = true)]
async fn reason_of_a_deletion_is_open_if_no_server_answers_in_time() {
    let watched = watched().await;
    watched.answer_late(TIMEOUT / 2);
    watched.delete();
    watched.until_not_held().await;
    let began = Instant::now();
    watched.hold.lost().await;
    assert!(began.elapsed() <= TIMEOUT / 20 + MILLISECOND);
    watched
        .assert_lost_for(LossReason::DeletedOrSessionOver)
        .await;
}

#[tokio::test(start_paused = true)]
async fn guarded_write_names_the_reason_that_its_hold_has() {
    let watched = watched().await;
    let lapses = watched.hold.remaining() + MILLISECOND;
    watched.simulation.process("one").partition(lapses);
    sleep(lapses).await;
    // The session deletes the znode of the lost hold.
    sleep(TIMEOUT / 2).await;
    let written = watched.hold.transaction().delete("/none").commit().await;
    let lapsed = LossReason::LeaseElapsed;
    let is_lapse = matches!(&written, Err(Error::Lost { reason, .. }) if *reason == lapsed);
    assert!(is_lapse, "{written:?}");
}

/// The outcome of a waiter whose znode goes while its server still answers the reads of its session.
async fn waiter_that_goes(by: impl FnOnce(&Administrator, &Session, &str)) -> Error {
    let simulation = Simulation::new(SimulationOptions {
        tick: TICK,
        session_timeout: TIMEOUT,
        ..SimulationOptions::default()
    });
    let administrator = simulation.administrator();
    let holder = Session::open(simulation.ensemble("holder"), ConnectOptions::new()).await;
    let holder = Queue::new(&holder.expect("a session opens"), "/locks/a", First);
    let hold = holder.expect("a good path").acquire().await;
    let hold = hold.expect("nobody is before it");
    let other = simulation.process("other").connect().await;
    let alterations = Alterations::default();
    let reads_in = alterations.reads_in.clone();
    let ensemble = Altered {
        ensemble: simulation.ensemble("waiter"),
        alterations,
    };
    let session = Session::open(Arc::new(ensemble), ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    let queue = Queue::new(&session, "/locks/a", First).expect("a good path");
    let waiting = tokio::spawn(async move { queue.acquire().await });
    let own = loop {
        sleep(MILLISECOND).await;
        assert!(!waiting.is_finished(), "{waiting:?}");
        let mut watches = administrator.watches().into_iter();
        let own = watches.find(|it| it.process == "waiter" && it.path != hold.node_path());
        if let Some(own) = own.filter(|it| it.path.starts_with("/locks/a/")) {
            break own.path;
        }
    };
    *reads_in.lock().expect("no panic") = Some(other.expect("a session opens"));
    let began = Instant::now();
    by(&administrator, &session, &own);
    let outcome = timeout(TIMEOUT, waiting).await.expect("in time");
    assert!(began.elapsed() < TIMEOUT / 10, "{:?}", began.elapsed());
    outcome.expect("no panic").expect_err("its znode has gone")
}

#[tokio::test(start_paused = true)]
async fn waiter_whose_session_expires_does_not_blame_another_client() {
    let expire = |administrator: &Administrator, session: &Session, _: &str| {
        administrator.expire(session.id().expect("it is open"));
    };
    let error = waiter_that_goes(expire).await;
    let is_expiry =
        matches!(&error, Error::SessionOver { reason, .. } if *reason == SessionEnd::Expired);
    assert!(is_expiry, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn waiter_whose_znode_is_deleted_by_hand_says_so() {
    let delete = |administrator: &Administrator, _: &Session, own: &str| {
        administrator.delete(own).expect("it exists");
    };
    let error = waiter_that_goes(delete).await;
    assert!(matches!(error, Error::ContenderDeleted { .. }), "{error:?}");
}

/// The session ends while its client reconnects. The servers delete its znodes, and close the
/// connection that has just been confirmed.
#[tokio::test(start_paused = true)]
async fn attempt_whose_session_ends_during_a_reconnect_blames_no_other_client() {
    for seed in 0..400 {
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers: 3,
            network_delay: MILLISECOND..=MILLISECOND * 20,
            follower_lag: Duration::ZERO..=Duration::ZERO,
            ..SimulationOptions::default()
        });
        let queue = async |process| {
            let session = Session::open(simulation.ensemble(process), ConnectOptions::new());
            let session = session.await.expect("a session opens");
            Queue::new(&session, "/locks/a", First).expect("a good path")
        };
        let (holder, waiter) = (queue("holder").await, queue("waiter").await);
        let session = waiter.session().id().expect("it is open");
        let held = holder.acquire().await.expect("it is free");
        let waiting = tokio::spawn(async move { waiter.acquire().await });
        sleep(Duration::from_secs(1)).await;
        simulation.process("waiter").disconnect();
        sleep(MILLISECOND * (seed as u32 % 80)).await;
        simulation.administrator().expire(session);
        let failed = waiting.await.expect("no panic").expect_err("it is over");
        assert!(
            matches!(failed, Error::SessionOver { .. }),
            "{seed}: {failed}"
        );
        drop(held);
    }
}
