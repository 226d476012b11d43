//! Output to a pipe that may be closed.

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;
use crate::plain_text::plain;

/// Whether the standard output still has a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Reads,
    Gone,
}

/// Prints text to the standard output, as [`plain`] text.
///
/// A reader that has closed its end of the pipe has seen enough: that is no failure.
pub(crate) fn print(text: &str) -> Result<Reader, Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(plain(text).as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::internal(
            "cannot write to the standard output",
            error,
        )),
    }
}
