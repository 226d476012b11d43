//! Tests of `src/session/unsupported.rs`.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn request_that_something_replaces_is_tried_again_after_pauses_that_grow_until_it_is_answered() {
    let unsupported = UnsupportedRequests::default();
    let (opcode, mut shared) = (OpCode::CreateContainer, unsupported.clone());
    let mut now = 5 * SECOND;
    for _ in 0..3 {
        now += SECOND;
        assert!(!unsupported.refuses(opcode, now));
        shared.closed(opcode, now);
    }
    let mut pause = FIRST_PAUSE;
    for _ in 0..20 {
        assert!(unsupported.refuses(opcode, now + pause - Duration::from_millis(1)));
        now += pause;
        assert!(!unsupported.refuses(opcode, now));
        shared.closed(opcode, now);
        pause = (pause * 2).min(FIRST_PAUSE * 2_u32.pow(MAX_DOUBLINGS));
    }
    assert!(!unsupported.refuses(OpCode::RemoveWatches, now));
    shared.answered(opcode, ErrorCode::Ok, now);
    assert!(!unsupported.refuses(opcode, now));
}

/// Connections break for other reasons, too, and no caller can do without the request.
#[test]
fn request_that_nothing_replaces_is_refused_once_after_eight_breaks_over_half_a_minute() {
    let unsupported = UnsupportedRequests::default();
    let mut now = Duration::ZERO;
    let mut refused_after = |pause: Duration| {
        for breaks in 0.. {
            if unsupported.refuses(OpCode::Create2, now) {
                return breaks;
            }
            now += pause;
            unsupported.closed(OpCode::Create2, now);
        }
        unreachable!("the range has no end")
    };
    assert_eq!(refused_after(10 * SECOND), 8);
    assert_eq!(refused_after(SECOND), 31);
}

/// Connections break for other reasons, too.
#[test]
fn request_that_was_answered_once_is_supported_however_often_connections_break_at_it() {
    let mut unsupported = UnsupportedRequests::default();
    unsupported.answered(OpCode::Create2, ErrorCode::Ok, SECOND);
    for _ in 0..20 {
        unsupported.closed(OpCode::Create2, SECOND);
    }
    assert!(!unsupported.refuses(OpCode::Create2, SECOND));
}

/// A server that throttles answers before it looks at the kind of the request.
#[test]
fn request_that_was_throttled_may_be_unsupported() {
    let mut unsupported = UnsupportedRequests::default();
    unsupported.answered(OpCode::CreateContainer, ErrorCode::ThrottledOp, SECOND);
    for _ in 0..3 {
        unsupported.closed(OpCode::CreateContainer, SECOND);
    }
    assert!(unsupported.refuses(OpCode::CreateContainer, SECOND));
}

/// Callers do without it for a while. Apache's servers say so, and close the connection then.
#[test]
fn watch_of_a_tree_is_unsupported_after_one_break_or_one_answer_that_says_so() {
    for breaks in [true, false] {
        let mut unsupported = UnsupportedRequests::default();
        match breaks {
            true => unsupported.closed(OpCode::AddWatch, SECOND),
            false => unsupported.answered(OpCode::AddWatch, ErrorCode::Unimplemented, SECOND),
        }
        assert!(unsupported.refuses(OpCode::AddWatch, FIRST_PAUSE));
        assert!(!unsupported.refuses(OpCode::AddWatch, FIRST_PAUSE + SECOND));
    }
}

#[test]
fn request_that_each_server_knows_is_never_counted() {
    let mut unsupported = UnsupportedRequests::default();
    unsupported.answered(OpCode::GetData, ErrorCode::Ok, SECOND);
    assert!(lock(&unsupported.known).is_empty());
    assert!(!unsupported.refuses(OpCode::GetData, SECOND));
}
