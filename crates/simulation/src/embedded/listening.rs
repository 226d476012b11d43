//! The task that takes connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};

use super::connection::serve;
use super::error::StartError;
use super::member::Member;

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

/// Takes connections, each with a task of its own.
pub(super) async fn accept(listener: TcpListener, member: Arc<Member>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(Arc::clone(&member), stream));
            }
            Err(error) => {
                // Too many open files, for one: nothing to be done but to wait until some are closed.
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
