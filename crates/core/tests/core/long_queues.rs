//! Queues that are longer than what a server reads in one request.

use std::error::Error;
use std::time::Duration;

use zookeeper_recipes_core::{
    Acl, AuthId, CreateMode, Identity, NodePath, Operation, Permission, Queue, Session,
};
use zookeeper_recipes_testkit::{Server, ServerOptions};

use crate::support::First;

const PATIENCE: Duration = Duration::from_secs(60);

const CONTENDERS: usize = 5_000;

/// What a server reads in one request, unless `jute.maxbuffer` sets another limit.
const ONE_REQUEST: usize = 0xf_ffff;

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_a_long_queue_are_read_and_put_in_order() -> Result<(), Box<dyn Error>> {
    let server = Server::start(ServerOptions::new()).await?;
    let session = Session::connect(&server.connect_string()).await?;
    let path = NodePath::new(&["", &"long".repeat(30), &"path".repeat(30)].join("/"))?;
    let queue = Queue::new(&session, path.as_str(), First)?;
    // Creates the directory.
    queue.acquire().await?.release().await?;

    // All came when the count had ended, so that only their czxids show which was first.
    let paths: Vec<String> = (0..CONTENDERS as u128)
        .map(|bits| {
            format!(
                "{path}/{}{}",
                Identity::from_random_bits(bits).name("lock-"),
                i32::MAX
            )
        })
        .collect();
    let bytes: usize = paths.iter().map(String::len).sum();
    assert!(bytes > ONE_REQUEST, "{bytes}");
    let acl = [Acl::new(Permission::ALL, AuthId::anyone())];
    let create = |path| Operation::create(path, [], CreateMode::Persistent, acl.clone());
    let raw = session.server(&path).await?;
    // Many in a transaction have one czxid.
    let created = paths.iter().map(|path| raw.transact(&[create(path)]));
    for created in created.collect::<Vec<_>>() {
        created.await.map_err(|refused| refused.error)?;
    }

    let entries = tokio::time::timeout(PATIENCE, queue.contenders()).await??;
    let names = entries.iter().map(|entry| entry.name.as_str());
    let expected = paths.iter().filter_map(|path| path.rsplit('/').next());
    assert!(names.eq(expected), "{} are not in order", entries.len());
    Ok(())
}
