//! Tokens, states and errors: as numbers, as text, and by their kind.

use std::sync::Arc;

use zookeeper_recipes_core::{
    Ended, Error, ErrorKind, FencingToken, HoldState, LossReason, ServerError, SessionEnd,
    SessionId,
};

#[test]
fn token_is_the_number_of_its_znode() {
    let token = FencingToken::from(77);
    assert_eq!((token.get(), i64::from(token)), (77, 77));
    assert_eq!(token.to_string(), "77");
    assert!(token < FencingToken::from(78));
}

#[test]
fn state_says_in_words_what_the_hold_is() {
    let lost = LossReason::Session(SessionEnd::Expired);
    for (state, text, ended) in [
        (HoldState::Held, "held", None),
        (
            HoldState::Suspended,
            "held, but the server does not answer",
            None,
        ),
        (
            HoldState::Released,
            "the hold is over: it was released",
            Some(Ended::Released),
        ),
        (
            HoldState::Lost(lost),
            "the hold is lost: its session is expired",
            Some(Ended::Lost(lost)),
        ),
    ] {
        assert_eq!(state.to_string(), text);
        assert_eq!(state.ended(), ended);
        assert!(ended.is_none_or(|ended| HoldState::from(ended) == state));
    }
}

#[test]
fn own_close_of_a_session_is_no_loss_to_warn_of() {
    assert!(LossReason::Session(SessionEnd::Closed).is_own_close());
    assert!(!LossReason::Session(SessionEnd::Expired).is_own_close());
    assert!(!LossReason::LeaseElapsed.is_own_close());
}

#[test]
fn kind_of_an_error_says_what_is_over() {
    let (path, session) = ("/lock".to_owned(), SessionId(1));
    let lost = |reason| Error::Lost {
        path: path.clone(),
        session,
        reason,
    };
    assert_eq!(lost(LossReason::Written).kind(), ErrorKind::HoldEnded);
    let over = lost(LossReason::Session(SessionEnd::Expired));
    assert_eq!(over.kind(), ErrorKind::SessionOver);
    let unknown = Error::OutcomeUnknown {
        path: path.clone(),
        session,
        cause: Arc::new(ServerError::outcome_unknown("no answer")),
    };
    assert_eq!(unknown.kind(), ErrorKind::OutcomeUnknown);
    let disconnected = Error::Disconnected { path };
    assert_eq!(disconnected.kind(), ErrorKind::AttemptFailed);
}
