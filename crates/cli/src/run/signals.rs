//! The signals that `zkr` passes on to the command.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use nix::sys::signal::SigSet;
use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// The signals that the command gets.
const PASSED_ON: [Signal; 6] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
];

/// Blocks the signals that `zkr` passes on, in this thread and in the threads that it starts.
///
/// A service manager sends a signal to all processes of a service. The command decides what it does
/// about it, and the guard stays until the command has ended.
pub(super) fn block() {
    // An error is not possible: the set is valid.
    let _ = passed_on().thread_block();
}

/// Takes back what [`block`] did. A process inherits the blocked signals of its parent.
pub(super) fn unblock() {
    // An error is not possible: the set is valid.
    let _ = passed_on().thread_unblock();
}

fn passed_on() -> SigSet {
    let mut set = SigSet::empty();
    for signal in PASSED_ON {
        // Each has a name.
        set.extend(nix::sys::signal::Signal::try_from(signal.as_raw()));
    }
    set
}

#[derive(Debug)]
pub(crate) struct Signals {
    streams: Vec<(Signal, Stream)>,
    kept: VecDeque<Signal>,
}

impl Signals {
    /// Receives signals from now on, except the signals that `zkr` was started to ignore.
    ///
    /// `nohup zkr …` ignores SIGHUP, and so does the command.
    pub(crate) fn new() -> io::Result<Signals> {
        let ignored = ignored();
        let heard = PASSED_ON.into_iter();
        let heard = heard.filter(|number| ignored >> (number.as_raw() - 1) & 1 == 0);
        let streams = heard.map(|number| {
            let stream = signal(SignalKind::from_raw(number.as_raw()))?;
            Ok((number, stream))
        });
        Ok(Signals {
            streams: streams.collect::<io::Result<_>>()?,
            kept: VecDeque::new(),
        })
    }

    /// Passes this signal on no more: something else receives it.
    pub(super) fn leave_out(&mut self, signal: Signal) {
        self.streams.retain(|(number, _)| *number != signal);
    }

    /// Lets these signals come again.
    pub(super) fn keep(&mut self, signals: Vec<Signal>) {
        self.kept.extend(signals);
    }

    /// The next signal.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no signal is lost.
    pub(super) async fn next(&mut self) -> Signal {
        if let Some(signal) = self.kept.pop_front() {
            return signal;
        }
        poll_fn(|context| {
            for (number, stream) in &mut self.streams {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The next signal that ends a `zkr` which runs no command.
    pub(crate) async fn end(&mut self) -> i32 {
        loop {
            let signal = self.next().await;
            if ends_zkr(signal) {
                return signal.as_raw();
            }
        }
    }
}

/// True if this signal ends a `zkr` that runs no command.
pub(super) fn ends_zkr(signal: Signal) -> bool {
    !matches!(signal, Signal::USR1 | Signal::USR2)
}

/// The signals that this process was started to ignore, a bit for each.
///
/// Only Linux reports them. On other systems none is known.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = line.map(|bits| u64::from_str_radix(bits.trim(), 16));
    bits.and_then(Result::ok).unwrap_or_default()
}
