//! What most of these tests use.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::Ensemble;
use zookeeper_recipes_core::{
    Acl, AuthId, ConnectOptions, CreateMode, Error, Hold, InvalidInput, NamedZnode, NodePath,
    Permission, Queue, QueueView, Rule, Session, Verdict,
};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::{PATIENCE, simulated_session};

/// Fails unless the outcome is this error.
macro_rules! assert_fails {
    ($outcome:expr, Error::InvalidInput) => {
        assert!(
            matches!($outcome, Err(Error::InvalidInput(_))),
            "{:?}",
            $outcome
        )
    };
    ($outcome:expr, $error:path) => {
        assert!(matches!($outcome, Err($error { .. })), "{:?}", $outcome)
    };
}

/// An ensemble in memory with these options, and the defaults of the others.
macro_rules! simulation {
    ($($option:ident $(: $value:expr)?),* $(,)?) => {
        zookeeper_recipes_simulation::Simulation::new(
            zookeeper_recipes_simulation::SimulationOptions {
                $($option $(: $value)?,)*
                ..Default::default()
            },
        )
    };
}

pub(crate) use {assert_fails, simulation};

/// A rule by which a contender waits on other contenders by its place alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByPlace {
    pub(crate) label: &'static str,
    /// The labels that count, beside its own.
    pub(crate) counts: &'static [&'static str],
    /// The places of the contenders that the contender of this place waits on. It holds if there is
    /// no such range.
    pub(crate) waits_on: fn(usize) -> Option<Range<usize>>,
    pub(crate) reads_directory: bool,
    /// Each holder is the only one. So its releases are marked.
    pub(crate) holds_only_first: bool,
    pub(crate) may_be_replaced: bool,
    pub(crate) looks_behind: bool,
}

/// Holds when nobody is before it, and waits on the one right before it.
pub(crate) const FIRST: ByPlace = ByPlace {
    label: "lock-",
    counts: &[],
    waits_on: |me| Some(me.checked_sub(1)?..me),
    reads_directory: false,
    holds_only_first: false,
    may_be_replaced: true,
    looks_behind: false,
};

/// As [`FIRST`], and says that a holder is the only one.
pub(crate) const FIRST_ALONE: ByPlace = ByPlace {
    holds_only_first: true,
    ..FIRST
};

impl Rule for ByPlace {
    fn label(&self) -> Cow<'_, str> {
        self.label.into()
    }

    fn counts(&self, label: &str) -> bool {
        label == self.label || self.counts.contains(&label)
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        Ok(match (self.waits_on)(view.place()) {
            None => Verdict::Hold,
            Some(on) => Verdict::Wait { on: on.collect() },
        })
    }

    fn reads_directory(&self) -> bool {
        self.reads_directory
    }

    fn looks_behind(&self) -> bool {
        self.looks_behind
    }

    fn holds_only_first(&self, _: &str) -> bool {
        self.holds_only_first
    }

    fn may_be_replaced(&self, _: &str) -> bool {
        self.may_be_replaced
    }
}

/// Does work on a thread of its own. If the work never yields, the thread is lost, and the test
/// fails all the same.
pub(crate) fn ends<T: Send + 'static>(
    is_paused: bool,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let (sender, done) = channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(is_paused).build();
        let done = runtime.expect("a runtime").block_on(work);
        sender.send(done).expect("the test waits");
    });
    done.recv_timeout(PATIENCE).expect("the work ends")
}

/// The queue of a lock.
pub(crate) fn lock(session: &Session, path: &str) -> Queue {
    Queue::new(session, path, FIRST).expect("a good path")
}

/// The queue of a lock, in a session of this process.
pub(crate) async fn lock_of(simulation: &Simulation, process: &str, path: &str) -> Queue {
    lock(&simulated_session(simulation, process).await, path)
}

/// A session at this ensemble with these options.
pub(crate) async fn open(ensemble: Arc<dyn Ensemble>, options: ConnectOptions) -> Session {
    let opened = Session::open(ensemble, options).await;
    opened.expect("a session opens")
}

/// An attempt in a task of its own.
pub(crate) fn spawned(queue: &Queue) -> JoinHandle<Result<Hold, Error>> {
    let queue = queue.clone();
    tokio::spawn(async move { queue.acquire().await })
}

/// Waits until this is so, by the clock of the test.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Writes to a znode, as an operator does.
pub(crate) fn write(simulation: &Simulation, path: &str) {
    let written = simulation.administrator().set_data(path, b"");
    written.expect("it exists");
}

/// Creates a persistent znode without data.
pub(crate) fn make(simulation: &Simulation, path: &str) {
    let administrator = simulation.administrator();
    let made = administrator.create(path, b"", CreateMode::Persistent);
    made.expect("there is none");
}

/// Deletes the znode at a path, as an operator does.
pub(crate) fn delete(simulation: &Simulation, path: &str) {
    let deleted = simulation.administrator().delete(path);
    deleted.expect("it exists");
}

/// The data of the znode at a path.
pub(crate) fn data(simulation: &Simulation, path: &str) -> Vec<u8> {
    let tree = simulation.administrator().tree().into_iter();
    let mut found = tree.filter(|znode| znode.path == path);
    found.next().expect("it exists").data
}

pub(crate) const SINGLE: &str = "/single";

/// A znode in this session, at [`SINGLE`].
pub(crate) async fn begin_single(session: &Session) -> NamedZnode {
    let path = NodePath::new(SINGLE).expect("a good path");
    let znode = NamedZnode::begin(session, &path, |_, _| true).await;
    znode.expect("its session is open")
}

/// An access control list that grants everything to everyone.
pub(crate) fn everyone() -> [Acl; 1] {
    [Acl::new(Permission::ALL, AuthId::anyone())]
}
