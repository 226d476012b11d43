//! What an uncontended acquire and release costs the process of the client.
//!
//! A bare socket and the connection without a recipe send the same requests in turns with the lock.
//! All but the socket run in tasks, as the handlers of a service do. Before each poll of the future
//! that `block_on` itself runs, tokio asks the system once more for events.
//!
//! With `--test`, each does so a few times only, to show that it works.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use zookeeper_recipes_benches::{
    Overhead, SESSION_TIMEOUT, Testbed, Work, connection_turns, socket_turns, turn,
};
use zookeeper_recipes_connection::{Config, Connection, Host, Tcp, UnsupportedRequests};
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::raw::Raw;

const ROUNDS: usize = 40;
const TIMES: u64 = 250;

fn main() {
    let (rounds, times) = match std::env::args().any(|argument| argument == "--test") {
        true => (1, 5),
        false => (ROUNDS, TIMES),
    };
    let testbed = Testbed::start();
    let address = testbed.server().connect_string();
    let mut socket = Raw::connect(&address).without_checks();
    let [of_socket, of_connection] = [(); 2].map(|()| directory(&testbed));
    let mut current = Builder::new_current_thread();
    let current = current.enable_all().build().expect("a runtime");
    let workers = Runtime::new().expect("a runtime");
    let [on_current, on_workers] = [&current, &workers].map(|runtime| lock(&testbed, runtime));
    let connection = Arc::new(connect(&address, &current));
    let mut works = [
        work("a bare socket, the same requests", |times| {
            socket_turns(&mut socket, &of_socket, times);
        }),
        work(
            "our own connection, the same two requests, no recipe",
            |times| {
                let (connection, directory) = (connection.clone(), of_connection.clone());
                let turns = async move { connection_turns(&connection, &directory, times).await };
                in_task(&current, turns);
            },
        ),
        work("exclusive lock, a runtime of one thread", |times| {
            in_task(&current, turns(on_current.clone(), times));
        }),
        work("exclusive lock, a runtime of workers", |times| {
            in_task(&workers, turns(on_workers.clone(), times));
        }),
    ];
    let costs = Overhead::measure(&mut works, 20 * times, rounds, times);
    println!("\n{}", Overhead::table(&costs).to_markdown());
}

fn in_task(runtime: &Runtime, turns: impl Future<Output = ()> + Send + 'static) {
    runtime.block_on(runtime.spawn(turns)).expect("no panic");
}

fn work<'a>(name: &'static str, run: impl FnMut(u64) + 'a) -> Work<'a> {
    let run = Box::new(run);
    Work { name, run }
}

fn directory(testbed: &Testbed) -> String {
    let directory = testbed.directory();
    testbed.make(&directory);
    directory
}

/// A session without a recipe.
fn connect(address: &str, runtime: &Runtime) -> Connection {
    let (name, port) = address.rsplit_once(':').expect("one server");
    let host = Host {
        name: name.to_owned(),
        port: port.parse().expect("a port"),
    };
    let config = Config {
        hosts: vec![host],
        session_timeout: SESSION_TIMEOUT,
        auth: Vec::new(),
        reply_limit: 1 << 20,
        seed: 0,
        unsupported: UnsupportedRequests::default(),
    };
    let (connection, driver) = Connection::new(Arc::new(Tcp::new()), config);
    runtime.spawn(driver);
    connection
}

fn lock(testbed: &Testbed, runtime: &Runtime) -> Arc<ExclusiveLock> {
    let lock = ExclusiveLock::new(&testbed.session_in(runtime), testbed.directory());
    Arc::new(lock.expect("a good path"))
}

async fn turns(lock: Arc<ExclusiveLock>, times: u64) {
    for _ in 0..times {
        turn(&*lock).await;
    }
}
