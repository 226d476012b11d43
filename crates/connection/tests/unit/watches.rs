//! Tests of `src/session/watches.rs`.

use super::*;

fn set(
    watches: &mut Watches<&'static str>,
    path: &str,
    kind: WatchedRead,
    watch: &'static str,
) -> WatchId {
    let id = watches.ask(path, kind.table(), watch);
    assert!(watches.set(&id, kind));
    id
}

#[test]
fn event_fires_the_watches_of_its_kind_and_leaves_the_others() {
    let all = [
        WatchedRead::Data,
        WatchedRead::Exists,
        WatchedRead::Children,
    ];
    for (event, fired) in [
        (EventType::NodeDeleted, [true, true, true]),
        (EventType::NodeCreated, [true, true, false]),
        (EventType::NodeDataChanged, [true, true, false]),
        (EventType::NodeChildrenChanged, [false, false, true]),
        (EventType::None, [false, false, false]),
    ] {
        let mut watches = Watches::new();
        let names = ["data", "absent", "children"];
        for (kind, name) in all.into_iter().zip(names) {
            set(&mut watches, "/a", kind, name);
        }
        watches.ask("/a", WatcherType::Data, "asked");
        let expected = names.into_iter().zip(fired);
        let expected: Vec<_> = expected
            .filter(|(_, fires)| *fires)
            .map(|it| it.0)
            .collect();
        assert_eq!(watches.fire("/a", event), expected, "{event:?}");
        assert_eq!(
            watches.take_all_set().len(),
            3 - expected.len(),
            "{event:?}"
        );
        assert_eq!(watches.paths["/a"].len(), 1, "its read has no reply yet");
    }
}

#[test]
fn path_is_needed_as_long_as_a_caller_waits_or_will() {
    let mut watches = Watches::new();
    let asked = watches.ask("/a", WatcherType::Data, "asked");
    let children = set(&mut watches, "/a", WatchedRead::Children, "children");
    assert!(watches.needs("/a", WatcherType::Data));
    let kind_of = |watch: Option<Watch<_>>| watch.map(|watch| watch.set);
    assert_eq!(kind_of(watches.remove(&asked)), Some(None), "not answered");
    assert!(!watches.needs("/a", WatcherType::Data));
    assert!(
        !watches.set(&asked, WatchedRead::Data),
        "nobody waits for it"
    );
    let absent = set(&mut watches, "/a", WatchedRead::Exists, "absent");
    assert!(watches.needs("/a", WatcherType::Data));
    let absent = [watches.remove(&absent), watches.remove(&absent)];
    let expected = [Some(Some(WatchedRead::Exists)), None];
    assert_eq!(absent.map(kind_of), expected, "it is taken once");
    assert_eq!(
        kind_of(watches.remove(&children)),
        Some(Some(WatchedRead::Children))
    );
    assert!(watches.paths.is_empty());
}

/// Twelve paths whose lengths, with four bytes each, sum to the most and four bytes more.
#[test]
fn watches_are_set_again_in_the_fewest_requests_of_the_most_bytes() {
    const PATHS: usize = 12;
    let longest = (MAX_PATH_BYTES + size_of::<i32>()) / PATHS - size_of::<i32>();
    assert_eq!(
        PATHS * (longest + size_of::<i32>()),
        MAX_PATH_BYTES + size_of::<i32>()
    );
    for (last, expected) in [(longest, &[PATHS][..]), (longest + 1, &[PATHS - 1, 1])] {
        let mut watches = Watches::new();
        for number in 1..=PATHS {
            let length = if number == PATHS { last } else { longest };
            let path = format!("/{number:02}{}", "x".repeat(length - 3));
            set(&mut watches, &path, WatchedRead::Data, "data");
        }
        let requests = watches.set_again(7);
        let paths: Vec<usize> = requests.iter().map(|it| it.data_watches.len()).collect();
        assert_eq!(paths, expected);
        assert!(requests.iter().all(|it| it.relative_zxid == 7));
        set(&mut watches, "/z", WatchedRead::Exists, "absent");
        set(&mut watches, "/z", WatchedRead::Children, "children");
        let requests = watches.set_again(7);
        let last = requests.last().expect("some");
        assert_eq!(
            (&*last.exist_watches, &*last.child_watches),
            (&["/z".to_owned()][..], &["/z".to_owned()][..])
        );
    }
}
