//! When the servers lose data.

use std::time::Duration;

use fastrand::Rng;

/// When the servers lose data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataLoss {
    /// When the backup is made with which they come back. Without one they come back with nothing.
    pub(crate) backed_up_at: Option<Duration>,
    pub(crate) at: Duration,
    /// How long no server serves.
    pub(crate) within: Duration,
}

impl DataLoss {
    pub(crate) fn draw(session_timeout: Duration, troubled: Duration, rng: &mut Rng) -> DataLoss {
        let at = troubled * rng.u32(10..=90) / 100;
        // Now and then the leases run out before a server serves.
        let within = match rng.u8(..4) {
            0 => session_timeout * rng.u32(0..=150) / 100,
            _ => session_timeout * rng.u32(0..=20) / 100,
        };
        DataLoss {
            backed_up_at: match rng.u8(..4) {
                0 => None,
                1 => Some(at.saturating_sub(session_timeout * rng.u32(0..=100) / 100)),
                _ => Some(at * rng.u32(0..=100) / 100),
            },
            at,
            within,
        }
    }
}
