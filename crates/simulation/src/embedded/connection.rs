//! The task of one connection.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};
use zookeeper_recipes_protocol::{DecodeError, FrameDecoder, FrameError, RequestHeader};

use super::member::Member;
use super::outlet::{Outlet, Stage};
use super::words;
use crate::client::connections::PEERS;
use crate::wire::network::{ConnectionId, Peer};
use crate::wire::request;

/// How long a client may take until it has sent its first frame.
const FIRST_FRAME: Duration = Duration::from_secs(10);

/// The connection takes no more requests while so many bytes wait to be written.
const ENOUGH_TO_WRITE: usize = 1 << 20;

/// The connection takes no more requests while so many are unanswered.
const ENOUGH_TO_ANSWER: usize = 1_000;

/// The capacity that is kept for bytes to write.
const KEPT_CAPACITY: usize = 64 << 10;

/// The number of reads before the answers are written.
const READS_AT_ONCE: usize = 16;

struct Connection {
    member: Arc<Member>,
    stream: TcpStream,
    outlet: Arc<Outlet>,
    /// The connection in the simulation, once the client has greeted.
    id: Option<ConnectionId>,
    decoder: FrameDecoder,
    writing: Vec<u8>,
    written: usize,
    /// When the client last sent something. Parts of its first frame do not count.
    heard: Instant,
}

/// Serves a client until one of both ends it.
pub(super) async fn serve(member: Arc<Member>, stream: TcpStream) {
    let Ok(address) = stream.peer_addr() else {
        return;
    };
    let _ = stream.set_nodelay(true);
    let limit = member.options.queue_limit;
    let outlet = Arc::new(Outlet::new(address, limit, Arc::clone(&member.figures)));
    let limit = member.options.simulation.largest_request;
    let mut connection = Connection {
        outlet,
        stream,
        id: None,
        decoder: FrameDecoder::new(limit),
        writing: Vec::new(),
        written: 0,
        heard: Instant::now(),
        member,
    };
    let end = connection.run().await;
    match end {
        End::Closed => tracing::debug!(%address, "connection closed"),
        End::Io(error) => tracing::debug!(%address, %error, "connection broken"),
        end => tracing::warn!(%address, reason = %end, "the server closes the connection"),
    }
}

impl Connection {
    async fn run(&mut self) -> End {
        let mut idle = pin!(sleep_until(self.heard + FIRST_FRAME));
        let outlet = Arc::clone(&self.outlet);
        loop {
            if let Err(end) = self.move_on() {
                return end;
            }
            let silent_until = self.heard + self.patience();
            // The clock is set anew when it has run out, not with each request.
            if silent_until < idle.deadline() {
                idle.as_mut().reset(silent_until);
            }
            let interest = self.interest();
            let awaited = interest.unwrap_or(Interest::READABLE);
            tokio::select! {
                biased;
                ready = self.stream.ready(awaited), if interest.is_some() => {
                    let read = ready.map_err(End::from).and_then(|ready| match ready.is_readable() {
                        true => self.take_in(),
                        false => Ok(()),
                    });
                    if let Err(end) = read {
                        return end;
                    }
                }
                () = outlet.woken() => {}
                () = idle.as_mut() => {
                    if Instant::now() >= silent_until {
                        return End::Silent(self.patience());
                    }
                    idle.as_mut().reset(silent_until);
                }
            }
        }
    }

    /// How long the client may be silent.
    fn patience(&self) -> Duration {
        let tick = self.member.options.simulation.tick;
        self.outlet
            .timeout()
            .map_or(FIRST_FRAME, |timeout| timeout + tick)
    }

    /// What to await of the socket. `None` if the connection waits for an answer only.
    fn interest(&self) -> Option<Interest> {
        match (self.is_busy(), self.is_written()) {
            (true, true) => None,
            (true, false) => Some(Interest::WRITABLE),
            (false, true) => Some(Interest::READABLE),
            (false, false) => Some(Interest::READABLE | Interest::WRITABLE),
        }
    }

    fn is_written(&self) -> bool {
        self.written == self.writing.len()
    }

