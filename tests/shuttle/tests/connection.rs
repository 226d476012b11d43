//! The threads of a process that share a connection.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use shuttle::future::{block_on, spawn};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::{self, JoinHandle};
use zookeeper_recipes_connection::{
    Answer, Config, Connection, ConnectionState, Driver, Host, RequestError, SessionEnd,
    UnsupportedRequests, WatchEvent,
};
use zookeeper_recipes_protocol::{ReadRequest, ReplyBody, RequestBody};
use zookeeper_recipes_shuttle::{Wire, check};

fn host(last: u8) -> Host {
    let name = format!("10.0.0.{last}");
    Host { name, port: 2181 }
}

fn open() -> (Wire, Arc<Connection>, Driver) {
    let of_threads = (0..3).flat_map(|thread| (0..3).map(move |it| format!("/{thread}/{it}")));
    let others = ["/last", "/watched"].map(str::to_owned);
    let wire = Wire::new(of_threads.chain(others));
    let config = Config {
        hosts: (1..=9).map(host).collect(),
        session_timeout: Duration::from_secs(10),
        auth: Vec::new(),
        reply_limit: 1 << 20,
        seed: 7,
        unsupported: UnsupportedRequests::default(),
    };
    let (connection, driver) = Connection::new(Arc::new(wire.clone()), config);
    (wire, Arc::new(connection), driver)
}

fn data(answer: Answer) -> Vec<u8> {
    match answer.reply.body {
        ReplyBody::Data { data, .. } => data.unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

/// A read of the znode that is watched, which sets a watch.
fn watched_read() -> RequestBody {
    RequestBody::GetData(ReadRequest::new("/watched", true))
}

/// Reads a znode. An answer must be its own.
fn read(connection: &Connection, path: &str) -> Result<(), RequestError> {
    let request = RequestBody::GetData(ReadRequest::new(path, false));
    let (answer, _) = block_on(connection.request(request))?;
    assert_eq!(data(answer), path.as_bytes());
    Ok(())
}

/// Threads that read some znodes each, and pass each outcome on.
fn readers(
    connection: &Arc<Connection>,
    outcome: impl Fn(Result<(), RequestError>) + Send + Copy + 'static,
) -> Vec<JoinHandle<()>> {
    let reader = |thread| {
        let connection = connection.clone();
        thread::spawn(move || {
            for number in 0..3 {
                outcome(read(&connection, &format!("/{thread}/{number}")));
            }
        })
    };
    (0..3).map(reader).collect()
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("no panic");
    }
}

#[test]
fn each_request_has_its_own_reply() {
    check(300, || {
        let (_wire, connection, driver) = open();
        let driver = spawn(driver);
        join(readers(&connection, |outcome| outcome.expect("an answer")));
        assert_eq!(block_on(connection.close()), SessionEnd::Closed);
        block_on(driver).expect("the driver ends");
    });
}

#[test]
fn each_request_has_one_outcome_when_the_connection_breaks() {
    check(300, || {
        let (wire, connection, driver) = open();
        let driver = spawn(driver);
        let threads = readers(&connection, |outcome| match outcome {
            Ok(()) | Err(RequestError::Broken(_)) => {}
            Err(other) => panic!("{other}"),
        });
        wire.cut();
        // A pause comes before the next connection.
        let passing = wire.clone();
        let clock = spawn(async move {
            loop {
                passing.pass(Duration::from_millis(1));
                tokio::task::yield_now().await;
            }
        });
        join(threads);
        read(&connection, "/last").expect("the next connection");
        clock.abort();
        assert_eq!(block_on(connection.close()), SessionEnd::Closed);
        block_on(driver).expect("the driver ends");
    });
}

#[test]
fn requests_of_other_threads_end_with_the_close() {
    check(300, || {
        let (_wire, connection, driver) = open();
        let driver = spawn(driver);
        let threads = readers(&connection, |outcome| match outcome {
            Ok(()) | Err(RequestError::Ended(SessionEnd::Closed)) => {}
            Err(other) => panic!("{other}"),
        });
        assert_eq!(block_on(connection.close()), SessionEnd::Closed);
        join(threads);
        block_on(driver).expect("the driver ends");
    });
}

/// A runtime that shuts down drops the driver, wherever the driver is.
#[test]
fn requests_and_the_state_end_with_the_runtime() {
    check(300, || {
        let (_wire, connection, driver) = open();
        let polls = thread_rng().gen_range(0..8);
        let driver = spawn(polled(driver, polls));
        let threads = readers(&connection, |outcome| match outcome {
            Ok(()) | Err(RequestError::Broken(_) | RequestError::Ended(SessionEnd::Closed)) => {}
            Err(other) => panic!("{other}"),
        });
        let mut states = connection.states();
        let ended =
            |state: &ConnectionState| matches!(state, ConnectionState::Ended(SessionEnd::Closed));
        drop(block_on(states.wait_for(ended)).expect("the sender"));
        join(threads);
        block_on(driver).expect("dropped");
        assert!(matches!(
            connection.state(),
            ConnectionState::Ended(SessionEnd::Closed)
        ));
    });
}

/// Polls a future this often, and drops it.
async fn polled(future: impl Future + Send, times: usize) {
    let mut future = Box::pin(future);
    for _ in 0..times {
        let once = std::future::poll_fn(|context| {
            std::task::Poll::Ready(future.as_mut().poll(context).is_ready())
        });
        if once.await {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn each_watch_fires_whatever_other_threads_drop() {
    check(300, || {
        let (wire, connection, driver) = open();
        let driver = spawn(driver);
        let watching = |_| {
            let connection = connection.clone();
            thread::spawn(move || {
                let asked = connection.request(watched_read());
                let (_, watch) = block_on(asked).expect("an answer");
                let watch = watch.expect("the znode exists");
                assert!(matches!(block_on(watch), WatchEvent::Fired(_)));
            })
        };
        let dropping = |_| {
            let connection = connection.clone();
            thread::spawn(move || {
                let asked = connection.request(watched_read());
                if thread_rng().r#gen() {
                    drop(block_on(asked).expect("an answer"));
                }
            })
        };
        let droppers: Vec<_> = (0..2).map(dropping).collect();
        let watchers: Vec<_> = (0..2).map(watching).collect();
        join(droppers);
        let writer = spawn(async move {
            // Until all have seen it.
            loop {
                wire.write_to("/watched");
                tokio::task::yield_now().await;
            }
        });
        join(watchers);
        writer.abort();
        assert_eq!(block_on(connection.close()), SessionEnd::Closed);
        block_on(driver).expect("the driver ends");
    });
}
