//! How deletions are gathered.

use super::*;
use crate::live::scripted::Scripted;

/// Gathers a deletion whose caller waits.
fn gathered(deletions: &Arc<Deletions>, path: &str) -> oneshot::Receiver<Result<(), ServerError>> {
    let (answer, answered) = oneshot::channel();
    let path = path.into();
    lock(&deletions.gathered)
        .waiting
        .push_back(Deletion { path, answer });
    answered
}

/// The number of deletions in each transaction.
fn batches(deletions: &Arc<Deletions>, chroot: usize) -> Vec<usize> {
    lock(&deletions.gathered).senders += 1;
    let sizes = std::iter::from_fn(|| Some(deletions.next(chroot).len()));
    sizes.take_while(|size| *size > 0).collect()
}

#[test]
fn transaction_has_at_most_so_many_deletions() {
    let deletions = Arc::new(Deletions::default());
    let callers: Vec<_> = (0..130).map(|_| gathered(&deletions, "/a")).collect();
    assert_eq!(batches(&deletions, 0), [64, 64, 2]);
    drop(callers);
}

/// The client puts the chroot before each path.
#[test]
fn transaction_has_no_further_path_beyond_its_bytes() {
    let long = "/".repeat(MAX_BYTES / 4);
    for (chroot, sizes) in [
        (0, &[4, 4, 2][..]),
        (1, &[4, 4, 2]),
        (MAX_BYTES / 4, &[2, 2, 2, 2, 2]),
    ] {
        let deletions = Arc::new(Deletions::default());
        let callers: Vec<_> = (0..10).map(|_| gathered(&deletions, &long)).collect();
        assert_eq!(batches(&deletions, chroot), sizes, "{chroot}");
        drop(callers);
    }
}

#[test]
fn deletion_that_nobody_waits_for_is_in_no_transaction() {
    let deletions = Arc::new(Deletions::default());
    let first = gathered(&deletions, "/a");
    drop(gathered(&deletions, "/b"));
    let last = gathered(&deletions, "/c");
    assert_eq!(batches(&deletions, 0), [2]);
    drop((first, last));
}

#[tokio::test(start_paused = true)]
async fn few_tasks_send_transactions_however_many_deletions_are_gathered() {
    let (live, _script) = Scripted::open(std::time::Duration::from_secs(1));
    let deletions = Arc::new(Deletions::default());
    let callers: Vec<_> = (0..100)
        .map(|number| deletions.gather(&live, format!("/{number}").into()))
        .collect();
    assert_eq!(lock(&deletions.gathered).senders, MAX_TRANSACTIONS);
    drop(callers);
}
