//! How a bench with criterion runs.

use criterion::Criterion;

/// Runs benches as the command line tells criterion to.
pub(crate) fn run_benches(benches: &[fn(&mut Criterion)]) {
    let mut criterion = Criterion::default().configure_from_args();
    for bench in benches {
        bench(&mut criterion);
    }
    criterion.final_summary();
}
