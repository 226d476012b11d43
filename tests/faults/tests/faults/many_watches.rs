//! More to watch in one session than one request can set again.

use futures_util::future::join_all;
use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Event, Permission};
use zookeeper_recipes_core::{Hold, HoldState, NodePath, Session};
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{
    LOCK, LOCK_OF_ONE_ZNODE, LONG, TestServer, TestedRecipe, assert_no_watch_left, eventually,
    in_time, on_both_servers, proxy, session,
};
use zookeeper_recipes_testkit::proxy::Proxy;

on_both_servers!(apache at night:
    session_of_thousands_of_waiters_survives_a_broken_connection,
    session_of_thousands_of_single_node_waiters_survives_a_broken_connection,
    ten_thousand_watches_survive_a_hundred_broken_connections,
);

const MANY: usize = 3_500;

/// Long enough for so many of them to be more than 128 KiB.
fn path(shard: usize) -> String {
    format!("/app/some/longer/path/of/shards/{shard:06}/lock")
}

/// A session through a proxy, with a hold that has nothing to do with what is watched.
struct Watching {
    server: TestServer,
    proxy: Proxy,
    others: Session,
    session: Session,
    hold: Hold,
}

impl Watching {
    async fn begin(server: TestServer) -> Watching {
        let proxy = proxy(&server).await;
        let others = session(&server, LONG).await;
        let session = session(&proxy, LONG).await;
        let lock = ExclusiveLock::new(&session, "/locks/mine").expect("a good path");
        let hold = lock.acquire().await.expect("it is free");
        Watching {
            server,
            proxy,
            others,
            session,
            hold,
        }
    }

    /// Waits until the server has so many watches.
    async fn watch(&self, number: usize) {
        eventually("they watch", || async {
            let now = self.server.monitor().await.expect("an answer").watches;
            now as usize >= number
        })
        .await;
    }

    async fn break_the_connection(&self, times: usize) {
        let id = self.session.id();
        for _ in 0..times {
            let connections = self.proxy.counters().connections();
            self.proxy.reset();
            eventually("it is connected again", || async {
                self.proxy.counters().connections() > connections
                    && self.hold.state() == HoldState::Held
            })
            .await;
            // The server answers this after the watches that the client sets again.
            let lock = ExclusiveLock::new(&self.session, "/locks/other").expect("a good path");
            let hold = lock.acquire().await.expect("it is free");
            hold.release().await.expect("it is released");
        }
        assert_eq!(self.session.id(), id, "one session from beginning to end");
        assert!(self.hold.is_held());
    }
}

/// `MANY` waiters, at this number of paths, which another session holds.
async fn waiters_survive_a_broken_connection(
    server: TestServer,
    recipe: TestedRecipe,
    paths: usize,
) {
    let watching = Watching::begin(server).await;
    let acquired = (0..paths).map(async |shard| {
        let recipe = recipe.at(&watching.others, &path(shard), 1);
        recipe.acquire().await.expect("it is free")
    });
    let held = in_time("they hold", join_all(acquired)).await;
    let waiters: Vec<_> = (0..MANY)
        .map(|waiter| {
            let recipe = recipe.at(&watching.session, &path(waiter % paths), 1);
            tokio::spawn(async move { recipe.acquire().await?.release().await })
        })
        .collect();
    let ephemerals = match recipe.queues {
        true => paths + MANY,
        false => paths,
    };
    eventually("they have queued", || async {
        let monitor = watching.server.monitor().await.expect("an answer");
        monitor.ephemerals as usize >= ephemerals
    })
    .await;
    watching.watch(MANY.min(paths)).await;
    watching.break_the_connection(3).await;
    assert!(!waiters.iter().any(|waiter| waiter.is_finished()));
    let released = held.into_iter().map(Hold::release);
    for released in in_time("all are released", join_all(released)).await {
        released.expect("it is released");
    }
    for waiter in in_time("each gets its turn", join_all(waiters)).await {
        waiter.expect("no panic").expect("its turn");
    }
    watching.hold.release().await.expect("it is released");
    assert_no_watch_left(&watching.server).await;
}

async fn session_of_thousands_of_waiters_survives_a_broken_connection(server: TestServer) {
    waiters_survive_a_broken_connection(server, LOCK, 250).await;
}

async fn session_of_thousands_of_single_node_waiters_survives_a_broken_connection(
    server: TestServer,
) {
    waiters_survive_a_broken_connection(server, LOCK_OF_ONE_ZNODE, MANY).await;
}

async fn ten_thousand_watches_survive_a_hundred_broken_connections(server: TestServer) {
    const WATCHES: usize = 10_000;
    const BREAKS: usize = 100;
    const AT_ONCE: usize = 500;
    let path = |number: usize| format!("/app/some/path/of/znodes/{number:06}");
    let watching = Watching::begin(server).await;
    let directory = NodePath::new("/app/some/path/of/znodes").expect("a good path");
    let writer = watching.others.server(&directory).await.expect("open");
    let everybody = [Acl::new(Permission::ALL, AuthId::anyone())];
    // Its directories are those of a lock.
    let lock = ExclusiveLock::new(&watching.others, directory.as_str()).expect("a good path");
    let made = lock.acquire().await.expect("it is free");
    let numbers: Vec<usize> = (0..WATCHES).collect();
    for some in numbers.chunks(AT_ONCE) {
        let paths: Vec<String> = some.iter().map(|number| path(*number)).collect();
        let creates = paths
            .iter()
            .map(|path| writer.create(path, b"", CreateMode::Persistent, &everybody));
        for created in join_all(creates).await {
            created.expect("it is new");
        }
    }
    made.release().await.expect("it is held");
    let watcher = watching.session.server(&directory).await.expect("open");
    let mut watches = Vec::new();
    for some in numbers.chunks(AT_ONCE) {
        let paths: Vec<String> = some.iter().map(|number| path(*number)).collect();
        let reads = paths.iter().map(|path| watcher.get_and_watch(path));
        for read in join_all(reads).await {
            watches.push(read.expect("it is there").2);
        }
    }
    watching.break_the_connection(BREAKS).await;
    for some in numbers.chunks(AT_ONCE) {
        let paths: Vec<String> = some.iter().map(|number| path(*number)).collect();
        let deletions = paths.iter().map(|path| writer.delete(path));
        for deleted in join_all(deletions).await {
            deleted.expect("it is there");
        }
    }
    for event in in_time("each watch has its event", join_all(watches)).await {
        assert_eq!(event, Event::Deleted);
    }
    watching.hold.release().await.expect("it is released");
}
