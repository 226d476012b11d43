//! Sessions that are closed while contenders wait in them.

use std::time::Instant;

use futures_util::FutureExt;
use zookeeper_recipes_core::{LossReason, SessionEnd};
use zookeeper_recipes_suite::{KINDS, LONG, SHORT, TestServer, in_time, on_both_servers, session};

use crate::support::{acquire, acquired, assert_session_over, held, queue_length};

on_both_servers!(apache at night:
    close_does_not_wait_for_attempts_that_nobody_polls,);

async fn close_does_not_wait_for_attempts_that_nobody_polls(server: TestServer) {
    let closing = session(&server, LONG).await;
    let rival = session(&server, LONG).await;
    let mut firsts = Vec::new();
    let mut holds = Vec::new();
    let mut nexts = Vec::new();
    let mut parked = Vec::new();
    for &kind in KINDS {
        firsts.push(held(kind.rival_on(&rival, "awaited")).await);
        holds.push(held(kind.on(&closing, "held")).await);
        let next = acquire(kind.rival_on(&rival, "held"));
        queue_length(kind, &*kind.rival_on(&rival, "held"), 2).await;
        nexts.push((kind, next));
        let (recipe, seen) = (
            kind.on(&closing, "awaited"),
            kind.rival_on(&rival, "awaited"),
        );
        let mut attempt = async move { recipe.acquire().await }.boxed();
        tokio::select! {
            biased;
            _ = &mut attempt => panic!("{kind:?}: held twice"),
            () = queue_length(kind, &*seen, 2) => {}
        }
        parked.push((kind, attempt));
    }
    let began = Instant::now();
    in_time("the close", closing.close()).await;
    let took = began.elapsed();
    for hold in &holds {
        let reason = hold.lost().await;
        assert_eq!(reason, LossReason::Session(SessionEnd::Closed));
    }
    assert!(took < SHORT, "closed after {took:?}");
    for (kind, next) in nexts {
        let next = acquired(kind.name, next).await;
        next.release().await.expect("it is released");
    }
    let took = began.elapsed();
    assert!(took < SHORT, "the next ones held after {took:?}");
    for (kind, attempt) in parked {
        let outcome = in_time(kind.name, attempt).await;
        assert_session_over(kind, outcome, SessionEnd::Closed);
    }
}
