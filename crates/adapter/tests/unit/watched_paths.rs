//! Tests of `src/watched_paths.rs`.

use super::*;

#[test]
fn path_counts_once_for_each_kind_until_its_last_watch_is_dropped() {
    let paths = Arc::<WatchedPaths>::default();
    let half = || format!("/{}", "a".repeat(MAX_BYTES / 2 - 5));
    let data: Vec<_> = (0..9)
        .map(|_| paths.place(WatchedRead::Data, half()))
        .collect();
    assert!(data.iter().all(Option::is_some));
    let children = paths.place(WatchedRead::Children, half());
    assert!(children.is_some() && !paths.was_full());
    assert!(paths.place(WatchedRead::Exists, "/b".to_owned()).is_none());
    assert!(paths.was_full());
    drop(children);
    assert!(paths.place(WatchedRead::Exists, half()).is_some());
    drop(data);
    assert_eq!(paths.lock().bytes, 0);
}
