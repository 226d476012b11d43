//! What a name says, and how identities are made.

use super::*;

fn is_closed(name: &str) -> bool {
    let contender = Contender::parse(name, |label| label == "lock-");
    contender.expect("a contender").is_closed_to_others()
}

#[test]
fn name_marks_releases_by_the_third_group_of_a_hyphenated_identity() {
    let canonical = "_c_6e8f2c1a-9d3b-8001-8a41-0c9d5e7b2f10-lock-0000000001";
    assert!(is_closed(canonical));
    assert!(!is_closed(&canonical.replace("8001", "4f57")));
}

/// The same text is at the same place by chance.
#[test]
fn name_with_another_form_of_identity_marks_no_release() {
    let bare = "_c_6e8f2c1a9d3b4f80018a410c9d5e7b2f-lock-0000000001";
    assert_eq!(&bare[THIRD_GROUP], MARKING);
    assert!(!is_closed(bare));
}

#[test]
fn identities_of_a_session_are_counted_in_their_last_48_bits() {
    let first = Identity::from_random_bits(u128::MAX);
    let counted = u128::from(u64::MAX >> 16);
    assert_eq!(first.after(0), first);
    // The count goes on at zero, and changes no other bit.
    let next = first.0.as_u128() & !counted;
    assert_eq!(first.after(1).0.as_u128(), next);
    assert_eq!(first.after(3).0.as_u128(), next + 2);
}

#[test]
fn share_of_a_time_is_drawn_by_the_last_bits_of_an_identity() {
    let second = Duration::from_secs(1);
    let share = |bits| Identity::from_random_bits(bits).share_of(second);
    assert_eq!(share(0), Duration::ZERO);
    assert_eq!(share(u128::MAX), second);
    let half = share(1 << 31).as_secs_f64();
    assert!((half - 0.5).abs() < 0.001, "{half}");
}

#[test]
fn identity_stands_before_the_label_in_a_name_and_in_a_path() {
    let identity = Identity::from_random_bits(0);
    let prefix = "_c_00000000-0000-4000-8000-000000000000-";
    assert_eq!(identity.prefix(), prefix);
    assert_eq!(identity.path("/a", "lock-"), format!("/a/{prefix}lock-"));
}

#[test]
fn recipe_is_known_by_the_label_of_a_name() {
    let identity = Identity::from_random_bits(0);
    let recipe = |label: &str| recipe_of(&format!("{}0000000001", identity.name(label)));
    for (labels, known) in [
        (&["lock-", "__lock__"][..], "an exclusive lock"),
        (&["__READ__", "__WRIT__", "__rlock__"], "a read/write lock"),
        (&["latch-", "standby-latch-"], "a leader election"),
        (&["permit-1-", "permit-12-"], "a semaphore"),
    ] {
        for label in labels {
            assert_eq!(recipe(label), Some(known), "{label}");
        }
    }
    for label in ["permit-0-", "permit-01-", "permit--", "other-"] {
        assert_eq!(recipe(label), None, "{label}");
    }
}

/// No other number says which of the two came first. All clients must agree.
#[test]
fn contenders_that_are_half_of_the_count_apart_are_in_the_order_of_their_numbers() {
    let numbers = [-1_000_000_000, 1_147_483_648];
    for drawn in [[0, 1], [1, 0]] {
        let mut contenders = drawn.map(|index| {
            let name = format!("{}{:010}", Identity::random().name("lock-"), numbers[index]);
            Contender::parse(&name, |label| label == "lock-").expect("a contender")
        });
        order(&mut contenders);
        let ordered = contenders.map(|contender| contender.sequence().get());
        assert_eq!(ordered, numbers);
    }
}

/// Three contenders each, from every 65,521st number on, as far apart as a quarter of a count.
#[test]
fn order_of_creation_is_known_all_around_the_ring() {
    let name = Identity::from_random_bits(0).name("lock-") + "0000000001";
    let contender = Contender::parse(&name, |label| label == "lock-").expect("a contender");
    let mut given = [contender.clone(), contender.clone(), contender];
    for first in (i32::MIN..=i32::MAX).step_by(65_521) {
        for step in (0..29).map(|bits| 1 << bits) {
            let created: [i32; 3] = [0, 1, 2].map(|at| first.wrapping_add(step * at));
            for (at, contender) in given.iter_mut().rev().enumerate() {
                contender.sequence = Sequence(created[at]);
                contender.czxid = Some(at as i64);
            }
            order(&mut given);
            let ordered = [0, 1, 2].map(|place: usize| given[place].sequence.0);
            assert_eq!(ordered, created, "by {step}");
        }
    }
}
