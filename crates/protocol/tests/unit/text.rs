//! Tests of `src/text.rs`.

use super::*;

#[test]
fn character_beyond_the_first_plane_is_two_surrogates_in_replies_only() {
    let text = "/a\u{1f600}ü";
    let surrogates = b"/a\xed\xa0\xbd\xed\xb8\x80\xc3\xbc";
    assert_eq!(&*encoded(text, Form::OfReplies), surrogates);
    assert_eq!(&*encoded(text, Form::OfRequests), text.as_bytes());
    assert_eq!(decoded(surrogates, Form::OfReplies), text);
    assert_eq!(decoded(surrogates, Form::OfRequests), "/a\u{fffd}\u{fffd}ü");
    assert_eq!(decoded(text.as_bytes(), Form::OfRequests), text);
}

#[test]
fn what_is_no_utf_8_is_replaced_as_java_replaces_it() {
    let cases: [(&[u8], usize); 12] = [
        (b"\xff", 1),
        (b"\x80\x80", 2),
        (b"\xc3", 1),
        (b"\xe2\x82", 1),
        (b"\xe0\x80\x80", 3),
        (b"\xf0\x80\x80\x80", 4),
        (b"\xf0\x90\x80", 1),
        (b"\xf4\x90\x80\x80", 4),
        (b"\xed\xa0\x80", 1),
        (b"\xed\xa0", 1),
        (b"\xed\xb0\x80\xed\xa0\x80", 2),
        (b"\xed", 1),
    ];
    for (bytes, replaced) in cases {
        for form in [Form::OfRequests, Form::OfReplies] {
            let whole = [b"a".as_slice(), bytes].concat();
            let expected = format!("a{}", "\u{fffd}".repeat(replaced));
            assert_eq!(decoded(&whole, form), expected, "{bytes:x?}");
        }
    }
    assert_eq!(decoded(b"\xc3(", Form::OfRequests), "\u{fffd}(");
    assert_eq!(decoded(b"\xed\xa0(", Form::OfReplies), "\u{fffd}(");
}
