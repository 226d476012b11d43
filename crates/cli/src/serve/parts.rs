//! Texts that are sent in parts.

/// The bytes of a part.
const PART: usize = 64 << 10;

/// The text in parts. Clients that read a shared text slowly keep one copy of it, beside their parts.
pub(super) fn parts(text: impl AsRef<str>) -> impl Iterator<Item = String> {
    let mut begin = 0;
    std::iter::from_fn(move || {
        let text = text.as_ref();
        let mut end = text.len().min(begin + PART);
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let part = text.get(begin..end).unwrap_or_default().to_owned();
        begin = end;
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
#[path = "../../tests/unit/parts.rs"]
mod tests;
