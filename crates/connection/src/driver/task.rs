//! The task of a session: moves bytes between the machine and its connection.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::driver::network::{Connecting, LookingUp, Stream};
use crate::driver::shared::{ReplyTo, Shared, WatchTo};
use crate::error::DisconnectReason;
use crate::session::host::Host;
use crate::session::machine::Machine;
use crate::session::output::{ConnectionState, Output};
use crate::session::requests::take_first;

/// How many bytes one read takes at most.
const READ: usize = 16 << 10;
/// A larger buffer is given back once it was written.
const KEPT_BYTES: usize = 64 << 10;

/// Runs a session, until it ends.
///
/// All that was asked before the driver runs goes out in one write.
pub struct Driver {
    shared: Arc<Shared>,
    transport: Transport,
    look_ups: Vec<(Host, LookingUp)>,
    read: Box<[u8]>,
    /// A timer, and when it fires. It may fire too early, but never too late.
    timer: Option<(Duration, Pin<Box<Sleep>>)>,
    outputs: VecDeque<Output<ReplyTo, WatchTo>>,
    has_ended: bool,
}

enum Transport {
    Down,
    Opening(Connecting),
    Up(Wire),
}

/// A connection that is open.
struct Wire {
    stream: Box<dyn Stream>,
    /// Bytes of the machine that are not written yet, from `written` on.
    unwritten: Vec<u8>,
    written: usize,
    /// True if the stream may keep written bytes to itself, as one of TLS does.
    unflushed: bool,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>) -> Driver {
        Driver {
            shared,
            transport: Transport::Down,
            look_ups: Vec::new(),
            read: vec![0; READ].into(),
            timer: None,
            outputs: VecDeque::new(),
            has_ended: false,
        }
    }

    /// Takes what the machine yields at this time, and leaves the waker for the next request.
    ///
    /// It returns the next deadline of the machine.
    fn exchange(&mut self, context: &Context<'_>, now: Duration) -> Option<Duration> {
        let deadline = {
            let mut inner = self.shared.lock();
            let unwritten = match &mut self.transport {
                Transport::Up(wire) => &mut wire.unwritten,
                Transport::Down | Transport::Opening(_) => &mut Vec::new(),
            };
            if unwritten.is_empty() {
                inner.machine.drop_unwanted(|to| !to.is_closed());
                inner.machine.transmit(now, unwritten);
            }
            mem::swap(&mut self.outputs, &mut inner.machine.outputs);
            match &mut inner.driver {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            inner.machine.deadline()
        };
        while let Some(output) = take_first(&mut self.outputs) {
            self.apply(output);
        }
        deadline
    }

    fn apply(&mut self, output: Output<ReplyTo, WatchTo>) {
        match output {
            Output::LookUp(host) => {
                let looking_up = self.shared.network.look_up(&host);
                self.look_ups.push((host, looking_up));
            }
            Output::Connect {
                host,
                address,
                within,
            } => {
                let connecting = self.shared.network.connect(&host, address, within);
                self.transport = Transport::Opening(connecting);
            }
            Output::Disconnect => self.disconnect(),
            Output::State(ConnectionState::Ended(_)) => {
                self.has_ended = true;
                self.shared.deliver(output);
            }
            output => self.shared.deliver(output),
        }
    }

    /// Drops the connection. What is left to say is written if that needs no waiting.
    fn disconnect(&mut self) {
        if let Transport::Up(wire) = &mut self.transport {
            let mut context = Context::from_waker(std::task::Waker::noop());
            let rest = wire.unwritten.get(wire.written..).unwrap_or_default();
            let _ = Pin::new(&mut wire.stream).poll_write(&mut context, rest);
        }
        self.transport = Transport::Down;
    }

    /// Ends the session if it is open. From now on each caller takes what the machine yields.
    fn leave(&self) {
        let mut inner = self.shared.lock();
        inner.is_left = true;
        inner.driver = None;
        drop(inner);
        self.shared.input(|machine, _| machine.abandon());
    }

    /// Gives the machine an input, and returns when.
    fn input(&self, act: impl FnOnce(&mut Machine<ReplyTo, WatchTo>, Duration)) -> Duration {
        let now = self.shared.network.now();
        act(&mut self.shared.lock().machine, now);
        now
    }

    fn broken(&mut self, cause: impl Into<DisconnectReason>) -> Duration {
        self.transport = Transport::Down;
        self.input(|machine, now| machine.broken(now, cause))
    }

    /// Passes the result of a look-up on, if there is one, and returns when.
    fn look_up(&mut self, context: &mut Context<'_>) -> Poll<Duration> {
        let mut polls = self.look_ups.iter_mut().enumerate();
        let found = polls.find_map(|(place, (_, it))| match it.as_mut().poll(context) {
            Poll::Pending => None,
            Poll::Ready(found) => Some((place, found)),
        });
        let Some((place, found)) = found else {
            return Poll::Pending;
        };
        let (host, _) = self.look_ups.swap_remove(place);
        Poll::Ready(self.input(|machine, now| machine.looked_up(now, &host, found)))
    }

    /// Opens, writes and reads as far as that needs no waiting. If the machine got an input, the result
    /// is when.
    fn progress(&mut self, context: &mut Context<'_>) -> Poll<Duration> {
        Poll::Ready(match &mut self.transport {
            Transport::Down => return Poll::Pending,
            Transport::Opening(connecting) => match ready!(connecting.as_mut().poll(context)) {
                Ok(stream) => {
                    self.transport = Transport::Up(Wire {
                        stream,
                        unwritten: Vec::new(),
                        written: 0,
                        unflushed: false,
                    });
                    self.input(Machine::connected)
                }
                Err(cause) => self.broken(cause),
            },
            Transport::Up(wire) => match ready!(wire.exchange(context, &mut self.read)) {
                Ok(0) => self.broken(DisconnectReason::Closed),
                Ok(number) => {
                    let bytes = self.read.get(..number).unwrap_or_default();
                    self.input(|machine, now| machine.received(now, bytes))
                }
                Err(error) => self.broken(cause(error)),
            },
        })
    }

    /// Waits for the deadline. If it, or an earlier one, has come, the result is the time.
    ///
    /// `now` is a time in this poll of the driver.
    fn time(
        &mut self,
        context: &mut Context<'_>,
        now: Duration,
        deadline: Option<Duration>,
    ) -> Poll<Duration> {
        let Some(deadline) = deadline else {
            return Poll::Pending;
        };
        if deadline <= now {
            return Poll::Ready(self.input(Machine::elapsed));
        }
        // To move the timer at each request would cost more than a wake-up now and then.
        let timer = self.timer.take().filter(|(at, _)| *at <= deadline);
        let (at, mut timer) = timer.unwrap_or_else(|| {
            // The process may have been paused since `now`.
            let left = deadline.saturating_sub(self.shared.network.now());
            (deadline, Box::pin(sleep(left)))
        });
        if timer.as_mut().poll(context).is_pending() {
            self.timer = Some((at, timer));
            return Poll::Pending;
        }
        Poll::Ready(self.shared.network.now())
    }
}

