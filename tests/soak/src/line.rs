//! The line to the referee, over which a process reports its holds.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::ensure;

/// The connection to the referee, which blocks until each line is answered: a dropped future cannot
/// wait.
#[derive(Debug)]
pub(crate) struct Line(Mutex<BufReader<TcpStream>>);

impl Line {
    pub(crate) fn connect(address: &str) -> anyhow::Result<Line> {
        let connection = TcpStream::connect(address)?;
        connection.set_nodelay(true)?;
        Ok(Line(Mutex::new(BufReader::new(connection))))
    }

    pub(crate) fn report(&self, line: &str) -> anyhow::Result<()> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = format!("{line}\n");
        connection.get_mut().write_all(text.as_bytes())?;
        let read = connection.read_line(&mut String::new())?;
        ensure!(
            read > 0,
            "the referee has closed the connection at {line:?}"
        );
        Ok(())
    }

    /// Ends the process if the referee does not understand.
    fn must_hear(&self, line: &str) {
        if let Err(error) = self.report(line) {
            eprintln!("{error:#}");
            std::process::exit(1);
        }
    }
}

/// A hold that the referee knows. It is no longer held for the referee when this is dropped, as the
/// work under the hold may be.
#[derive(Debug)]
pub(crate) struct Reported {
    line: Arc<Line>,
    /// The worker and what it holds.
    whose: String,
    token: i64,
}

impl Reported {
    /// Reports a hold of this weight, where all that are held at once may weigh `capacity`.
    pub(crate) fn new(
        line: &Arc<Line>,
        whose: String,
        token: i64,
        [weight, capacity]: [u64; 2],
    ) -> Reported {
        line.must_hear(&format!("own {whose} {token} {weight} {capacity}"));
        let line = line.clone();
        Reported { line, whose, token }
    }

    /// Reports a piece of work, done after a look at the hold.
    pub(crate) fn works(&self) {
        let Reported { line, whose, token } = self;
        line.must_hear(&format!("works {whose} {token}"));
    }
}

impl Drop for Reported {
    fn drop(&mut self) {
        self.line.must_hear(&format!("free {}", self.whose));
    }
}
