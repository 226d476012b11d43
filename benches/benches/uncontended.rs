//! Uncontended acquire and release by each recipe, beside the same requests alone.
//!
//! The bench `overhead` compares the two better: it measures them in turns.

mod run;

use criterion::Criterion;
use zookeeper_recipes_benches::{Comparison, Testbed};

use crate::run::run_benches;

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
