//! The passwords of sessions.

/// The password that a client has to show when it comes back to a session.
///
/// Apache's server makes the same password of the session's id: `java.util.Random`, seeded with
/// the id and a constant. It keeps nobody out who knows that.
pub(crate) fn password_of(session: i64) -> [u8; 16] {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = ((session ^ 0xB341_5C00) as u64 ^ MULTIPLIER) & MASK;
    let mut password = [0; 16];
    for bytes in password.chunks_mut(4) {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        bytes.copy_from_slice(&((state >> 16) as u32).to_le_bytes());
    }
    password
}
