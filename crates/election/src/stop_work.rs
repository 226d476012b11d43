//! The choice when a leader's work stops.

/// When [`LeaderElection::run`](crate::LeaderElection::run) stops the work of a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StopWork {
    /// As soon as no answer comes from the server:
    /// [`HoldState::Suspended`](crate::HoldState::Suspended).
    ///
    /// The safe choice: the work has stopped before another candidate can lead.
    #[default]
    WhenSuspended,
    /// Only when the leadership is lost: [`HoldState::Lost`](crate::HoldState::Lost).
    ///
    /// A short disconnection does not disturb the work. This choice does not stop requests that the
    /// work has sent to another service: they can arrive together with those of the next leader.
    WhenLost,
}
