//! What the values of the protocol mean.

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

#[test]
fn event_of_a_watch_says_what_has_changed_or_why_there_is_none() {
    let fired = [
        (EventType::NodeCreated, Event::Created),
        (EventType::NodeDeleted, Event::Deleted),
        (EventType::NodeDataChanged, Event::DataChanged),
        (EventType::NodeChildrenChanged, Event::ChildrenChanged),
    ];
    for (fired, expected) in fired {
        // It came before the end of the session.
        for end in [None, Some(End::Expired)] {
            assert_eq!(event_of(WatchEvent::Fired(fired), end), expected);
        }
    }
    let ends = [
        (End::AuthenticationFailed, SessionEnd::AuthenticationFailed),
        (End::Closed, SessionEnd::Closed),
        (End::Refused, SessionEnd::Refused),
        (End::SaslRequired, SessionEnd::SaslRequired),
        (End::Expired, SessionEnd::Expired),
    ];
    for (end, expected) in ends {
        let event = event_of(WatchEvent::Unwatched, Some(end));
        assert_eq!(event, Event::SessionEnded(expected));
    }
    assert_eq!(event_of(WatchEvent::Unwatched, None), Event::Unwatched);
}

/// A server refuses a container that is asked for by the operation of any other znode.
#[test]
fn container_of_a_transaction_has_an_operation_of_its_own() {
    let operation = |mode| {
        multi_operation(Operation::Create {
            path: "/a".to_owned(),
            data: Vec::new(),
            mode,
            acl: Vec::new(),
        })
    };
    let container = operation(CreateMode::Container);
    assert!(matches!(container, MultiOperation::CreateContainer(_)));
    let persistent = operation(CreateMode::Persistent);
    assert!(matches!(persistent, MultiOperation::Create2(_)));
}
