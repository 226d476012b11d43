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

/// The text in one line, with a question mark also for each letter that a terminal does not show.
///
/// So two texts that look the same are the same, and each letter has the width that it says.
pub(crate) fn visible(text: &str) -> String {
    let visible = |letter| match is_invisible(letter) {
        true => '?',
        false => shown(letter),
    };
    text.chars().map(visible).collect()
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

/// A path or another text of any client, as a shell takes it.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/_-.,:@%+=".contains(letter);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A number of things.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
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

/// True if a letter has no width, or only changes the letters beside it: joiners and selectors.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1f3fb}'..='\u{1f3ff}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
#[path = "../tests/unit/plain_text.rs"]
mod tests;
