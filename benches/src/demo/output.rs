//! What the demo prints.

use std::io::{Write, stdout};

/// Writes a line. A reader that has gone, as after `| head`, is no reason to leave znodes behind.
pub(crate) fn say(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}
