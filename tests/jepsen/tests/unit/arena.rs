//! Tests of `src/arena.rs`.

use super::*;

fn arena() -> Arena {
    Arena::new(2, Duration::ZERO)
}

fn now() -> u128 {
    clock::now().as_nanos()
}

fn say(arena: &Arena, client: usize, line: &str) {
    let answer = arena.answer(client, line);
    answer.expect("it is understood");
}

#[test]
fn time_that_is_not_between_the_answer_and_the_line_is_foreign() {
    let arena = arena();
    let before = now();
    say(&arena, 0, &format!("read 7 {}", now()));
    assert_eq!(arena.state().foreign_times, 0);
    // It is older than the answer to the read.
    say(&arena, 0, &format!("look true {before}"));
    assert_eq!(arena.state().foreign_times, 1);
    let in_an_hour = now() + Duration::from_secs(3600).as_nanos();
    say(&arena, 1, &format!("read 8 {in_an_hour}"));
    assert_eq!(arena.state().foreign_times, 2);
}

#[test]
fn line_that_cannot_be_understood_is_an_error_and_is_kept() {
    let arena = arena();
    let lines = ["write", "look true 1", "read 7", "look maybe 1", "hello"];
    for line in lines {
        assert!(arena.answer(0, line).is_err(), "{line}");
    }
    say(&arena, 0, &format!("read 7 {}", now()));
    assert!(arena.answer(0, "write").is_err());
    assert_eq!(arena.state().misunderstood.len(), lines.len() + 1);
}
