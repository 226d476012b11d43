//! Handoffs of an exclusive lock from session to session, by each way to wait that uses watches.
//!
//! Each contender has a session of its own, opened before, and never rests.

mod run;

use criterion::{BenchmarkId, Criterion, Throughput};
use zookeeper_recipes_benches::{Contention, Testbed, measures};
use zookeeper_recipes_core::{Recipe, Session, WaitStrategy};
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions};

use crate::run::run_benches;

const CONTENDERS: [usize; 3] = [2, 10, 100];

/// The number of contenders if nothing is measured.
const IN_A_TEST: usize = 10;

const WAYS: [(&str, WaitStrategy); 2] = [
    ("predecessor", WaitStrategy::Predecessor),
    ("parent", WaitStrategy::Parent),
];

fn handoff(criterion: &mut Criterion) {
    let testbed = Testbed::start();
    let most = if measures() { usize::MAX } else { IN_A_TEST };
    let mut numbers = CONTENDERS.to_vec();
    numbers.retain(|contenders| *contenders <= most);
    let sessions = testbed.sessions(numbers.iter().copied().max().unwrap_or_default());
    let mut group = criterion.benchmark_group("handoff");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for contenders in numbers {
        for (name, strategy) in WAYS {
            group.bench_function(BenchmarkId::new(name, contenders), |bencher| {
                let path = testbed.directory();
                let lock = |session: &Session| -> Box<dyn Recipe> {
                    let options = LockOptions::new().strategy(strategy);
                    let lock = ExclusiveLock::with_options(session, &path, options);
                    Box::new(lock.expect("a good path"))
                };
                let locks = sessions[..contenders].iter().map(lock).collect();
                let contention = Contention::begin(&testbed, locks);
                bencher
                    .to_async(testbed.runtime())
                    .iter_custom(|handoffs| contention.measure(handoffs));
                contention.end(&testbed);
            });
        }
    }
    group.finish();
}

fn main() {
    run_benches(&[handoff]);
}
