//! What an uncontended acquire and release costs the process of the client.
//!
//! A bare socket and the connection without a recipe send the same requests in turns with the lock,
//! so that other load on the machine hits all alike.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use zookeeper_recipes_benches::report::Table;
use zookeeper_recipes_benches::{
    BareSocket, SESSION_TIMEOUT, Spread, Testbed, Threads, connection_turns, measures, turn,
};
use zookeeper_recipes_connection::{Avoided, Config, Connection, Host, Tcp};
use zookeeper_recipes_lock::ExclusiveLock;

const ROUNDS: usize = 40;
const TIMES: u32 = 250;

/// Acquires and releases so many times.
type Turns<'a> = Box<dyn FnMut(u32) + 'a>;

fn main() {
    let (warm_up, rounds, times) = match measures() {
        true => (20 * TIMES, ROUNDS, TIMES),
        false => (1, 1, 1),
    };
    let testbed = Testbed::start();
    let address = testbed.server().connect_string();
    let mut socket = BareSocket::open(&address);
    let [of_socket, of_connection] = [(); 2].map(|()| directory(&testbed));
    let mut current = Builder::new_current_thread();
    let current = current.enable_all().build().expect("a runtime");
    let workers = Runtime::new().expect("a runtime");
    let [on_current, on_workers] = [&current, &workers].map(|runtime| lock(&testbed, runtime));
    let connection = connect(&address, &current);
    let mut works: Vec<(&str, Turns<'_>)> = vec![
        (
            "a bare socket, the same requests",
            Box::new(move |times| {
                (0..times).for_each(|_| socket.turn(&of_socket));
            }),
        ),
        (
            "our own connection, the same two requests, no recipe",
            Box::new(|times| {
                current.block_on(connection_turns(&connection, &of_connection, times));
            }),
        ),
        (
            "exclusive lock, a runtime of one thread",
            Box::new(|times| {
                current.block_on(turns(on_current.clone(), times));
            }),
        ),
        (
            "exclusive lock, a runtime of workers",
            Box::new(|times| {
                let task = workers.spawn(turns(on_workers.clone(), times));
                workers.block_on(task).expect("no panic");
            }),
        ),
    ];
    for (_, turns) in &mut works {
        turns(warm_up);
    }
    let costs = measure(&mut works, rounds, times);
    if measures() {
        print(works.iter().map(|(name, _)| *name), &costs);
    }
}

/// A new directory.
fn directory(testbed: &Testbed) -> String {
    let directory = testbed.directory();
    testbed.make(&directory, b"");
    directory
}

/// What each work costs for each turn, in each round: time, processor time, and switches in seconds.
fn measure(works: &mut [(&str, Turns<'_>)], rounds: usize, times: u32) -> Vec<Vec<[Duration; 3]>> {
    let mut costs = vec![Vec::new(); works.len()];
    for round in 0..rounds {
        for place in 0..works.len() {
            let which = (round + place) % works.len();
            let (began, before) = (Instant::now(), Threads::now());
            works[which].1(times);
            let (took, spent) = (began.elapsed(), Threads::now() - before);
            costs[which].push([
                took / times,
                spent.processor / times,
                Duration::from_secs(spent.switches) / times,
            ]);
        }
    }
    costs
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
        removals: Avoided::new(),
    };
    let (connection, driver) = Connection::new(Arc::new(Tcp::new()), config);
    runtime.spawn(driver);
    connection
}

fn lock(testbed: &Testbed, runtime: &Runtime) -> Arc<ExclusiveLock> {
    let lock = ExclusiveLock::new(&testbed.session_in(runtime), testbed.directory());
    Arc::new(lock.expect("a good path"))
}

async fn turns(lock: Arc<ExclusiveLock>, times: u32) {
    for _ in 0..times {
        turn(&*lock).await;
    }
}

/// The medians of all rounds, and the ratios to the bare socket within a round.
fn print<'a>(names: impl Iterator<Item = &'a str>, costs: &[Vec<[Duration; 3]>]) {
    let column = |which: usize, of: usize| -> Vec<f64> {
        costs[which]
            .iter()
            .map(|cost| cost[of].as_secs_f64())
            .collect()
    };
    let median = |values: Vec<f64>| Spread::of(values).expect("there is a round").median;
    let ratio = |which: usize, of: usize| {
        let ratios = column(which, of).into_iter().zip(column(0, of));
        median(ratios.map(|(own, socket)| own / socket).collect())
    };
    let table = Table::of(
        names.enumerate(),
        &[
            ("what", &|(_, name)| (*name).into()),
            ("time [µs]", &|(which, _)| {
                (median(column(*which, 0)) * 1e6).into()
            }),
            ("processor [µs]", &|(which, _)| {
                (median(column(*which, 1)) * 1e6).into()
            }),
            ("ratio of the processor", &|(which, _)| {
                ratio(*which, 1).into()
            }),
            ("ratio of the time", &|(which, _)| ratio(*which, 0).into()),
            ("switches", &|(which, _)| median(column(*which, 2)).into()),
        ],
    );
    println!("\n{}", table.to_markdown());
}
