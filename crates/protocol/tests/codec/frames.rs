//! Streams of bytes, cut into frames.

use proptest::collection::vec;
use proptest::prelude::*;
use zookeeper_recipes_protocol::{DEFAULT_FRAME_LIMIT, FourLetterWord, FrameDecoder, FrameError};

proptest! {
    #[test]
    fn frames_come_out_whole_however_the_stream_is_cut(
        bodies in vec(vec(any::<u8>(), 0..40), 0..8),
        cuts in vec(1_usize..20, 1..20),
    ) {
        let mut stream = Vec::new();
        for body in &bodies {
            stream.extend((body.len() as u32).to_be_bytes());
            stream.extend(body);
        }
        let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
        let mut came: Vec<Vec<u8>> = Vec::new();
        let mut rest = &stream[..];
        for cut in cuts.iter().cycle() {
            let (chunk, behind) = rest.split_at(rest.len().min(*cut));
            decoder.feed(chunk);
            while let Some(body) = decoder.next_frame().expect("valid lengths") {
                came.push(body.to_vec());
            }
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(came, bodies);
        prop_assert!(decoder.remaining().is_empty());
    }
}

#[test]
fn lengths_that_no_frame_has_are_errors_and_stay() {
    let mut decoder = FrameDecoder::new(10);
    decoder.feed(&[0, 0, 0, 10]);
    assert_eq!(
        decoder.next_frame(),
        Ok(None),
        "the limit itself is allowed"
    );
    decoder.feed(&[7; 10]);
    assert_eq!(decoder.next_frame(), Ok(Some(&[7; 10][..])));

    decoder.feed(&[0, 0, 0, 11, 1, 2]);
    let too_long = FrameError::TooLong {
        length: 11,
        limit: 10,
    };
    assert_eq!(decoder.next_frame(), Err(too_long.clone()));
    decoder.feed(&[3; 20]);
    assert_eq!(decoder.next_frame(), Err(too_long));

    let mut decoder = FrameDecoder::new(usize::MAX);
    decoder.feed(&[0xff, 0xff, 0xff, 0xfe]);
    assert_eq!(decoder.next_frame(), Err(FrameError::NegativeLength(-2)));
    assert_eq!(decoder.take_remaining(), [0xff, 0xff, 0xff, 0xfe]);
}

#[test]
fn empty_frame_is_a_frame() {
    let mut decoder = FrameDecoder::new(10);
    decoder.feed(&[0; 8]);
    assert_eq!(decoder.next_frame(), Ok(Some(&[][..])));
    assert_eq!(decoder.next_frame(), Ok(Some(&[][..])));
    assert_eq!(decoder.next_frame(), Ok(None));
}

#[test]
fn four_letter_words_are_found_at_the_beginning_alone() {
    for word in FourLetterWord::ALL {
        let text = word.as_str().as_bytes();
        let mut decoder = FrameDecoder::new(usize::MAX);
        for byte in &text[..3] {
            decoder.feed(&[*byte]);
            assert_eq!(decoder.take_four_letter_word(), None, "not yet complete");
        }
        decoder.feed(&[text[3], b'\n']);
        assert_eq!(decoder.take_four_letter_word(), Some(word));
        assert_eq!(decoder.take_four_letter_word(), None, "taken");
        assert_eq!(decoder.take_remaining(), b"\n");
    }

    let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
    decoder.feed(b"\0\0\0\0ruok");
    assert_eq!(decoder.take_four_letter_word(), None);
    assert_eq!(decoder.next_frame(), Ok(Some(&[][..])));
    assert_eq!(decoder.take_four_letter_word(), None, "behind a frame");
    assert!(decoder.next_frame().is_err());

    let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
    decoder.feed(b"what");
    assert_eq!(decoder.take_four_letter_word(), None);
    assert!(decoder.next_frame().is_err());
}
