//! Tests of `src/serve/parts.rs`.

use std::sync::Arc;

use super::{PART, parts};

#[test]
fn parts_of_a_shared_text_are_small_and_together_the_text() {
    // A letter of two bytes is at the end of the first part.
    let text: Arc<str> = format!("{}{}", "a".repeat(PART - 1), "\u{e4}".repeat(PART)).into();
    let sent: Vec<String> = parts(Arc::clone(&text)).collect();
    assert_eq!(sent.concat(), *text);
    assert_eq!(sent.len(), 3);
    let is_small = |part: &String| part.capacity() <= PART + 3;
    assert!(sent.iter().all(is_small), "a part keeps more than it has");
    assert_eq!(parts(String::new()).next(), None);
}
