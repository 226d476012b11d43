//! Frames: a length of four bytes, then as many bytes.

use std::fmt;

use crate::four_letter_word::FourLetterWord;
use crate::jute::{self, Output};
use crate::text::Form;

/// How long a request may be by default: Apache's `jute.maxbuffer`, 1 MiB - 1 byte.
pub const DEFAULT_FRAME_LIMIT: usize = 0xf_ffff;

/// How many bytes the length in front of a frame takes.
pub const FRAME_HEADER: usize = 4;

/// Once all frames are taken, a larger buffer is given back.
const KEPT_CAPACITY: usize = 64 << 10;

/// Why bytes are not frames. The rest of the stream has no meaning after it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The length is negative.
    #[error("a frame of {0} bytes")]
    NegativeLength(i32),
    /// The length is above the limit.
    #[error("a frame of {length} bytes: at most {limit} are allowed")]
    TooLong {
        /// The length that the peer claims.
        length: usize,
        /// The limit of the decoder.
        limit: usize,
    },
}

/// Cuts a stream of bytes into frames.
///
/// It buffers what was fed and nothing else: a claimed length reserves no memory. Feed it what a
/// read has yielded, then take frames until there is none:
///
/// ```
/// use zookeeper_recipes_protocol::{DEFAULT_FRAME_LIMIT, FrameDecoder};
///
/// let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
/// decoder.feed(&[0, 0, 0, 2, 7]);
/// assert_eq!(decoder.next_frame(), Ok(None));
/// decoder.feed(&[8, 0, 0]);
/// assert_eq!(decoder.next_frame(), Ok(Some(&[7, 8][..])));
/// assert_eq!(decoder.next_frame(), Ok(None));
/// ```
///
/// `feed` does not limit how much is buffered. If the reader takes all frames after each `feed`,
/// the buffer holds less than one frame of the limit and one read.
///
/// `Debug` leaves the bytes out: a frame can have a password in it.
#[derive(Clone)]
pub struct FrameDecoder {
    limit: usize,
    /// Bytes that were fed. Frames in it that were taken end at `taken`.
    buffer: Vec<u8>,
    taken: usize,
    /// How many bytes of a frame that is passed over are still to come.
    passed_over: usize,
    begun: bool,
}

impl FrameDecoder {
    /// A decoder at the beginning of a stream, for frames of at most `limit` bytes.
    ///
    /// The length in front of a frame does not count.
    pub fn new(limit: usize) -> FrameDecoder {
        FrameDecoder {
            limit,
            buffer: Vec::new(),
            taken: 0,
            passed_over: 0,
            begun: false,
        }
    }

    /// Adds bytes that were read.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.discard_taken();
        let dropped = self.passed_over.min(bytes.len());
        self.passed_over -= dropped;
        self.buffer.extend_from_slice(&bytes[dropped..]);
    }

    /// Takes the next frame, without its length. `None` if it is not complete.
    ///
    /// # Errors
    /// A length that is negative or above the limit. It stays: each further call fails alike.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let Some((header, rest)) = self.remaining().split_first_chunk::<FRAME_HEADER>() else {
            return Ok(None);
        };
        let claimed = i32::from_be_bytes(*header);
        let length = usize::try_from(claimed).map_err(|_| FrameError::NegativeLength(claimed))?;
        if length > self.limit {
            return Err(FrameError::TooLong {
                length,
                limit: self.limit,
            });
        }
        if rest.len() < length {
            return Ok(None);
        }
        let start = self.taken + FRAME_HEADER;
        self.taken = start + length;
        self.begun = true;
        Ok(self.buffer.get(start..self.taken))
    }

    /// The first bytes of the next frame, also of one above the limit. `None` until they are fed.
    pub fn peek(&self, bytes: usize) -> Option<&[u8]> {
        self.remaining().get(FRAME_HEADER..FRAME_HEADER + bytes)
    }

    /// Passes over the next frame, also one above the limit. Its bytes are dropped when they are
    /// fed.
    ///
    /// Does nothing if its length is not fed yet, or is negative.
    pub fn skip_frame(&mut self) {
        let Some((header, rest)) = self.remaining().split_first_chunk::<FRAME_HEADER>() else {
            return;
        };
        let Ok(length) = usize::try_from(i32::from_be_bytes(*header)) else {
            return;
        };
        let fed = rest.len().min(length);
        self.taken += FRAME_HEADER + fed;
        self.passed_over = length - fed;
        self.begun = true;
    }

    /// Takes a four-letter word, if the stream begins with one.
    ///
    /// Ask before the first frame. Bytes behind the word are left for
    /// [`take_remaining`](Self::take_remaining).
    pub fn take_four_letter_word(&mut self) -> Option<FourLetterWord> {
        if self.begun {
            return None;
        }
        let word = FourLetterWord::from_bytes(*self.remaining().first_chunk()?)?;
        self.taken += FRAME_HEADER;
        self.begun = true;
        Some(word)
    }

    /// The bytes that were fed and not taken: a part of a frame, or no frame at all.
    pub fn remaining(&self) -> &[u8] {
        self.buffer.get(self.taken..).unwrap_or_default()
    }

    /// Takes the bytes that were fed and not taken.
    pub fn take_remaining(&mut self) -> Vec<u8> {
        self.begun = true;
        self.discard_taken();
        std::mem::take(&mut self.buffer)
    }

    fn discard_taken(&mut self) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_CAPACITY {
            self.buffer = Vec::new();
        }
    }
}

impl fmt::Debug for FrameDecoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FrameDecoder")
            .field("limit", &self.limit)
            .field("remaining", &self.remaining().len())
            .finish_non_exhaustive()
    }
}

/// The longest frame that the protocol can say.
const MAX_FRAME: usize = i32::MAX as usize;

/// Appends a frame with what `body` appends.
///
/// # Panics
/// If the frame would be longer than 2 GiB - 1 byte.
pub(crate) fn encode(to: &mut Vec<u8>, form: Form, body: impl FnOnce(&mut Output<'_>)) {
    let encoded = encode_within(MAX_FRAME, to, form, body);
    encoded.expect("no message of ZooKeeper's protocol reaches 2 GiB");
}

/// Appends a frame with what `body` appends, or nothing if the frame is longer than the limit.
///
/// # Errors
/// The length of a frame that is too long.
pub(crate) fn encode_within(
    limit: usize,
    to: &mut Vec<u8>,
    form: Form,
    body: impl FnOnce(&mut Output<'_>),
) -> Result<(), usize> {
    let (start, limit) = (to.len(), limit.min(MAX_FRAME));
    to.extend([0; FRAME_HEADER]);
    let mut output = Output::new(to, form, limit);
    body(&mut output);
    let length = output.length;
    if length > limit {
        to.truncate(start);
        return Err(length);
    }
    to[start..start + FRAME_HEADER].copy_from_slice(&jute::length(length).to_be_bytes());
    Ok(())
}