impl Wire {
    /// Writes as far as that needs no waiting, then reads once. 0 bytes are the end of the stream.
    fn exchange(&mut self, context: &mut Context<'_>, read: &mut [u8]) -> Poll<io::Result<usize>> {
        self.write(context)?;
        let mut buffer = ReadBuf::new(read);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Writes as far as that needs no waiting.
    fn write(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while let Some(rest @ [_, ..]) = self.unwritten.get(self.written..) {
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(number)) => self.written += number,
                Poll::Ready(Err(error)) => return Err(error),
            }
            self.unflushed = true;
        }
        if self.unflushed {
            if let Poll::Ready(flushed) = Pin::new(&mut self.stream).poll_flush(context) {
                flushed?;
                self.unflushed = false;
            }
        }
        self.written = 0;
        self.unwritten.clear();
        if self.unwritten.capacity() > KEPT_BYTES {
            self.unwritten = Vec::new();
        }
        Ok(())
    }
}

/// Why a connection broke.
fn cause(error: io::Error) -> DisconnectReason {
    // Of TLS: the server closed the connection without a word, as over TCP.
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return DisconnectReason::Closed;
    }
    #[cfg(feature = "tls")]
    return crate::driver::tls::cause(error);
    #[cfg(not(feature = "tls"))]
    error.into()
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let driver = &mut *self;
        // Each reading of the clock costs as much as a small allocation. A request counts as sent no
        // later than it is, and a reply as read no earlier.
        let mut now = driver.shared.network.now();
        loop {
            let deadline = driver.exchange(context, now);
            if driver.has_ended {
                driver.leave();
                return Poll::Ready(());
            }
            // Bytes come before the time: after a pause of the process, they prove the server
            // alive.
            let progress = match driver.progress(context) {
                Poll::Pending => driver.look_up(context),
                progress => progress,
            };
            now = match progress {
                Poll::Pending => ready!(driver.time(context, now, deadline)),
                Poll::Ready(at) => at,
            };
        }
    }
}

/// A runtime that shuts down drops the driver. The session's callers must learn of that.
impl Drop for Driver {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Driver")
    }
}
