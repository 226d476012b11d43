//! Directories with more children than one list can name, or than a client of Java reads.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_suite::{
    ELECTION, LOCK, LONG, RWLOCK, TICK, WRITER, administrator, assert_nothing_left, in_time,
    server_with, session,
};
use zookeeper_recipes_testkit::{Server, ServerOptions};

const CROWDED: &str = "/crowded";

/// How many creates wait for their answers at a time.
const AT_A_TIME: usize = 64;

/// A server that has memory enough to make a list of such a directory.
async fn large_server() -> Server {
    let options = ServerOptions::new().tick_time(TICK).heap_mebibytes(1024);
    server_with(options).await
}

/// Creates znodes of other programs with these names.
async fn crowd(client: &Client, names: impl Iterator<Item = String>) {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let directory = client.create(CROWDED, b"", &options).await;
    directory.expect("an empty server takes it");
    let creates = names.map(|name| {
        let (client, options) = (client.clone(), options.clone());
        async move {
            let path = format!("{CROWDED}/{name}");
            client.create(&path, b"", &options).await
        }
    });
    let created = stream::iter(creates).buffer_unordered(AT_A_TIME);
    let created: Vec<_> = created.try_collect().await.expect("they are free");
    drop(created);
}

mod at_night {
    use super::*;

    /// Their list is longer than `jute.maxbuffer`, which a client of Java reads at most.
    #[tokio::test(flavor = "multi_thread")]
    async fn hundred_thousand_foreign_children_bar_nobody() {
        const CHILDREN: usize = 100_000;
        const MAX_BUFFER: usize = 0xf_ffff;
        let server = large_server().await;
        let name = |number: usize| format!("job-of-another-program-{number:07}");
        assert!(CHILDREN * (name(0).len() + size_of::<i32>()) > MAX_BUFFER);
        crowd(&administrator(&server).await, (0..CHILDREN).map(name)).await;
        let session = session(&server, LONG).await;
        for recipe in [LOCK, RWLOCK, ELECTION] {
            let crowded = recipe.at(&session, CROWDED, WRITER.min(recipe.capacity));
            let hold = in_time(recipe.name, crowded.acquire()).await;
            let hold = hold.expect("no other contender is there");
            let contenders = crowded.contenders().await.expect("the queue can be read");
            assert_eq!(contenders.len(), 1, "{recipe:?}");
            hold.release().await.expect("it is released");
        }
        assert_nothing_left(&server).await;
    }
}
