//! The ports of members, and the task that accepts connections.

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::connection::serve;
use super::error::StartError;
use super::member::Member;
use crate::wire::network::Port;

/// How many connections may wait to be taken.
const BACKLOG: u32 = 4_096;

/// Listens on a port of 127.0.0.1; with 0 on a free one.
pub(super) fn listen(port: u16) -> Result<TcpListener, StartError> {
    let bound = || {
        let socket = TcpSocket::new_v4()?;
        // On Windows this would share the port with another process.
        #[cfg(not(windows))]
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        socket.listen(BACKLOG)
    };
    bound().map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => StartError::PortInUse { port },
        _ => StartError::Listen { port, source },
    })
}

/// The address that a listener got.
pub(super) fn address_of(listener: &TcpListener) -> Result<SocketAddr, StartError> {
    let address = listener.local_addr();
    address.map_err(|source| StartError::Listen { port: 0, source })
}

/// The port of a member, which listens unless the member is stopped.
#[derive(Debug)]
pub(super) struct MemberPort {
    port: u16,
    /// The runtime that connections are taken in.
    runtime: Handle,
    listener: Mutex<Option<TcpListener>>,
    opened: Notify,
}

impl MemberPort {
    /// The port that this listens on, for tasks of the current runtime.
    pub(super) fn new(listener: TcpListener, port: u16) -> MemberPort {
        MemberPort {
            port,
            runtime: Handle::current(),
            listener: Mutex::new(Some(listener)),
            opened: Notify::new(),
        }
    }

    fn listener(&self) -> MutexGuard<'_, Option<TcpListener>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        match &*self.listener() {
            Some(listener) => listener
                .poll_accept(context)
                .map_ok(|(stream, _address)| stream),
            None => Poll::Pending,
        }
    }

    /// The next connection.
    async fn accept(&self) -> io::Result<TcpStream> {
        loop {
            tokio::select! {
                accepted = poll_fn(|context| self.poll_accept(context)) => return accepted,
                // The listener is another one now.
                () = self.opened.notified() => {}
            }
        }
    }
}

impl Port for MemberPort {
    fn close(&self) {
        drop(self.listener().take());
    }

    fn open(&self) {
        let mut listener = self.listener();
        if listener.is_some() {
            return;
        }
        let _runtime = self.runtime.enter();
        match listen(self.port) {
            Ok(again) => *listener = Some(again),
            Err(error) => tracing::error!(%error, "a member was started, and does not listen"),
        }
        drop(listener);
        self.opened.notify_one();
    }
}

/// Takes connections, each with a task of its own.
pub(super) async fn accept(port: Arc<MemberPort>, member: Arc<Member>) {
    loop {
        match port.accept().await {
            Ok(stream) => {
                tokio::spawn(serve(Arc::clone(&member), stream));
            }
            Err(error) => pause_after(&error).await,
        }
    }
}

/// Waits after a connection could not be taken.
///
/// If too many files are open, for one, some have to be closed first.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be taken");
    tokio::time::sleep(Duration::from_millis(10)).await;
}
