//! The own close of a session is no loss: neither a warning nor a count says so.

use zookeeper_recipes::election::RunError;
use zookeeper_recipes::lock::LockOptions;
use zookeeper_recipes::{
    Error, ExclusiveLock, Group, Hold, HoldState, LeaderElection, LossReason, Session, SessionEnd,
    SingleNodeLock,
};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::log::{Line, Log};

use crate::{assert_logged, debug, info, listen, token, warn};

const PATH: &str = "/locks/closing";

async fn hold(session: &Session) -> Hold {
    let options = LockOptions::new().name("closing");
    let lock = ExclusiveLock::with_options(session, PATH, options).expect("a good path");
    lock.acquire().await.expect("free")
}

fn since(log: &Log, before: usize) -> Vec<Line> {
    log.lines().split_off(before)
}

#[tokio::test(start_paused = true)]
async fn close_of_the_session_ends_its_holds_without_a_warning() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::default();
    let session = simulation.session("one").await.expect("it opens");
    let lock = hold(&session).await;
    let single = SingleNodeLock::new(&session, "/single").expect("a good path");
    let single = single.acquire().await.expect("free");
    let election = LeaderElection::new(&session, "/leader", "one").expect("a good path");
    let leadership = election.acquire().await.expect("free");
    let group = Group::new(&session, "/group").expect("a good path");
    let member = group.join("one", b"").await.expect("nobody has the name");

    let before = log.lines().len();
    session.close().await;
    let closed = HoldState::Lost(LossReason::Session(SessionEnd::Closed));
    assert_eq!(lock.state(), closed);
    let mut holds = member.holds();
    // An error means that the member has ended.
    while holds.changed().await.is_ok() {}
    let lines = since(&log, before);
    let ended = |line: &&Line| line.message.ends_with("by close");
    let ended: Vec<Line> = lines.iter().filter(ended).cloned().collect();
    let of = |hold: i64| vec![token(hold)];
    let expected = [
        debug("ended by close", of(lock.fencing_token().get())),
        debug("ended by close", of(single.fencing_token().get())),
        info("resigned by close", of(leadership.fencing_token().get())),
        debug("ended by close", vec![]),
    ];
    assert_logged(&ended, &expected);
    let warned = lines.iter().find(|line| line.level == tracing::Level::WARN);
    assert!(warned.is_none(), "{warned:?}");
}

#[tokio::test(start_paused = true)]
async fn close_of_the_session_of_a_waiting_candidate_is_no_warning() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::default();
    let leading = simulation.session("one").await.expect("it opens");
    let leading = LeaderElection::new(&leading, "/leader", "one").expect("a good path");
    let _leadership = leading.acquire().await.expect("free");
    let session = simulation.session("two").await.expect("it opens");
    let waiting = LeaderElection::new(&session, "/leader", "two").expect("a good path");
    let campaign = tokio::spawn({
        let waiting = waiting.clone();
        async move {
            let never = std::future::pending();
            let work = async |_| Ok::<_, std::convert::Infallible>(());
            waiting.run(never, work).await
        }
    });
    while leading.contenders().await.expect("an answer").len() < 2 {}

    let before = log.lines().len();
    session.close().await;
    let ended = campaign.await.expect("no panic");
    let closed = SessionEnd::Closed;
    assert!(
        matches!(&ended, Err(RunError::Election(Error::NoSession { reason, .. })) if *reason == closed),
        "{ended:?}"
    );
    let lines = since(&log, before);
    let warned = lines.iter().find(|line| line.level == tracing::Level::WARN);
    assert!(warned.is_none(), "{warned:?}");
}

#[tokio::test(start_paused = true)]
async fn end_of_the_session_by_its_servers_is_a_loss() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::default();
    let session = simulation.session("one").await.expect("it opens");
    let hold = hold(&session).await;
    let before = log.lines().len();
    simulation.administrator().expire(hold.session_id());
    hold.lost().await;
    drop(hold);
    let lines = since(&log, before);
    let lost: Vec<Line> = lines
        .into_iter()
        .filter(|line| ["lost", "ended by close"].contains(&&*line.message))
        .collect();
    assert_logged(&lost, &[warn("lost", vec![])]);
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn close_of_the_session_is_counted_as_a_release() {
    let _alone = crate::ALONE.lock().await;
    let recorder = crate::recorder::Recorded::default();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let simulation = Simulation::default();
    let session = simulation.session("one").await.expect("it opens");
    let hold = hold(&session).await;
    session.close().await;
    drop(hold);
    let of_lock = r#"{recipe="lock",name="closing"}"#;
    let value = |metric: &str| recorder.value(&format!("zookeeper_recipes_{metric}{of_lock}"));
    assert_eq!(value("released_total"), 1.0);
    assert_eq!(value("holding"), 0.0);
    let counted = format!("{recorder:?}");
    assert!(!counted.contains("lost_total"), "{counted}");
}
