//! Connections in memory, to a server that answers at once.

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
use zookeeper_recipes_protocol::EventType;

use crate::peer::{Ensemble, Served};

/// The network of a process. A new connection takes the place of the one before.
#[derive(Clone)]
pub struct Wire(Arc<Mutex<Inner>>);

struct Inner {
    ensemble: Ensemble,
    served: Served,
    is_cut: bool,
    /// The driver's, while it waits for bytes.
    reader: Option<Waker>,
    /// The number of the connection.
    connection: u64,
    now: Duration,
}

impl Wire {
    /// A network to a server with these znodes.
    pub fn new(znodes: impl IntoIterator<Item = String>) -> Wire {
        let mut ensemble = Ensemble::default();
        ensemble.znodes.extend(znodes);
        Wire(Arc::new(Mutex::new(Inner {
            ensemble,
            served: Served::new(),
            is_cut: false,
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
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no thread panics with it")
    }

    /// Changes something, and wakes the client.
    fn change(&self, act: impl FnOnce(&mut Inner)) {
        let mut inner = self.lock();
        act(&mut inner);
        let reader = inner.reader.take();
        drop(inner);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Cuts the present connection.
    pub fn cut(&self) {
        self.change(|inner| inner.is_cut = true);
    }

    /// Has time pass, and the timers fire.
    pub fn pass(&self, time: Duration) {
        self.lock().now += time;
        tick();
    }

    /// Another client writes to a znode.
    pub fn write_to(&self, path: &str) {
        self.change(|inner| {
            let served = &mut inner.served;
            let changed = inner
                .ensemble
                .change(served, path, EventType::NodeDataChanged);
            changed.expect("the znode exists");
        });
    }
}

impl Network for Wire {
    fn connect(&self, _: &Host, _: SocketAddr, _: Duration) -> Connecting {
        let mut inner = self.lock();
        inner.served = Served::new();
        inner.is_cut = false;
        inner.connection += 1;
        let stream: Box<dyn Stream> = Box::new(OneConnection {
            wire: self.clone(),
            number: inner.connection,
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
    fn inner(&self) -> Option<MutexGuard<'_, Inner>> {
        let inner = self.wire.lock();
        (inner.connection == self.number && !inner.is_cut).then_some(inner)
    }
}

impl AsyncRead for OneConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(mut inner) = self.inner() else {
            return Poll::Ready(Ok(()));
        };
        let to_client = &mut inner.served.to_client;
        let number = into.remaining().min(to_client.len());
        let bytes: Vec<u8> = to_client.drain(..number).collect();
        if bytes.is_empty() {
            inner.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
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
        let Some(mut inner) = self.inner() else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let Inner {
            ensemble, served, ..
        } = &mut *inner;
        ensemble.receive(served, bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
