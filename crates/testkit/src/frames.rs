//! Reads frames of ZooKeeper's protocol from a stream.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};
use zookeeper_recipes_protocol::FrameDecoder;

/// A length beyond this is no frame's. Replies may be longer than any request.
const LONGEST: usize = 64 << 20;

const CHUNK: usize = 16 << 10;

/// What comes from a connection.
pub(crate) enum Read {
    /// The body of a whole frame.
    Frame(Vec<u8>),
    /// The beginning of what is no frame: a four-letter word, garbage, or a frame without its end.
    NoFrame(Vec<u8>),
    End,
}

/// Reads one direction of a connection, frame by frame.
pub(crate) struct FrameReader {
    decoder: FrameDecoder,
    chunk: Vec<u8>,
}

impl FrameReader {
    pub(crate) fn new() -> FrameReader {
        FrameReader {
            decoder: FrameDecoder::new(LONGEST),
            chunk: vec![0; CHUNK],
        }
    }

    /// Reads the next frame. The stream must be the same each time.
    pub(crate) async fn next(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Read> {
        loop {
            match self.decoder.next_frame() {
                Ok(Some(body)) => return Ok(Read::Frame(body.to_vec())),
                Ok(None) => {}
                Err(_) => return Ok(Read::NoFrame(self.decoder.take_remaining())),
            }
            let read = stream.read(&mut self.chunk).await?;
            if read == 0 {
                return Ok(match self.decoder.take_remaining() {
                    nothing if nothing.is_empty() => Read::End,
                    bytes => Read::NoFrame(bytes),
                });
            }
            self.decoder.feed(&self.chunk[..read]);
        }
    }
}