    /// True if so much is to be written or answered that no more requests are taken.
    fn is_busy(&self) -> bool {
        let (bytes, requests) = self.outlet.waiting();
        self.writing.len() - self.written + bytes > ENOUGH_TO_WRITE || requests > ENOUGH_TO_ANSWER
    }

    /// Answers what has come, and writes what can be written.
    fn move_on(&mut self) -> Result<(), End> {
        loop {
            let frames = self.take_frames();
            let stage = self.write()?;
            frames?;
            match stage {
                Stage::Full => return Err(End::Full(self.member.options.queue_limit)),
                Stage::Broken => return Err(End::Closed),
                Stage::Closing if self.is_written() => return Err(End::Closed),
                _ => {}
            }
            if self.is_busy() || !self.is_written() || !self.has_frame() {
                return Ok(());
            }
        }
    }

    /// True if a whole frame has come and was not taken yet.
    fn has_frame(&self) -> bool {
        let rest = self.decoder.remaining();
        let length = rest
            .first_chunk()
            .map(|it| u32::from_be_bytes(*it) as usize);
        length.is_some_and(|length| rest.len() - 4 >= length)
    }

    fn take_in(&mut self) -> Result<(), End> {
        let mut buffer = [0; 8 << 10];
        for _ in 0..READS_AT_ONCE {
            match self.stream.try_read(&mut buffer) {
                Ok(0) => return Err(End::Closed),
                Ok(count) => {
                    if self.id.is_some() {
                        self.heard = Instant::now();
                    }
                    self.decoder.feed(&buffer[..count]);
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn take_frames(&mut self) -> Result<(), End> {
        if let Some(word) = self.decoder.take_four_letter_word() {
            self.member.figures().received += 1;
            let answer = words::answer(word.as_str(), &self.member);
            self.member.figures().sent += 1;
            self.writing.extend_from_slice(answer.as_bytes());
            self.outlet.close();
            return Ok(());
        }
        while !self.is_busy() {
            let Some(frame) = self.decoder.next_frame()? else {
                return Ok(());
            };
            self.outlet.count_received();
            match self.id {
                None => {
                    let id = open(&self.member, &self.outlet).ok_or(End::Closed)?;
                    self.id = Some(id);
                    self.member.send(id, frame)?;
                    self.heard = Instant::now();
                }
                Some(id) => {
                    let opcode = RequestHeader::peek(frame)?.opcode;
                    if self.member.options.closes_at_unknown_requests && request::is_unknown(opcode)
                    {
                        return Err(End::UnknownType(opcode.into()));
                    }
                    self.member.send(id, frame)?;
                }
            }
        }
        Ok(())
    }

    /// Writes what can be written without waiting.
    fn write(&mut self) -> Result<Stage, End> {
        loop {
            if self.is_written() {
                self.writing.clear();
                self.writing.shrink_to(KEPT_CAPACITY);
                self.written = 0;
            }
            let stage = match self.writing.len() {
                0 => self.outlet.take(&mut self.writing),
                _ => self.outlet.stage(),
            };
            if self.writing.is_empty() || matches!(stage, Stage::Full | Stage::Broken) {
                return Ok(stage);
            }
            match self.stream.try_write(&self.writing[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(stage),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.member.connections().remove(&id);
            let shared = &self.member.shared;
            shared.with(|world| world.leave_peer(id));
            shared.do_what_is_due();
        }
    }
}

/// Opens the connection of a client that has sent its first frame.
fn open(member: &Member, outlet: &Arc<Outlet>) -> Option<ConnectionId> {
    let peer: Arc<dyn Peer> = outlet.clone();
    let address = outlet.address.ip().to_string();
    let id = member.shared.with(|world| {
        let process = world.process(PEERS);
        world.open_peer(process, member.server, address, peer)
    })?;
    member.connections().insert(id, Arc::clone(outlet));
    Some(id)
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    /// The client has closed it, or the server, or a fault.
    #[error("it was closed")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the client sent {0}")]
    Frame(#[from] FrameError),
    #[error("the client sent a frame that is no message: {0}")]
    Message(#[from] DecodeError),
    #[error("the client sent nothing for {0:?}")]
    Silent(Duration),
    #[error("the client does not read: more than {0} bytes wait for it")]
    Full(usize),
    #[error("the client sent a request of an unknown type: {0}")]
    UnknownType(i32),
}
