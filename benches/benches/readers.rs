//! Fifty readers behind a writer: from the writer's call of release until all readers hold.
//!
//! Each reader has a session of its own.

mod run;

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use futures_util::future::{join_all, try_join_all};
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_rwlock::{ReadLock, RwLock, WriteLock};

use crate::run::run_benches;

const READERS: usize = 50;

fn readers(criterion: &mut Criterion) {
    let testbed = Testbed::start();
    let sessions = testbed.sessions(READERS + 1);
    let path = testbed.directory();
    let lock = |session: &Session| RwLock::new(session, &path).expect("a good path");
    let writer = lock(&sessions[READERS]).write().clone();
    let readers: Vec<ReadLock> = sessions[..READERS]
        .iter()
        .map(|session| lock(session).read().clone())
        .collect();

    let mut group = criterion.benchmark_group("readers behind a writer, until all hold");
    group
        .throughput(Throughput::Elements(READERS as u64))
        .sample_size(20);
    group.bench_function(READERS.to_string(), |bencher| {
        let (testbed, writer, readers) = (&testbed, &writer, &readers);
        bencher
            .to_async(testbed.runtime())
            .iter_custom(|times| async move {
                let mut took = Duration::ZERO;
                for _ in 0..times {
                    took += until_all_read(testbed, writer, readers).await;
                }
                took
            });
    });
    group.finish();
}

async fn until_all_read(testbed: &Testbed, writer: &WriteLock, readers: &[ReadLock]) -> Duration {
    let writing = writer.acquire().await.expect("nobody reads");
    let reading: Vec<_> = readers
        .iter()
        .cloned()
        .map(|reader| tokio::spawn(async move { (reader.acquire().await, Instant::now()) }))
        .collect();
    testbed.until_watched(writing.node_path(), READERS).await;

    let began = Instant::now();
    let released = writing.release();
    let (released, reading) = tokio::join!(released, try_join_all(reading));
    released.expect("it has been held until now");
    let mut last = began;
    let mut holds = Vec::new();
    for (hold, at) in reading.expect("no reader has panicked") {
        holds.push(hold.expect("no writer is left"));
        last = last.max(at);
    }
    let took = last - began;

    for released in join_all(holds.into_iter().map(|hold| hold.release())).await {
        released.expect("it has been held until now");
    }
    took
}

fn main() {
    run_benches(&[readers]);
}
