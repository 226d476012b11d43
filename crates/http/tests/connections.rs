//! The limits of connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use zookeeper_recipes_http::{Deadline, in_parts, serve, streamed};

/// The longest wait of this test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A large answer whose client reads slowly is no stream of events.
#[tokio::test(flavor = "multi_thread")]
async fn oldest_answer_that_nobody_reads_is_closed_for_a_newer_one_and_a_stream_is_not() {
    let is_late = Arc::new(AtomicBool::new(false));
    let late = is_late.clone();
    let events = async move |Extension(deadline): Extension<Deadline>| -> Response {
        streamed(
            deadline,
            stream::unfold(late, async |late| {
                sleep(Duration::from_millis(10)).await;
                let word = if late.load(Ordering::Relaxed) {
                    "late"
                } else {
                    "early"
                };
                Some((word.to_owned(), late))
            }),
        )
    };
    let large = async |Extension(deadline): Extension<Deadline>| -> Response {
        in_parts(deadline, stream::repeat("x".repeat(1 << 16)))
    };
    let router = Router::new()
        .route("/events", get(events))
        .route("/large", get(large));
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let address = listener.local_addr().expect("it has one");
    tokio::spawn(serve(listener, router, std::future::pending()));
    let ask = async |path: &str, word: &str| {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it reads");
        until(&mut stream, word).await;
        stream
    };
    let mut events = ask("/events", "early").await;
    let mut unread = Vec::new();
    for _ in 0..300 {
        unread.push(ask("/large", "200 OK").await);
    }
    until_closed(&mut unread[0]).await;
    is_late.store(true, Ordering::Relaxed);
    until(&mut events, "late").await;
}

/// Reads an answer without an end until its connection is closed.
async fn until_closed(stream: &mut TcpStream) {
    let read = timeout(PATIENCE, async {
        let mut part = vec![0; 1 << 16];
        while let Ok(1..) = stream.read(&mut part).await {}
    });
    read.await.expect("it is closed");
}

/// Reads until this has come.
async fn until(stream: &mut TcpStream, word: &str) {
    let mut text = String::new();
    while !text.contains(word) {
        let mut part = [0; 1024];
        let read = timeout(PATIENCE, stream.read(&mut part)).await;
        let read = read.expect("in time").expect("it is open");
        assert_ne!(read, 0, "the stream ends without {word:?}");
        text += &String::from_utf8_lossy(&part[..read]);
    }
}
