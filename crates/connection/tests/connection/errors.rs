//! No error repeats its source, so that a report with all sources says each cause once.

use std::error::Error;
use std::io;
use std::sync::Arc;

use zookeeper_recipes_connection::{DisconnectReason, RequestError};
use zookeeper_recipes_protocol::{DecodeError, FrameError};

fn assert_says_each_cause_once(error: &dyn Error) {
    if let Some(source) = error.source() {
        let (text, of_source) = (error.to_string(), source.to_string());
        assert!(!text.contains(&of_source), "{text} repeats {of_source}");
        assert_says_each_cause_once(source);
    }
}

#[test]
fn no_error_repeats_its_source() {
    let io = || Arc::new(io::Error::other(io::Error::other("refused")));
    let breaks = [
        DisconnectReason::NoAddress(io()),
        DisconnectReason::Tls(io()),
        DisconnectReason::Io(io()),
        DisconnectReason::Frame(FrameError::NegativeLength(-1)),
        DisconnectReason::Reply(DecodeError::NegativeLength(-2)),
    ];
    for cause in breaks {
        let text = cause.to_string();
        assert_says_each_cause_once(&cause);
        let broken = RequestError::Broken(cause);
        assert!(broken.to_string().contains(&text), "{broken}");
        assert_says_each_cause_once(&broken);
    }
    let unreadable = RequestError::Unreadable(DecodeError::NegativeLength(-2));
    assert_says_each_cause_once(&unreadable);
}
