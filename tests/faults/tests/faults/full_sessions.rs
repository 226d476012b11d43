//! A session with as many ephemeral znodes as the servers can list in the transaction that ends it.

use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt, BufReader};
use zookeeper_recipes_core::{ConnectOptions, Error, Hold, Refusal, Session};
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{LONG, PATIENCE, SHORT, TICK, administrator, create, in_time};
use zookeeper_recipes_testkit::{Ensemble, ServerOptions};

/// The `jute.maxbuffer` of the servers, which then read at most 1,024 bytes more.
const MAX_BUFFER: usize = 256 * 1024;
const EXTRA: usize = 1024;

/// Set for the child process, which fills its session.
const HOLDER: &str = "ZOOKEEPER_RECIPES_FULL_HOLDER";
const TEST: &str = "full_sessions::ensemble_outlives_a_full_session";
/// Begins the line of the child once its session is full.
const FULL: &str = "the session is full after ";

const CHROOT: &str = "/a-chroot";

async fn session_below_chroot(ensemble: &str, timeout: Duration) -> Session {
    let options = ConnectOptions::new()
        .session_timeout(timeout)
        .connection_timeout(PATIENCE)
        .jute_maxbuffer(MAX_BUFFER);
    let opened = Session::connect_with(&format!("{ensemble}{CHROOT}"), options).await;
    opened.expect("a session opens")
}

fn lock(session: &Session, number: usize) -> ExclusiveLock {
    ExclusiveLock::new(session, format!("/locks/{number}")).expect("a good path")
}

/// Acquires locks until the session refuses one, and then holds them until it is killed.
async fn fill_a_session(ensemble: &str) {
    const AT_A_TIME: usize = 100;
    let session = session_below_chroot(ensemble, SHORT).await;
    let mut held: Vec<Hold> = Vec::new();
    loop {
        let numbers = held.len()..held.len() + AT_A_TIME;
        let locks: Vec<_> = numbers.map(|number| lock(&session, number)).collect();
        for acquired in join_all(locks.iter().map(ExclusiveLock::acquire)).await {
            match acquired {
                Ok(hold) => held.push(hold),
                Err(Error::Refused {
                    refusal: Refusal::TooManyEphemerals { .. },
                    ..
                }) => {
                    // On a busy machine a session may expire, and the next one is full then.
                    let full = held.iter().filter(|hold| hold.is_held()).count();
                    println!("\n{FULL}{full}");
                    return std::future::pending().await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Runs a process whose session becomes full, and kills it then.
async fn kill_a_full_session(ensemble: &str) {
    let child = tokio::process::Command::new(std::env::current_exe().expect("a test binary"))
        .args(["--exact", TEST, "--nocapture"])
        .env(HOLDER, ensemble)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = child.expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let full = async {
        loop {
            let line = lines.next_line().await.expect("it can be read");
            if let Some(locks) = line.expect("it has not ended").strip_prefix(FULL) {
                return locks.parse::<usize>().expect("a number");
            }
        }
    };
    let locks = in_time("the session is full", full).await;
    // A lock has 4 bytes, the chroot, its path, and the name of its znode.
    assert!((2_500..4_000).contains(&locks), "{locks}");
    child.kill().await.expect("it is killed");
}

/// With a shorter list by each znode, no member could read the end of the session.
#[tokio::test(flavor = "multi_thread")]
async fn ensemble_outlives_a_full_session() {
    if let Ok(ensemble) = std::env::var(HOLDER) {
        return fill_a_session(&ensemble).await;
    }
    let options = ServerOptions::new()
        .tick_time(TICK)
        .system_property("jute.maxbuffer", MAX_BUFFER.to_string())
        .system_property("zookeeper.jute.maxbuffer.extrasize", EXTRA.to_string());
    let mut ensemble = Ensemble::start(3, options).await.expect("an ensemble");
    let connect_string = ensemble.connect_string();
    create(&administrator(&*connect_string).await, CHROOT).await;
    kill_a_full_session(&connect_string).await;
    let next = session_below_chroot(&connect_string, LONG).await;
    let hold = in_time("the session has expired", lock(&next, 0).acquire()).await;
    hold.expect("the servers have ended it")
        .release()
        .await
        .expect("it is held");
    for member in 0..3 {
        ensemble.restart(member).await.expect("it reads its log");
    }
    ensemble.wait_until_all_serve().await.expect("all serve");
    let again = session_below_chroot(&connect_string, LONG).await;
    let hold = in_time("the ensemble serves", lock(&again, 0).acquire()).await;
    hold.expect("it is free")
        .release()
        .await
        .expect("it is held");
}
