//! The passwords of sessions.

use fastrand::Rng;

/// The password that a client has to show when it comes back to a session.
pub(crate) fn password_of(session: i64, secret: u64) -> [u8; 16] {
    let mut password = [0; 16];
    Rng::with_seed(session as u64 ^ secret).fill(&mut password);
    password
}
