//! The trace of a simulation, for a person to read.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::SessionId;

/// The kind of event in a line of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceKind {
    /// A client sent a request.
    Request,
    /// A client got a reply.
    Reply,
    /// A client got a watch's notification.
    Event,
    /// The ensemble committed a transaction.
    Transaction,
    /// A connection or a session changed its state.
    Connection,
    /// A fault was injected, or has ended.
    Fault,
    /// A remark of the test's own.
    Remark,
}

/// One line of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When, by the simulation's clock.
    pub at: Duration,
    /// The kind of event.
    pub kind: TraceKind,
    /// The process of the event, if it has one.
    pub process: Option<String>,
    /// The session of the event, if it has one.
    pub session: Option<SessionId>,
    /// The event, in words.
    pub text: String,
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            TraceKind::Request => "->",
            TraceKind::Reply => "<-",
            TraceKind::Event => "<!",
            TraceKind::Transaction => "==",
            TraceKind::Connection => "--",
            TraceKind::Fault => "**",
            TraceKind::Remark => "//",
        };
        write!(formatter, "{:>10.3}s {kind} ", self.at.as_secs_f64())?;
        if let Some(process) = &self.process {
            write!(formatter, "{process} ")?;
        }
        if let Some(session) = self.session {
            write!(formatter, "{session} ")?;
        }
        formatter.write_str(&self.text)
    }
}

/// The events of a simulation, oldest first. [`Display`](fmt::Display) prints a line for each.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zookeeper_recipes_simulation::{Simulation};
///
/// let simulation = Simulation::default();
/// let session = simulation.process("worker").connect().await?;
/// session.list("/").await?;
/// simulation.remark("and now the interesting part");
///
/// let trace = simulation.trace().to_string();
/// assert!(trace.contains("list /"), "{trace}");
/// assert!(trace.contains("interesting"), "{trace}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    entries: Vec<TraceEntry>,
    forgotten: u64,
}

impl Trace {
    /// The lines that are kept.
    pub fn entries(&self) -> &[TraceEntry] {
        &self.entries
    }

    /// How many older lines had to make room.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.forgotten > 0 {
            writeln!(formatter, "({} lines before are forgotten)", self.forgotten)?;
        }
        for entry in &self.entries {
            writeln!(formatter, "{entry}")?;
        }
        Ok(())
    }
}

/// Keeps the newest lines, up to a limit.
#[derive(Debug)]
pub(crate) struct Recorder {
    entries: VecDeque<TraceEntry>,
    limit: usize,
    forgotten: u64,
}

impl Recorder {
    pub(crate) fn new(limit: usize) -> Recorder {
        Recorder {
            entries: VecDeque::new(),
            limit,
            forgotten: 0,
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.limit > 0
    }

    pub(crate) fn record(&mut self, entry: TraceEntry) {
        if self.entries.len() == self.limit {
            self.entries.pop_front();
            self.forgotten += 1;
        }
        self.entries.push_back(entry);
    }

    pub(crate) fn snapshot(&self) -> Trace {
        Trace {
            entries: self.entries.iter().cloned().collect(),
            forgotten: self.forgotten,
        }
    }
}
