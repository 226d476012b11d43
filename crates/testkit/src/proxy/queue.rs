//! One direction of a connection: what is read waits in a queue until it is written.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use super::connection::{Connection, Item};
use super::fault::Direction;
use super::link::{Ending, Frozen};
use crate::frames::{FrameReader, Read};

impl Connection {
    /// Reads the body of a direction's next frame. `None` if the direction has ended, or
    /// continues without frames.
    pub(super) async fn next_frame(
        &self,
        frames: &mut FrameReader,
        from: &mut ReadHalf<'_>,
        queue: &mpsc::Sender<Item>,
        direction: Direction,
    ) -> Option<Vec<u8>> {
        match frames.next(from).await {
            Ok(Read::Frame(frame)) => return Some(frame),
            Ok(Read::NoFrame(bytes)) => {
                self.count(direction, bytes.len());
                let _ = queue.send(self.bytes(bytes)).await;
                self.read_raw(from, queue, direction).await;
            }
            Ok(Read::End) => {
                let _ = queue.send(Item::SenderEnded).await;
            }
            Err(_) => {
                let _ = queue.send(Item::End(None, Ending::Reset)).await;
            }
        }
        None
    }

    fn count(&self, direction: Direction, bytes: usize) {
        let mut state = self.shared.state();
        match direction {
            Direction::ToServer => state.counters.bytes_to_server += bytes as u64,
            Direction::ToClient => state.counters.bytes_to_client += bytes as u64,
        }
    }

    /// Passes on all bytes that come.
    pub(super) async fn read_raw(
        &self,
        from: &mut ReadHalf<'_>,
        queue: &mpsc::Sender<Item>,
        direction: Direction,
    ) {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let read = match from.read(&mut buffer).await {
                Ok(0) => {
                    let _ = queue.send(Item::SenderEnded).await;
                    return;
                }
                Ok(read) => read,
                Err(_) => {
                    let _ = queue.send(Item::End(None, Ending::Reset)).await;
                    return;
                }
            };
            self.count(direction, read);
            let bytes = self.bytes(buffer[..read].to_vec());
            if queue.send(bytes).await.is_err() {
                return;
            }
        }
    }

    pub(super) async fn write(
        &self,
        mut to: WriteHalf<'_>,
        mut queue: mpsc::Receiver<Item>,
        direction: Direction,
    ) -> io::Result<()> {
        let closed = || self.link.when(|condition| condition.closed.is(direction));
        loop {
            let item = tokio::select! {
                biased;
                _ = closed() => break,
                item = queue.recv() => item,
            };
            let Some(item) = item else { break };
            if let Item::Bytes { due, .. } = &item {
                sleep_until(*due).await;
            }
            let open = self.link.when(|condition| {
                condition.closed.is(direction) || !condition.frozen.is(direction)
            });
            if open.await.closed.is(direction) {
                break;
            }
            match item {
                Item::Bytes { bytes, .. } => to.write_all(&bytes).await?,
                Item::Freeze(strike) => {
                    self.link.freeze(Frozen::BOTH);
                    strike.dealt();
                }
                Item::HalfClose(strike, closed) => {
                    self.link.half_close(closed);
                    strike.dealt();
                }
                Item::End(strike, ending) => {
                    self.link.end(ending);
                    if let Some(strike) = strike {
                        strike.dealt();
                    }
                    return Ok(());
                }
                Item::SenderEnded => break,
            }
        }
        // An error means that the receiver has gone already.
        let _ = to.shutdown().await;
        // What is sent into an end that was closed from outside goes nowhere.
        while queue.recv().await.is_some() {}
        Ok(())
    }
}
