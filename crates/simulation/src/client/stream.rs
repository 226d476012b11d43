//! A connection of the library to a simulated server: a stream of bytes.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use fastrand::Rng;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use zookeeper_recipes_protocol::{FrameDecoder, OpCode};

use super::process::ProcessId;
use crate::engine::shared::Shared;
use crate::wire::message::{Downward, Note};
use crate::wire::network::{ConnectionId, Peer};

/// The address of each simulated client.
const ADDRESS: &str = "127.0.0.1";

/// No request is longer: the servers have a limit of their own.
const LONGEST: usize = i32::MAX as usize;

/// One read in so many gets a part of the bytes that have come, and one write sends a part.
const PARTS: u32 = 16;

/// The client's end of a connection.
pub(crate) struct SimulatedStream {
    shared: Arc<Shared>,
    process: ProcessId,
    id: ConnectionId,
    end: Arc<ClientEnd>,
    decoder: FrameDecoder,
    removes_watches: bool,
}

/// The bytes that have come from the server.
#[derive(Debug)]
struct ClientEnd(Mutex<Arrived>);

#[derive(Debug)]
struct Arrived {
    bytes: VecDeque<u8>,
    /// How many of the frames that the client has sent have no reply yet.
    unanswered: usize,
    /// True if bytes were lost that had come.
    is_torn: bool,
    /// Set once nothing more comes.
    end: Option<End>,
    reader: Option<Waker>,
    rng: Rng,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Closed,
    Broken,
}

impl SimulatedStream {
    /// Connects a process to a server; `None` if the server serves nobody.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        process: ProcessId,
        server: usize,
    ) -> Option<SimulatedStream> {
        let opened = shared.with(|world| {
            let arrived = Arrived {
                bytes: VecDeque::new(),
                unanswered: 0,
                is_torn: false,
                end: None,
                reader: None,
                rng: world.kernel().rng.fork(),
            };
            let end = Arc::new(ClientEnd(Mutex::new(arrived)));
            let id = world.open_peer(process, server, ADDRESS.to_owned(), end.clone())?;
            Some((id, end))
        });
        let (id, end) = opened?;
        Some(SimulatedStream {
            shared: Arc::clone(shared),
            process,
            id,
            end,
            decoder: FrameDecoder::new(LONGEST),
            removes_watches: false,
        })
    }

    /// Sends the frames whose last byte has been written.
    fn send_whole_frames(&mut self) -> io::Result<()> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        while let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
            self.end.arrived().unanswered += 1;
            let sent = self.shared.with(|world| world.send_frame(self.id, frame));
            self.removes_watches |= sent.map_err(invalid)? == Some(OpCode::RemoveWatches);
        }
        Ok(())
    }
}

impl AsyncWrite for SimulatedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let number = self.end.arrived().part_of(bytes.len());
        self.decoder.feed(&bytes[..number]);
        let sent = self.send_whole_frames();
        Poll::Ready(sent.map(|()| number))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for SimulatedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut arrived = self.end.arrived();
        let most = arrived.bytes.len().min(buffer.remaining());
        let number = arrived.part_of(most);
        if number > 0 {
            let read: Vec<u8> = arrived.bytes.drain(..number).collect();
            buffer.put_slice(&read);
            return Poll::Ready(Ok(()));
        }
        match arrived.end {
            Some(End::Closed) => Poll::Ready(Ok(())),
            Some(End::Broken) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            None => {
                arrived.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for SimulatedStream {
    fn drop(&mut self) {
        let is_answered = self.end.arrived().is_answered();
        self.shared.with(|world| {
            if self.removes_watches && !is_answered {
                world.interrupt_removal(self.process);
            }
            world.leave_peer(self.id);
        });
    }
}

impl Arrived {
    /// True if the client has read the replies to all its requests.
    fn is_answered(&self) -> bool {
        self.unanswered == 0 && self.bytes.is_empty() && !self.is_torn
    }

    /// How many of so many bytes one read or write moves.
    fn part_of(&mut self, number: usize) -> usize {
        match number > 1 && self.rng.u32(0..PARTS) == 0 {
            true => self.rng.usize(1..number),
            false => number,
        }
    }
}

impl ClientEnd {
    fn arrived(&self) -> MutexGuard<'_, Arrived> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Arrived)) {
        let reader = {
            let mut arrived = self.arrived();
            if arrived.end.is_none() {
                change(&mut arrived);
            }
            arrived.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Peer for ClientEnd {
    fn hear(&self, message: Downward) {
        self.change(|arrived| match message {
            Downward::Close => arrived.end = Some(End::Closed),
            Downward::Bytes(bytes, note) => {
                let is_reply = !matches!(note, Note::Event(..) | Note::Cut(..));
                arrived.unanswered -= usize::from(is_reply);
                arrived.bytes.extend(bytes);
            }
        });
    }

    fn hang_up(&self) {
        self.change(|arrived| {
            // Of what nobody has read, any part is lost.
            let left = arrived.bytes.len();
            let kept = arrived.rng.usize(0..=left);
            arrived.is_torn |= kept < left;
            arrived.bytes.truncate(kept);
            arrived.end = Some(End::Broken);
        });
    }
}
