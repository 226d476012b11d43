//! Strings as bytes, as Apache's server and clients in Java write and read them.
//!
//! Java writes a character beyond U+FFFF as its two surrogates, of three bytes each, which is no
//! UTF-8. It reads UTF-8, and puts U+FFFD in the place of what is none.

use std::borrow::Cow;

/// What Java puts in the place of bytes that are no UTF-8.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The form that a string has in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// UTF-8, as a server reads it.
    OfRequests,
    /// With surrogates, as Apache's server writes it.
    OfReplies,
}

/// The bytes of a string.
pub(crate) fn encoded(text: &str, form: Form) -> Cow<'_, [u8]> {
    // Only characters beyond U+FFFF begin with such a byte.
    if form == Form::OfRequests || text.is_ascii() || !text.bytes().any(|byte| byte >= 0xf0) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len() * 3 / 2);
    for character in text.chars() {
        if character as u32 <= 0xffff {
            let mut buffer = [0; 4];
            bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                bytes.extend(three_bytes(*unit));
            }
        }
    }
    Cow::Owned(bytes)
}

fn three_bytes(unit: u16) -> [u8; 3] {
    let six = |shift: u32| 0x80 | ((unit >> shift) & 0x3f) as u8;
    [0xe0 | (unit >> 12) as u8, six(6), six(0)]
}

/// The string that these bytes encode. In replies, two surrogates encode one character.
pub(crate) fn decoded(bytes: &[u8], form: Form) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(valid) => return text + valid,
            Err(error) => error,
        };
        let (valid, invalid) = rest.split_at(error.valid_up_to());
        text.push_str(&String::from_utf8_lossy(valid));
        let (character, length) = match (surrogates(invalid), surrogate(invalid)) {
            (Some(character), _) if form == Form::OfReplies => (character, 6),
            // Java takes all bytes of a surrogate for one character.
            (_, Some((_, length))) => (REPLACEMENT, length),
            (_, None) => (REPLACEMENT, error.error_len().unwrap_or(invalid.len())),
        };
        text.push(character);
        rest = &invalid[length..];
    }
}

/// The surrogate that these bytes begin with, and its length. A last byte may be missing.
fn surrogate(bytes: &[u8]) -> Option<(u16, usize)> {
    let &[0xed, second @ 0xa0..=0xbf, ref rest @ ..] = bytes else {
        return None;
    };
    let unit = 0xd000 | (u16::from(second & 0x3f) << 6);
    Some(match rest.first() {
        Some(third @ 0x80..=0xbf) => (unit | u16::from(third & 0x3f), 3),
        _ => (unit, 2),
    })
}

/// The character whose two surrogates these bytes begin with.
fn surrogates(bytes: &[u8]) -> Option<char> {
    let (high, 3) = surrogate(bytes)? else {
        return None;
    };
    let (low, 3) = surrogate(&bytes[3..])? else {
        return None;
    };
    char::decode_utf16([high, low]).next()?.ok()
}

#[cfg(test)]
#[path = "../tests/unit/text.rs"]
mod tests;
