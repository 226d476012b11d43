//! What the session's own identity and the number of a znode prove.

use super::*;
use crate::live::scripted::*;

#[tokio::test(start_paused = true)]
async fn server_is_believed_that_refuses_a_write_to_others_alone() {
    let (_, script) = Scripted::open(Duration::ZERO);
    for (operation, refusal, enforced) in [
        (0, ErrorCode::NoNode, None),
        // The server does not recognise the identity as the owner's.
        (1, ErrorCode::NoAuth, Some(false)),
        (3, ErrorCode::NoAuth, Some(true)),
        // The server checks no access control lists.
        (4, ErrorCode::BadVersion, Some(false)),
    ] {
        script.refuse(operation, refusal);
        let identity = Identity::from_random_bits(0);
        let answer = is_enforced(&script.server(), "/locks", &identity, &AuthId::anyone()).await;
        assert_eq!(answer, enforced, "refused at {operation}");
    }
}

fn known_alone(number: i32, czxid: i64, next: i32, next_czxid: i64) -> bool {
    let alone = Alone {
        sequence: number.into(),
        czxid,
        connection: Some(1),
        by_number: false,
    };
    let known = |connection| alone.proves_alone(next.into(), next_czxid, connection);
    assert!(!known(Some(2)), "it has reconnected");
    assert!(!known(None));
    known(Some(1))
}

#[test]
fn directories_that_were_used_long_ago_are_forgotten() {
    let path = |number: usize| NodePath::new(&format!("/locks/{number}")).expect("a path");
    let alone = |number: usize| Alone {
        sequence: 0.into(),
        czxid: number as i64,
        connection: None,
        by_number: false,
    };
    let mut used = UsedDirectories::default();
    let known = |used: &UsedDirectories, number: usize| {
        let mut known = used
            .last_alone
            .iter()
            .filter_map(|known| known.get(&path(number)));
        known.next().copied().flatten().map(|alone| alone.czxid)
    };
    for number in 1..100 * KEPT {
        used.note(&path(0), Some(alone(number)));
        used.note(&path(number), Some(alone(number)));
        let oldest = number.saturating_sub(KEPT / 2).max(1);
        assert_eq!(known(&used, oldest), Some(oldest as i64), "{number}");
        let maps = &used.last_alone;
        assert!(maps.iter().map(BTreeMap::len).sum::<usize>() <= 2 * KEPT);
    }
    assert_eq!(known(&used, 1), None);
    assert_eq!(known(&used, 0), Some(100 * KEPT as i64 - 1));
    let taken = used.take_known(&path(0)).last.map(|alone| alone.czxid);
    assert_eq!(
        (taken, known(&used, 0)),
        (Some(100 * KEPT as i64 - 1), None)
    );
}

#[test]
fn directory_may_be_missing_if_the_last_one_beside_it_was() {
    let handoff = Handoff::default();
    let may_be_missing = |path: &str| {
        let path = NodePath::new(path).expect("a path");
        handoff.take_known(&path).may_be_missing
    };
    let note = |path: &str, was_missing| {
        let path = NodePath::new(path).expect("a path");
        handoff.note_directory(&path, was_missing);
    };
    assert!(!may_be_missing("/locks/a"));
    note("/locks/a", true);
    assert!(!may_be_missing("/locks/a"), "it was used");
    assert!(may_be_missing("/locks/b"));
    assert!(!may_be_missing("/other/a"), "it is not beside them");
    assert!(!may_be_missing("/top"), "nor is this");
    note("/locks/b", false);
    assert!(!may_be_missing("/locks/c"));
}

#[test]
fn next_number_after_few_transactions_says_that_nobody_has_come() {
    assert!(known_alone(7, 100, 8, 102));
    assert!(known_alone(7, 100, 8, 107));
}

#[test]
fn another_number_says_nothing() {
    for next in [i32::MIN, -1, 0, 6, 7, 9, i32::MAX] {
        assert!(!known_alone(7, 100, next, 102), "{next}");
    }
}

#[test]
fn as_many_transactions_as_a_new_directory_needs_say_nothing() {
    assert!(!known_alone(7, 100, 8, 108));
    assert!(!known_alone(0, 100, 1, 102));
    assert!(!known_alone(1, 100, 2, 102));
    assert!(known_alone(2, 100, 3, 102));
    // Another leader numbers its transactions anew, and an older transaction is not later.
    assert!(!known_alone(7, (1 << 32) - 1, 8, 1 << 32));
    assert!(!known_alone(7, i64::MIN, 8, i64::MAX));
}

#[test]
fn end_of_the_count_says_nothing() {
    assert!(known_alone(i32::MAX - 2, 100, i32::MAX - 1, 102));
    assert!(!known_alone(i32::MAX - 1, 100, i32::MAX, 102));
    assert!(!known_alone(i32::MAX, 100, i32::MIN, 102));
    assert!(!known_alone(-3, 100, -2, 102));
    assert!(!known_alone(-1, 100, 0, 102));
}
