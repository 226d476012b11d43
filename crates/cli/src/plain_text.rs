//! Text that a terminal shows and does not obey.

/// The text, with a question mark for each letter that a terminal would obey.
///
/// Line feeds and tabs stay. Other clients write the names and the data of znodes.
pub(crate) fn plain(text: &str) -> String {
    let plain = |letter| match letter {
        '\n' | '\t' => letter,
        _ => shown(letter),
    };
    text.chars().map(plain).collect()
}

/// The letter, or a question mark if a terminal would obey it.
pub(crate) fn shown(letter: char) -> char {
    if is_obeyed(letter) { '?' } else { letter }
}

/// JSON with escapes in place of the letters that a terminal would obey.
pub(crate) fn json_text(json: &str) -> String {
    let mut text = String::new();
    for letter in json.chars() {
        // The line feeds are not in strings, where JSON does not allow them.
        if letter != '\n' && is_obeyed(letter) {
            // All of them are in Unicode's first plane.
            text += &format!("\\u{:04x}", u32::from(letter));
        } else {
            text.push(letter);
        }
    }
    text
}

/// True if a letter moves the cursor, begins an escape sequence, or changes the direction of others.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
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
}
