//! The connections of a port, and their limits.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures_util::stream::{Stream, poll_fn};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The most connections at one time.
const MAX: usize = 256;

/// The most bytes of a request line and its headers.
const LARGEST_HEAD: usize = 16 << 10;

/// The longest time from the begin of a connection to the end of its answer.
const LONGEST: Duration = Duration::from_secs(5);

/// The longest time that a stream waits for a client that reads nothing.
const STALLED: Duration = Duration::from_secs(30);

/// The longest wait for the answers that are under way when the port ends.
const GOODBYE: Duration = Duration::from_secs(2);

/// Takes connections until `end` resolves, and then lets the answers that are under way end.
///
/// Each connection carries one request. If there are too many connections, the newest one is served
/// and the oldest one is closed: an ordinary request is answered at once, and a connection on which
/// nothing happens has waited in vain. A [stream](streamed) is not closed for another connection.
///
/// # Cancel safety
///
/// If the future is dropped, all connections are closed.
pub async fn serve(listener: TcpListener, router: Router, end: impl Future<Output = ()>) {
    let mut end = std::pin::pin!(end);
    let mut tasks = JoinSet::new();
    let mut open: VecDeque<Open> = VecDeque::with_capacity(MAX);
    loop {
        let stream = tokio::select! {
            biased;
            () = &mut end => break,
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    pause_after(&error).await;
                    continue;
                }
            },
        };
        make_room(&mut open);
        let deadline = Deadline::new();
        let task = tasks.spawn(answer(stream, router.clone(), deadline.clone()));
        open.push_back(Open { task, deadline });
    }
    drop(listener);
    // If the time is over, the tasks end with the set.
    let _ = timeout(GOODBYE, async {
        while tasks.join_next().await.is_some() {}
    })
    .await;
}

/// A connection that may have ended.
struct Open {
    task: AbortHandle,
    deadline: Deadline,
}

fn make_room(open: &mut VecDeque<Open>) {
    if open.len() < MAX {
        return;
    }
    open.retain(|it| !it.task.is_finished());
    if open.len() == MAX {
        let oldest = open.iter().position(|it| !it.deadline.is_of_stream());
        if let Some(closed) = open.remove(oldest.unwrap_or_default()) {
            closed.task.abort();
        }
    }
}

/// Waits after a connection could not be taken.
///
/// If too many files are open, for one, some have to be closed first.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be taken");
    sleep(Duration::from_millis(10)).await;
}

/// Answers one request.
async fn answer(stream: TcpStream, router: Router, deadline: Deadline) {
    let router = TowerToHyperService::new(router);
    let known = deadline.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(known.clone());
        router.call(request)
    });
    // With one request for each connection, one limit is enough for all that may be slow: the head,
    // the body, and the client that reads the answer.
    let answered = Builder::new()
        .keep_alive(false)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut answered = std::pin::pin!(answered);
    loop {
        let until = deadline.until();
        tokio::select! {
            ended = &mut answered => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a request was not answered");
                }
                return;
            }
            () = sleep_until(until) => if deadline.until() <= until {
                tracing::debug!("a request took too long");
                return;
            }
        }
    }
}

/// When a connection is closed, if its client is too slow. An extension of each request.
#[derive(Clone, Debug)]
pub struct Deadline(Arc<Mutex<(Instant, bool)>>);

impl Deadline {
    fn new() -> Deadline {
        Deadline(Arc::new(Mutex::new((Instant::now() + LONGEST, false))))
    }

    fn until(&self) -> Instant {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn is_of_stream(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    fn extend(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = Instant::now() + STALLED;
    }
}

/// A stream of events, which is not closed for another connection: see [`in_parts`].
///
/// The caller limits how many streams there are.
pub fn streamed(
    deadline: Deadline,
    parts: impl Stream<Item = String> + Send + 'static,
) -> Response<Body> {
    deadline.0.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
    in_parts(deadline, parts)
}

/// An answer in parts, which may take longer than other answers.
///
/// The connection asks for the next part when its client has read most of those before. It is closed
/// if it asks for none for 30 s. So a stream without news has to send a part more often.
pub fn in_parts(
    deadline: Deadline,
    parts: impl Stream<Item = String> + Send + 'static,
) -> Response<Body> {
    let mut parts = Box::pin(parts);
    let parts = poll_fn(move |context| {
        deadline.extend();
        let part = parts.as_mut().poll_next(context);
        part.map(|part| part.map(Ok::<String, io::Error>))
    });
    Response::new(Body::from_stream(parts))
}
