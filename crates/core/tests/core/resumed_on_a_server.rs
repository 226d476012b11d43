//! A resumed session on a real server that starts again.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{ConnectOptions, Queue, Session};
use zookeeper_recipes_testkit::{Server, ServerOptions, proxy::Proxy};

use crate::support::First;

const TICK: Duration = Duration::from_secs(1);

/// A server that starts goes by the timeout with which each session was opened.
#[tokio::test(flavor = "multi_thread")]
async fn holder_that_resumed_with_a_longer_timeout_is_lost_in_time_after_a_restart() {
    let mut server = Server::start(ServerOptions::new().tick_time(TICK))
        .await
        .expect("it starts");
    let proxy = Proxy::start(server.connect_string())
        .await
        .expect("a proxy");
    let options = |timeout| ConnectOptions::new().tick(TICK).session_timeout(timeout);
    let queue = |session: &Session| Queue::new(session, "/locks/left", First).expect("a path");

    let first = Session::connect_with(&server.connect_string(), options(TICK * 3)).await;
    let first = first.expect("a session opens");
    let hold = queue(&first).acquire().await.expect("it is free");
    let detached = first.detach([hold]).await.expect("it is held");

    let second = Session::resume(&proxy.connect_string(), options(TICK * 20), &detached).await;
    let second = second.expect("it resumes");
    let hold = queue(&second).acquire().await.expect("it is left");
    sleep(TICK * 6).await;
    assert!(hold.is_held(), "{:?}", hold.state());

    // The network of the second process breaks, and the server starts again.
    proxy.freeze();
    server.kill().await.expect("it ends");
    server.restart().await.expect("it starts");
    let third = Session::connect_with(&server.connect_string(), options(TICK * 3)).await;
    let third = third.expect("a session opens");
    let next = timeout(TICK * 40, queue(&third).acquire()).await;
    let next = next.expect("in time").expect("it is free");
    assert!(
        !(next.is_held() && hold.is_held()),
        "two hold, and the first still for {:?}",
        hold.remaining()
    );
}
