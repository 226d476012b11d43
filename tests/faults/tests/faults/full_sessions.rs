//! A session with as many ephemeral znodes as the servers can list in the transaction that ends it.

use crate::support::*;

/// The `jute.maxbuffer` of the servers, which then read at most 1,024 bytes more.
const MAX_BUFFER: usize = 256 * 1024;
const EXTRA: usize = 1024;

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

/// Acquires locks until the session refuses one.
async fn fill(session: &Session) -> Vec<Hold> {
    const AT_A_TIME: usize = 100;
    let mut held = Vec::new();
    loop {
        let numbers = held.len()..held.len() + AT_A_TIME;
        let locks: Vec<_> = numbers.map(|number| lock(session, number)).collect();
        for acquired in join_all(locks.iter().map(ExclusiveLock::acquire)).await {
            match acquired {
                Ok(hold) => held.push(hold),
                Err(Error::Refused {
                    refusal: Refusal::TooManyEphemerals { .. },
                    ..
                }) => return held,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// With a shorter list by each znode, no member could read the end of the session.
#[tokio::test(flavor = "multi_thread")]
async fn ensemble_outlives_a_full_session() {
    let options = ServerOptions::new()
        .tick_time(TICK)
        .system_property("jute.maxbuffer", MAX_BUFFER.to_string())
        .system_property("zookeeper.jute.maxbuffer.extrasize", EXTRA.to_string());
    let mut ensemble = Ensemble::start(3, options).await.expect("an ensemble");
    let connect_string = ensemble.connect_string();
    create(&administrator(&*connect_string).await, CHROOT).await;
    let proxy = proxy(&ensemble.members()[0]).await;
    let full = session_below_chroot(&proxy.connect_string(), SHORT).await;
    let held = fill(&full).await;
    // On a busy machine a session may expire, and the next one is full then.
    let locks = held.iter().filter(|hold| hold.is_held()).count();
    // A lock has 4 bytes, the chroot, its path, and the name of its znode.
    assert!((2_500..4_000).contains(&locks), "{locks}");
    proxy.freeze();
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
