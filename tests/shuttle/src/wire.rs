//! Connections in memory, to a server that answers at once.

use std::collections::BTreeSet;
use std::fmt;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shuttle::sync::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::tick;
use zookeeper_recipes_connection::{Connecting, Host, Network, Stream};
use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, DEFAULT_FRAME_LIMIT, EventType, FrameDecoder, KeeperState,
    Reply, ReplyBody, Request, RequestBody, SetWatchesRequest, Stat, WatcherEvent,
};

/// The network of a process. A new connection takes the place of the one before.
#[derive(Clone)]
pub struct Wire(Arc<Mutex<Served>>);

struct Served {
    from_client: FrameDecoder,
    to_client: Vec<u8>,
    has_session: bool,
    is_cut: bool,
    watched: BTreeSet<String>,
    /// The driver's, while it waits for bytes.
    reader: Option<Waker>,
    /// The number of the connection.
    connection: u64,
    now: Duration,
}

impl Default for Wire {
    fn default() -> Wire {
        Wire(Arc::new(Mutex::new(Served {
            from_client: FrameDecoder::new(DEFAULT_FRAME_LIMIT),
            to_client: Vec::new(),
            has_session: false,
            is_cut: false,
            watched: BTreeSet::new(),
            reader: None,
            connection: 0,
            now: Duration::from_secs(1_000),
        })))
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Wire")
    }
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, Served> {
        self.0.lock().expect("no thread panics with it")
    }

    /// Changes something, and wakes the client.
    fn change(&self, act: impl FnOnce(&mut Served)) {
        let mut served = self.lock();
        act(&mut served);
        let reader = served.reader.take();
        drop(served);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Cuts the present connection.
    pub fn cut(&self) {
        self.change(|served| served.is_cut = true);
    }

    /// Has time pass, and the timers fire.
    pub fn pass(&self, time: Duration) {
        self.lock().now += time;
        tick();
    }

    /// Another client writes to a znode.
    pub fn write_to(&self, path: &str) {
        self.change(|served| {
            if served.watched.remove(path) {
                served.notify(path);
            }
        });
    }
}

impl Served {
    fn notify(&mut self, path: &str) {
        let event = WatcherEvent {
            kind: EventType::NodeDataChanged,
            state: KeeperState::SyncConnected,
            path: path.to_owned(),
        };
        Reply::notification(event).encode_frame(&mut self.to_client);
    }

    fn serve(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.from_client.feed(bytes);
        while let Some(frame) = self.from_client.next_frame().map_err(io::Error::other)? {
            let frame = frame.to_vec();
            if self.has_session {
                let request = Request::decode(&frame).map_err(io::Error::other)?;
                self.answer(request);
            } else {
                ConnectRequest::decode(&frame).map_err(io::Error::other)?;
                self.has_session = true;
                let response = ConnectResponse {
                    protocol_version: 0,
                    timeout: 10_000,
                    session_id: 77,
                    password: vec![1; 16],
                    read_only: Some(false),
                };
                response.encode_frame(&mut self.to_client);
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) {
        let body = match request.body {
            // The data is the path, so that an answer shows which request it belongs to.
            RequestBody::GetData(read) => {
                if read.watch {
                    self.watched.insert(read.path.clone());
                }
                let (data, stat) = (Some(read.path.into_bytes()), Stat::default());
                ReplyBody::Data { data, stat }
            }
            RequestBody::SetWatches(SetWatchesRequest { data_watches, .. }) => {
                self.watched.extend(data_watches);
                ReplyBody::Empty
            }
            RequestBody::RemoveWatches(removed) => {
                self.watched.remove(&removed.path);
                ReplyBody::Empty
            }
            _ => ReplyBody::Empty,
        };
        Reply::new(request.xid, 1, body).encode_frame(&mut self.to_client);
    }
}

impl Network for Wire {
    fn connect(&self, _: &Host, _: SocketAddr, _: Duration) -> Connecting {
        let mut served = self.lock();
        served.from_client = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
        served.to_client.clear();
        served.has_session = false;
        served.is_cut = false;
        served.watched.clear();
        served.connection += 1;
        let stream: Box<dyn Stream> = Box::new(OneConnection {
            wire: self.clone(),
            number: served.connection,
        });
        Box::pin(ready(Ok(stream)))
    }

    fn now(&self) -> Duration {
        self.lock().now
    }
}

struct OneConnection {
    wire: Wire,
    number: u64,
}

impl OneConnection {
    /// What serves the connection. `None` if it is cut.
    fn served(&self) -> Option<MutexGuard<'_, Served>> {
        let served = self.wire.lock();
        (served.connection == self.number && !served.is_cut).then_some(served)
    }
}

impl AsyncRead for OneConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(mut served) = self.served() else {
            return Poll::Ready(Ok(()));
        };
        if served.to_client.is_empty() {
            served.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let number = into.remaining().min(served.to_client.len());
        let bytes: Vec<u8> = served.to_client.drain(..number).collect();
        into.put_slice(&bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for OneConnection {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(mut served) = self.served() else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        Poll::Ready(served.serve(bytes).map(|()| bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
