//! Tests of `src/queue/row.rs`.

use super::*;

#[test]
fn data_cannot_change_the_terminal() {
    assert_eq!(
        printable("a\x1b[31mb\nc\u{202e}d".as_bytes()),
        "a?[31mb?c?d"
    );
    assert_eq!(printable([0xff, 0xfe]), "(2 bytes)");
    assert_eq!(printable([b'x'; 100]).len(), 60);
}
