//! The state of a connection whose session timeout was shortened.

use super::*;

#[test]
fn timeout_that_was_shortened_ends_the_session_also_without_a_connection() {
    let opened_with = Duration::from_secs(10);
    let shortened = ConnectionState::Ended(SessionEnd::TimeoutShortened);
    for (seconds, expected) in [(4, shortened), (10, ConnectionState::Disconnected)] {
        let timeout = Duration::from_secs(seconds);
        let state = connection_state(State::Disconnected { timeout }, opened_with);
        assert_eq!(state, expected);
    }
}
