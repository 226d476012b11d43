//! A semaphore: uncontended, and with ten sessions that contend without rest.

mod run;

use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput};
use zookeeper_recipes_benches::{Contention, Testbed};
use zookeeper_recipes_core::Recipe;
use zookeeper_recipes_semaphore::Semaphore;

use crate::run::run_benches;

const PERMITS: u32 = 5;
const CONTENDERS: usize = 10;

/// The permits that the contenders want, in turns.
const WEIGHTS: [(&str, &[u32]); 3] = [
    ("one permit each", &[1]),
    ("one to three permits each", &[1, 2, 3]),
    ("all permits each", &[PERMITS]),
];

fn uncontended(criterion: &mut Criterion) {
    let testbed = Testbed::start();
    let session = testbed.session();
    let mut group = criterion.benchmark_group("semaphore, uncontended");
    for weight in [1, PERMITS] {
        let semaphore = Semaphore::new(&session, testbed.directory(), PERMITS);
        let semaphore = semaphore.expect("a good path");
        let permits = semaphore.permits(weight).expect("so many there are");
        group.bench_function(BenchmarkId::from_parameter(weight), |bencher| {
            bencher.iter_custom(|times| {
                let permits = permits.clone();
                testbed.run(async move {
                    let began = Instant::now();
                    for _ in 0..times {
                        let hold = permits.acquire().await.expect("nobody else wants it");
                        hold.release().await.expect("it has been held until now");
                    }
                    began.elapsed()
                })
            });
        });
    }
    group.finish();
}

fn contended(criterion: &mut Criterion) {
    let testbed = Testbed::start();
    let sessions = testbed.sessions(CONTENDERS);
    let mut group = criterion.benchmark_group("semaphore, 10 sessions for 5 permits");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for (name, weights) in WEIGHTS {
        group.bench_function(name, |bencher| {
            let path = testbed.directory();
            let of_each = sessions.iter().zip(weights.iter().cycle());
            let permits = of_each.map(|(session, &weight)| -> Box<dyn Recipe> {
                let semaphore = Semaphore::new(session, &path, PERMITS).expect("a good path");
                Box::new(semaphore.permits(weight).expect("so many there are"))
            });
            let contention = Contention::begin(&testbed, permits.collect());
            bencher
                .to_async(testbed.runtime())
                .iter_custom(|acquisitions| contention.measure(acquisitions));
            contention.end(&testbed);
        });
    }
    group.finish();
}

fn main() {
    run_benches(&[uncontended, contended]);
}
