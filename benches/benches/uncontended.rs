//! Acquiring and releasing what nobody else wants, by each recipe, beside the requests that this
//! sends.
//!
//! How the two compare, the bench `overhead` says better: it measures them in turns.

use criterion::Criterion;
use zookeeper_recipes_benches::{Comparison, Testbed, run_benches};

fn uncontended(criterion: &mut Criterion) {
    let testbed = Testbed::start();
    let mut group = criterion.benchmark_group("uncontended");
    for comparison in Comparison::all(&testbed) {
        for work in comparison.works() {
            group.bench_function(work.name, |bencher| {
                bencher.iter_custom(|times| work.measure(&testbed, times));
            });
        }
    }
    group.finish();
}

fn main() {
    run_benches(&[uncontended]);
}
