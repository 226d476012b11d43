//! Tests of `src/driver/resolver.rs`.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::*;

const LONG: Duration = Duration::from_secs(30);

fn zk() -> Host {
    let name = "zk".to_owned();
    Host { name, port: 2181 }
}

/// A resolver whose look-ups last until the sender says what they find.
fn slow() -> (Arc<Resolver>, mpsc::Sender<io::Result<Vec<SocketAddr>>>) {
    let (to, found) = mpsc::channel();
    let found = Mutex::new(found);
    let gone = |_| io::Error::other("the test has ended");
    let resolver = Resolver::by(move |_| lock(&found).recv().map_err(gone)?);
    (Arc::new(resolver), to)
}

#[tokio::test]
async fn callers_that_ask_meanwhile_get_the_result_of_one_look_up() {
    let (resolver, to) = slow();
    let address: SocketAddr = "10.0.0.1:2181".parse().expect("an address");
    let both = [resolver.look_up(&zk()), resolver.look_up(&zk())];
    to.send(Ok(vec![address])).expect("it is looked up");
    for found in both {
        assert_eq!(found.await.expect("it is found"), [address]);
    }
    // What is known stays after a failure.
    let failed = resolver.look_up(&zk());
    to.send(Err(io::Error::other("no name server")))
        .expect("it is looked up");
    assert!(matches!(failed.await, Err(DisconnectReason::NoAddress(_))));
    assert_eq!(resolver.known(&zk()), [address]);
}

#[test]
fn runtime_does_not_wait_for_a_look_up() {
    let (resolver, _to) = slow();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.spawn(resolver.look_up(&zk()));
    let since = Instant::now();
    drop(runtime);
    assert!(since.elapsed() < LONG);
    // Its thread still runs, and no other one is begun.
    let (to, _found) = oneshot::channel();
    assert!(!resolver.waits(&zk(), to));
}

#[tokio::test]
async fn system_looks_names_up() {
    let resolver = Arc::new(Resolver::default());
    let host = Host {
        name: "localhost".to_owned(),
        port: 7,
    };
    let found = resolver.look_up(&host).await.expect("each system knows it");
    assert!(
        found
            .iter()
            .all(|it| it.ip().is_loopback() && it.port() == 7)
    );
    let host = Host {
        name: "no-such-name.invalid".to_owned(),
        port: 7,
    };
    let error = resolver.look_up(&host).await.expect_err("no address");
    assert!(matches!(error, DisconnectReason::NoAddress(_)), "{error:?}");
}
