//! The own close of a session is no loss: neither a warning nor a count says so.

use zookeeper_recipes::election::RunError;
use zookeeper_recipes::{Group, HoldState};

use crate::*;

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
    let _single = single.acquire().await.expect("free");
    let election = LeaderElection::new(&session, "/leader", "one").expect("a good path");
    let _leadership = election.acquire().await.expect("free");
    let group = Group::new(&session, "/group").expect("a good path");
    let member = group.join("one", b"").await.expect("nobody has the name");
    let other = simulation.session("two").await.expect("it opens");
    let leading = LeaderElection::new(&other, "/others", "two").expect("a good path");
    let _others = leading.acquire().await.expect("free");
    let waiting = LeaderElection::new(&session, "/others", "one").expect("a good path");
    let campaign = tokio::spawn(async move {
        let work = async |_| Ok::<_, std::convert::Infallible>(());
        waiting.run(std::future::pending(), work).await
    });
    while leading.contenders().await.expect("an answer").len() < 2 {}

    let before = log.lines().len();
    session.close().await;
    let closed = HoldState::Lost(LossReason::Session(SessionEnd::Closed));
    assert_eq!(lock.state(), closed);
    let mut holds = member.holds();
    // An error means that the member has ended.
    while holds.changed().await.is_ok() {}
    let ended = campaign.await.expect("no panic");
    assert!(
        matches!(
            ended,
            Err(RunError::Election(Error::NoSession {
                reason: SessionEnd::Closed,
                ..
            }))
        ),
        "{ended:?}"
    );
    let lines = since(&log, before);
    let ended = lines.iter().filter(|it| it.message.ends_with("by close"));
    assert_snapshot!(shown::events(ended), @"
    DEBUG hold: ended by close | held 0s | path /locks/closing | token #0
    DEBUG hold: ended by close | held 0s | path /single | token #1
    INFO hold: resigned by close | held 0s | path /leader | token #2
    DEBUG hold: ended by close | held 0s | path /group/one | token #3
    ");
    let warned = lines.iter().find(|line| line.level == tracing::Level::WARN);
    assert!(warned.is_none(), "{warned:?}");
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn close_of_the_session_is_counted_as_a_release() {
    let _alone = crate::ALONE.lock().await;
    let recorder = metrics_util::debugging::DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let simulation = Simulation::default();
    let session = simulation.session("one").await.expect("it opens");
    let hold = hold(&session).await;
    session.close().await;
    drop(hold);
    let metrics = shown::metrics(&recorder);
    let of_lock = r#"recipe="lock" name="closing""#;
    assert!(
        metrics.contains(&format!("released_total {of_lock}: 1")),
        "{metrics}"
    );
    assert!(
        metrics.contains(&format!("holding {of_lock}: 0")),
        "{metrics}"
    );
    assert!(!metrics.contains("lost_total"), "{metrics}");
}
