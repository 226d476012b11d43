//! A hundred tasks of one process on one lock, with and without local handovers.

mod run;

use criterion::{BenchmarkId, Criterion, Throughput};
use zookeeper_recipes_benches::{Contention, Testbed};
use zookeeper_recipes_core::Recipe;
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions};

use crate::run::run_benches;

const TASKS: usize = 100;

/// How many times in a row the lock passes on within the process, without a request.
const HANDOVERS: [u32; 3] = [0, 10, 100];

fn local(criterion: &mut Criterion) {
    let testbed = Testbed::start();
    let session = testbed.session();
    let mut group = criterion.benchmark_group("100 tasks on one lock, local handovers in a row");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for handovers in HANDOVERS {
        group.bench_function(BenchmarkId::from_parameter(handovers), |bencher| {
            let options = LockOptions::new().local(handovers);
            let lock = ExclusiveLock::with_options(&session, testbed.directory(), options);
            let lock = lock.expect("a good path");
            let clones = (0..TASKS).map(|_| -> Box<dyn Recipe> { Box::new(lock.clone()) });
            let contention = Contention::begin(&testbed, clones.collect());
            bencher
                .to_async(testbed.runtime())
                .iter_custom(|acquisitions| contention.measure(acquisitions));
            contention.end(&testbed);
        });
    }
    group.finish();
}

fn main() {
    run_benches(&[local]);
}
