//! The connections of the admin port, and their limits.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::embedded::port::pause_after;

/// The most connections at one time.
const MAX: usize = 256;

/// The most bytes of a request line and its headers.
const LARGEST_HEAD: usize = 16 << 10;

/// The longest time from the begin of a connection to the end of its answer.
const LONGEST: Duration = Duration::from_secs(5);

/// Takes connections until the runtime ends.
///
/// If there are too many, the newest one is served and the oldest one is closed: an ordinary request
/// is answered at once, and a connection on which nothing happens has waited in vain.
pub(super) async fn serve(listener: TcpListener, router: Router) {
    // Also those that have ended: closing them once more does nothing.
    let mut latest: VecDeque<AbortHandle> = VecDeque::with_capacity(MAX);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        if latest.len() == MAX {
            if let Some(oldest) = latest.pop_front() {
                oldest.abort();
            }
        }
        let task = tokio::spawn(answer(stream, router.clone()));
        latest.push_back(task.abort_handle());
    }
}

/// Answers one request.
async fn answer(stream: TcpStream, router: Router) {
    let service = TowerToHyperService::new(router);
    // With one request for each connection, one limit is enough for all that may be slow: the head,
    // the body, and the client that reads the answer.
    let answered = Builder::new()
        .keep_alive(false)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(LONGEST, answered).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a request to the admin port was not answered"),
        Err(_) => tracing::debug!("a request to the admin port took too long"),
    }
}
