//! The longest data that a recipe takes.

use zookeeper_recipes_lock::{SingleNodeLock, SingleNodeOptions};

use crate::support::*;

on_both_servers!(longest_data_that_is_not_refused_is_taken_by_the_server);

async fn longest_data_that_is_not_refused_is_taken_by_the_server(server: TestServer) {
    let proxy = proxy(&server).await;
    let session = session(&proxy, LONG).await;
    let make = |kind: u32, data: usize| {
        let data = vec![b'x'; data];
        let path = format!("/longest/{kind}");
        match kind {
            0 => ExclusiveLock::with_options(&session, path, LockOptions::new().data(data))
                .map(|lock| Box::new(lock) as Box<dyn Recipe>),
            _ => SingleNodeLock::with_options(&session, path, SingleNodeOptions::new().data(data))
                .map(|lock| Box::new(lock) as Box<dyn Recipe>),
        }
    };
    for kind in [0, 1] {
        // Little is wasted of the servers' limit.
        let (mut taken, mut refused) = (0xf_ffff - 1_500, 0xf_ffff);
        while taken + 1 < refused {
            let middle = (taken + refused) / 2;
            match make(kind, middle) {
                Ok(_) => taken = middle,
                Err(_) => refused = middle,
            }
        }
        let longest = make(kind, taken).expect("little is wasted");
        let hold = longest.acquire_timeout(SHORT).await.expect("it is free");
        let entries = longest.contenders().await.expect("an answer");
        assert!(entries[0].data.len() >= taken);
        hold.release().await.expect("it is released");
    }
    assert_eq!(proxy.counters().connections(), 1);
}
