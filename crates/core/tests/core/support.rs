//! What most of these tests use.

pub(crate) use std::borrow::Cow;
pub(crate) use std::future::pending;
use std::ops::Range;
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::time::Duration;

pub(crate) use futures_util::future::{BoxFuture, FutureExt, join_all};
pub(crate) use tokio::sync::oneshot;
pub(crate) use tokio::task::JoinHandle;
pub(crate) use tokio::time::{Instant, sleep, timeout};
pub(crate) use zookeeper_recipes_core::ensemble::*;
pub(crate) use zookeeper_recipes_core::*;
pub(crate) use zookeeper_recipes_lock::{SingleNodeLock, SingleNodeOptions};
pub(crate) use zookeeper_recipes_protocol::ErrorCode;
pub(crate) use zookeeper_recipes_simulation::*;
pub(crate) use zookeeper_recipes_suite::{PATIENCE, eventually, in_time, simulated_session};

pub(crate) use crate::altered::*;

pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

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
        let done = runtime(is_paused).block_on(work);
        sender.send(done).expect("the test waits");
    });
    done.recv_timeout(PATIENCE).expect("the work ends")
}

/// The runtime of a thread.
pub(crate) fn runtime(is_paused: bool) -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(is_paused).build();
    runtime.expect("a runtime starts")
}

/// The queue of a lock.
pub(crate) fn lock(session: &Session, path: &str) -> Queue {
    queue_by(session, path, FIRST)
}

pub(crate) fn queue_by(session: &Session, path: &str, rule: impl Rule + 'static) -> Queue {
    Queue::new(session, path, rule).expect("a good path")
}

pub(crate) fn queue_with(session: &Session, path: &str, options: QueueOptions) -> Queue {
    Queue::with_options(session, path, FIRST, options).expect("good options")
}

pub(crate) fn single_node(session: &Session, path: impl AsRef<str>) -> SingleNodeLock {
    SingleNodeLock::new(session, path).expect("a good path")
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

/// Holds at once.
pub(crate) async fn hold(recipe: &(impl Recipe + ?Sized)) -> Hold {
    recipe.acquire().await.expect("nobody is before it")
}

pub(crate) async fn release(hold: Hold) {
    hold.release().await.expect("it is held");
}

/// Holds at once, and releases.
pub(crate) async fn take_turn(recipe: &(impl Recipe + ?Sized)) {
    release(hold(recipe).await).await;
}

/// What is under way after one poll.
pub(crate) fn begun<'a, W: Future + Send + 'a>(work: W) -> BoxFuture<'a, W::Output> {
    let mut work = work.boxed();
    assert!((&mut work).now_or_never().is_none(), "it is under way");
    work
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

/// Creates a persistent znode that grants these permissions to everyone.
pub(crate) fn make_granting(simulation: &Simulation, path: &str, granted: Permission) {
    let administrator = simulation.administrator();
    let acl = granting(granted);
    let made = administrator.create_with_acl(path, b"", CreateMode::Persistent, &acl);
    made.expect("its parent exists");
}

/// Changes the permissions of everyone. The result is the list before.
pub(crate) fn grant(simulation: &Simulation, path: &str, granted: Permission) -> Vec<Acl> {
    let before = simulation.administrator().set_acl(path, &granting(granted));
    before.expect("it exists")
}

/// The next child of the znode gets the last number of the count.
pub(crate) fn end_the_count(simulation: &Simulation, path: &str) {
    let set = simulation
        .administrator()
        .set_create_counter(path, i32::MAX);
    set.expect("it exists");
}

/// The next request of this kind meets the fault.
pub(crate) fn inject(simulation: &Simulation, fault: FaultKind, request: RequestKind) {
    simulation.faults().inject(Fault::new(fault).on(request));
}

/// How many requests of these kinds were sent.
pub(crate) fn sent<const N: usize>(simulation: &Simulation, kinds: [RequestKind; N]) -> [u64; N] {
    let counters = simulation.counters();
    kinds.map(|kind| counters.requests(kind))
}

/// How many requests of these kinds were sent since then.
pub(crate) fn sent_since<const N: usize>(
    simulation: &Simulation,
    before: &Counters,
    kinds: [RequestKind; N],
) -> [u64; N] {
    let counters = simulation.counters();
    kinds.map(|kind| counters.requests(kind) - before.requests(kind))
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
    let znode = NamedZnode::begin(session, &path, &QueueOptions::new(), |_, _| true).await;
    znode.expect("its session is open")
}

/// An access control list that grants everything to everyone.
pub(crate) fn everyone() -> [Acl; 1] {
    granting(Permission::ALL)
}

/// An access control list that grants these permissions to everyone.
pub(crate) fn granting(granted: Permission) -> [Acl; 1] {
    [Acl::new(granted, AuthId::anyone())]
}
