//! Servers that come back from a restart with another configuration.

use zookeeper_recipes_suite::{KINDS, LATE, SHORT, TICK, in_time, server, session};

use crate::support::works_with_each_kind;

#[tokio::test(flavor = "multi_thread")]
async fn sessions_go_on_when_servers_no_longer_know_digest() {
    let mut server = server().await;
    let session = session(&server, SHORT).await;
    let mut holds = Vec::new();
    for &kind in KINDS {
        let hold = kind.on(&session, "held").acquire().await;
        holds.push(hold.expect("it is free"));
    }
    server
        .set_configuration("DigestAuthenticationProvider.enabled", "false")
        .expect("it is written");
    server.restart().await.expect("it serves again");
    for hold in &holds {
        // The session's identity cannot be shown any more.
        in_time("the loss", hold.lost()).await;
    }
    works_with_each_kind(&session, "held", SHORT + TICK + LATE).await;
}
