//! Tests of `src/verbs/assignment.rs`.

use super::*;

#[test]
fn names_with_numbers_are_in_the_order_of_their_numbers() {
    let mut names = ["p10", "p2", "a", "p01-x10", "p1-x9", "10", "9", "p"];
    names.sort_by_cached_key(|name| by_number(name));
    assert_eq!(
        names,
        ["9", "10", "a", "p", "p1-x9", "p01-x10", "p2", "p10"]
    );
}
