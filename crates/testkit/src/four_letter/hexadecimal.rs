//! Numbers as Java prints them.

/// `0x…` as Java prints a long: two's complement.
pub(super) fn hexadecimal(text: &str) -> Option<i64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16)
        .ok()
        .map(|bits| bits as i64)
}
