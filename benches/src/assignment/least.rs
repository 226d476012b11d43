//! The least number of transactions that an assignment by locks can do with.
//!
//! Each partition has a lock of its own, and each worker takes its locks by itself: a create for
//! each. A worker lists all that it owns in one write, and all plans fit into one transaction.

/// The transactions of a start with this many partitions and workers, at a new path.
///
/// A create for each lock, for each member and for the leader, one for the directories of 128 locks,
/// a list of each worker, the record of the partitions, the plans.
pub(crate) fn of_a_start(partitions: usize, workers: usize) -> usize {
    partitions + partitions.div_ceil(128) + 2 * workers + 3
}

/// The transactions after the death of one of the workers.
///
/// A create for each lock of the dead worker, a list of each worker that has got one, the plans.
pub(crate) fn of_a_death(partitions: usize, workers: usize) -> usize {
    let moved = partitions / workers;
    moved + moved.min(workers - 1) + 1
}

/// The transactions after one more worker has come to this many.
///
/// A create and a release for each partition that moves, the member, the list of the new worker and
/// of each that has given, the plans that begin the moves, as many at once as may, and the last ones.
pub(crate) fn of_an_arrival(partitions: usize, workers: usize) -> usize {
    let moved = partitions / (workers + 1);
    let at_once = (partitions / 100).max(32);
    2 * moved + 1 + 1 + moved.min(workers) + moved.div_ceil(at_once) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_move_is_a_create_and_a_release() {
        assert_eq!(of_a_start(100, 10), 100 + 1 + 23);
        assert_eq!(of_a_death(100, 10), 10 + 9 + 1);
        assert_eq!(of_an_arrival(100, 9), 20 + 2 + 9 + 1 + 1);
        assert_eq!(of_an_arrival(100_000, 9), 20_000 + 2 + 9 + 10 + 1);
    }
}
