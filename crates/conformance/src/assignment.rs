//! The promises of an assignment of partitions, on servers that run already.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use zookeeper_recipes_assignment::{
    Assignment, AssignmentOperator, ConnectOptions, Error, Partition, Partitions, Session,
};
use zookeeper_recipes_testkit::conformance::{CheckedServer, Outcome, RunningEnsemble};
use zookeeper_recipes_testkit::history::History;
use zookeeper_recipes_testkit::proxy::Proxy;

const PARTITIONS: usize = 4;
const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
/// How long a step may take, of which the longest is the expiry of a session.
const PATIENCE: Duration = Duration::from_secs(40);

const BALANCE: &str = "a worker that comes gets its share, and one that is drained gives all away";
const DEATH: &str = "a silent worker loses its partitions before another owns them";
const LEAVE: &str = "a worker that leaves gives its partitions to another";
const ROUTING: &str = "the routing shows each owner with its token";

/// What breaks a promise.
type Kept<T = ()> = Result<T, String>;

/// Checks each promise. In all of them no partition may have two owners, and tokens ascend.
pub(crate) async fn check_each(
    servers: &RunningEnsemble,
    mut report: impl FnMut(&'static str, &Outcome),
) {
    let connect = servers.connect_string();
    let fleet = |name: &str| Fleet {
        connect: connect.clone(),
        path: format!("{}/assignment/{name}", servers.directory()),
        owners: Owners::default(),
    };
    let outcome = |kept: Kept| kept.map_or_else(Outcome::Broken, |()| Outcome::Kept);
    report(BALANCE, &outcome(balance(&fleet("balance")).await));
    report(DEATH, &outcome(death(&fleet("death")).await));
    report(LEAVE, &outcome(leave(&fleet("leave")).await));
    report(ROUTING, &outcome(routing(&fleet("routing")).await));
}

async fn balance(fleet: &Fleet) -> Kept {
    let one = fleet.start("one", &fleet.connect).await?;
    fleet.owned_by(&["one"]).await?;
    let two = fleet.start("two", &fleet.connect).await?;
    fleet.owned_by(&["one", "two"]).await?;
    let operator = AssignmentOperator::new(&one.session, &fleet.path).map_err(text)?;
    operator.drain("two").await.map_err(text)?;
    fleet.owned_by(&["one"]).await?;
    operator.undrain("two").await.map_err(text)?;
    fleet.owned_by(&["one", "two"]).await?;
    one.end().await?;
    two.end().await
}

async fn death(fleet: &Fleet) -> Kept {
    let (servers, chroot) = match fleet.connect.split_once('/') {
        Some((servers, chroot)) => (servers, format!("/{chroot}")),
        None => (&*fleet.connect, String::new()),
    };
    let server = servers.split(',').next().unwrap_or_default();
    let proxy = Proxy::start(server).await.map_err(text)?;
    let through = format!("{}{chroot}", proxy.connect_string());
    let (one, two) = fleet.start_two(&through).await?;
    proxy.freeze();
    fleet.owned_by(&["two"]).await?;
    proxy.thaw();
    fleet.owned_by(&["one", "two"]).await?;
    one.end().await?;
    two.end().await
}

async fn leave(fleet: &Fleet) -> Kept {
    let (one, two) = fleet.start_two(&fleet.connect).await?;
    one.end().await?;
    fleet.owned_by(&["two"]).await?;
    two.end().await
}

async fn routing(fleet: &Fleet) -> Kept {
    let (one, two) = fleet.start_two(&fleet.connect).await?;
    let operator = AssignmentOperator::new(&one.session, &fleet.path).map_err(text)?;
    let mut routing = operator.routing().await.map_err(text)?;
    fleet
        .until("shown", || {
            let routing = routing.borrow_and_update();
            let seen = fleet.owners.seen();
            let is_shown = |(partition, (worker, token)): (&String, &(String, i64))| {
                let owner = routing.get(partition);
                owner.is_some_and(|it| it.worker == *worker && it.fencing_token.get() == *token)
            };
            routing.len() == PARTITIONS && seen.now.iter().all(is_shown)
        })
        .await?;
    one.end().await?;
    two.end().await
}

/// The workers of one check.
struct Fleet {
    connect: String,
    path: String,
    owners: Owners,
}

impl Fleet {
    /// Two workers that share the partitions. The first reaches the servers by this string.
    async fn start_two(&self, connect: &str) -> Kept<(Worker, Worker)> {
        let one = self.start("one", connect).await?;
        let two = self.start("two", &self.connect).await?;
        self.owned_by(&["one", "two"]).await?;
        Ok((one, two))
    }

    async fn start(&self, id: &str, connect: &str) -> Kept<Worker> {
        let options = ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
        let session = Session::connect_with(connect, options).await;
        let session = session.map_err(text)?;
        let partitions = Partitions::numbered(PARTITIONS);
        let assignment = Assignment::new(&session, &self.path, partitions, id).map_err(text)?;
        let (shutdown, asked) = oneshot::channel();
        let (owners, worker) = (self.owners.clone(), id.to_owned());
        let work = move |owned: Partition| {
            let owns = owners.begin(&worker, &owned);
            async move {
                let _owns = owns;
                owned.draining().await;
                Ok::<(), Infallible>(())
            }
        };
        let asked = async { drop(asked.await) };
        let task = tokio::spawn(async move { assignment.run(asked, work).await });
        Ok(Worker {
            session,
            shutdown,
            task,
        })
    }

    /// Waits until these workers own all partitions, in equal shares.
    async fn owned_by(&self, workers: &[&str]) -> Kept {
        let share = PARTITIONS / workers.len();
        let what = format!("owned by {workers:?} in equal shares");
        self.until(&what, || {
            let seen = self.owners.seen();
            let of = |id: &&str| seen.now.values().filter(|(worker, _)| worker == id).count();
            seen.now.len() == PARTITIONS && workers.iter().all(|id| of(id) == share)
        })
        .await
    }

    async fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) -> Kept {
        let last = Instant::now() + PATIENCE;
        loop {
            if let Some(broken) = &self.owners.seen().broken {
                return Err(broken.clone());
            }
            if is_so() {
                return Ok(());
            }
            if Instant::now() >= last {
                let now = &self.owners.seen().now;
                return Err(format!("not {what} after {PATIENCE:?}: {now:?}"));
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

struct Worker {
    session: Session,
    shutdown: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Error>>,
}

impl Worker {
    async fn end(self) -> Kept {
        // An error means that the worker has ended, and its task says why.
        let _ = self.shutdown.send(());
        let ended = tokio::time::timeout(PATIENCE, self.task).await;
        let ended = ended.map_err(|_| format!("a worker did not end within {PATIENCE:?}"))?;
        ended.map_err(text)?.map_err(text)?;
        self.session.close().await;
        Ok(())
    }
}

/// The owners of all partitions, as the workers see them.
#[derive(Clone, Default)]
struct Owners(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    histories: BTreeMap<String, History>,
    /// The worker of each partition, and its token.
    now: BTreeMap<String, (String, i64)>,
    broken: Option<String>,
}

impl Owners {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of a worker begins, and lasts until the returned value is dropped.
    fn begin(&self, worker: &str, owned: &Partition) -> Owns {
        let seen = &mut *self.seen();
        let partition = owned.id().to_owned();
        let history = seen.histories.entry(partition.clone());
        let history = history.or_insert_with(|| History::new(1));
        let (number, found) = history.granted(worker, 1, &owned.view());
        if let Some(violation) = found.first() {
            seen.broken = Some(violation.to_string());
        }
        let token = owned.fencing_token().get();
        seen.now
            .insert(partition.clone(), (worker.to_owned(), token));
        Owns {
            owners: self.clone(),
            partition,
            number,
            token,
        }
    }
}

/// Work on a partition. Dropped, the work has ended.
struct Owns {
    owners: Owners,
    partition: String,
    number: u64,
    token: i64,
}

impl Drop for Owns {
    fn drop(&mut self) {
        let seen = &mut *self.owners.seen();
        if let Some(history) = seen.histories.get_mut(&self.partition) {
            history.letting_go(self.number);
        }
        let now = seen.now.get(&self.partition);
        if now.is_some_and(|(_, token)| *token == self.token) {
            seen.now.remove(&self.partition);
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
