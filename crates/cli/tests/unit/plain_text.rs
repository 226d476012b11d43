//! Tests of `src/plain_text.rs`.

use super::*;

#[test]
fn terminal_obeys_nothing_that_is_printed() {
    let hostile = "a\x1b]0;b\x07\u{9b}31mc\rd\u{202e}e\x7f";
    assert_eq!(plain(hostile), "a?]0;b??31mc?d?e?");
    assert_eq!(plain("caf\u{e9}\t1\n"), "caf\u{e9}\t1\n");
}

#[test]
fn json_says_the_same_in_letters_that_no_terminal_obeys() {
    let object = serde_json::json!({ "id": "a\x1b\u{9b}\x7f\u{202e}\nb", "list": [1] });
    let text = json_text(&format!("{object:#}\n"));
    assert!(
        !text.chars().any(|it| it != '\n' && is_obeyed(it)),
        "{text:?}"
    );
    let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(read, object);
}
