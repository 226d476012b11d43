//! A fleet of workers, and the judge of what they own.

pub(crate) use std::collections::BTreeMap;
pub(crate) use std::convert::Infallible;
pub(crate) use std::future::pending;
pub(crate) use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
pub(crate) use std::time::Duration;

pub(crate) use futures_util::future::FutureExt;
pub(crate) use tokio::sync::Semaphore;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
pub(crate) use tokio::time::{Instant, sleep, timeout};
pub(crate) use zookeeper_recipes_assignment::{
    Assignment, AssignmentOperator, AssignmentOptions, Error, Partition, Partitions,
};
use zookeeper_recipes_assignment::{ConnectOptions, Session};
pub(crate) use zookeeper_recipes_core::{Acl, AuthId, CreateMode, Permission};
use zookeeper_recipes_simulation::SimulatedProcess;
pub(crate) use zookeeper_recipes_simulation::{
    Change, Committed, Fault, FaultKind, RequestKind, Simulation, SimulationOptions,
};
pub(crate) use zookeeper_recipes_suite::simulated_session;

pub(crate) const PATH: &str = "/app/queues";
/// Much longer than a session lives.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// All holds of all partitions: no two at once, and tokens in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judge(Arc<Mutex<Seen>>);

/// The worker and the hold of each grant, by partition.
type Seen = BTreeMap<String, Vec<(String, Partition)>>;

impl Judge {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of a worker on a partition begins.
    pub(crate) fn granted(&self, worker: &str, owned: &Partition) {
        assert!(owned.is_held(), "{worker} does not hold {}", owned.id());
        let mut seen = self.seen();
        let grants = seen.entry(owned.id().to_owned()).or_default();
        for (other, earlier) in grants.iter() {
            let (token, before) = (owned.fencing_token(), earlier.fencing_token());
            assert!(token > before, "{worker}: {token} is not after {before}");
            let both = earlier.is_held();
            let (one, two) = (owned.view(), earlier.view());
            assert!(
                !both,
                "{worker} and {other} own {}: {one:?}, {two:?}",
                owned.id()
            );
        }
        grants.push((worker.to_owned(), owned.clone()));
    }

    /// The servers have lost data: tokens begin anew.
    pub(crate) fn begin_anew(&self) {
        self.seen().clear();
    }

    /// The owner of each partition that is owned now.
    pub(crate) fn owners(&self) -> BTreeMap<String, String> {
        let seen = self.seen();
        let owner = |(partition, grants): (&String, &Vec<(String, Partition)>)| {
            let (worker, last) = grants.last()?;
            last.is_held().then(|| (partition.clone(), worker.clone()))
        };
        seen.iter().filter_map(owner).collect()
    }

    /// How many partitions each worker owns now.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for worker in self.owners().into_values() {
            *counts.entry(worker).or_default() += 1;
        }
        counts
    }

    /// How often each partition has had an owner.
    pub(crate) fn grants(&self) -> BTreeMap<String, usize> {
        let seen = self.seen();
        let count = |(partition, grants): (&String, &Vec<_>)| (partition.clone(), grants.len());
        seen.iter().map(count).collect()
    }
}

pub(crate) struct Fleet {
    pub(crate) simulation: Simulation,
    pub(crate) judge: Judge,
    pub(crate) partitions: Partitions,
    pub(crate) options: AssignmentOptions,
    running: BTreeMap<String, Running>,
}

struct Running {
    process: SimulatedProcess,
    shutdown: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Error>>,
}

impl Fleet {
    pub(crate) fn of(partitions: usize) -> Fleet {
        Fleet::new(Simulation::default(), partitions)
    }

    pub(crate) fn new(simulation: Simulation, partitions: usize) -> Fleet {
        Fleet {
            simulation,
            judge: Judge::default(),
            partitions: Partitions::numbered(partitions),
            options: AssignmentOptions::new(),
            running: BTreeMap::new(),
        }
    }

    pub(crate) async fn session(&self, process: &str) -> Session {
        simulated_session(&self.simulation, process).await
    }

    pub(crate) async fn operator(&self) -> AssignmentOperator {
        let session = self.session("operator").await;
        AssignmentOperator::new(&session, PATH).expect("a good path")
    }

    pub(crate) fn assignment(&self, session: &Session, worker: &str) -> Assignment {
        let (partitions, options) = (self.partitions.clone(), self.options.clone());
        let options = options.address(format!("{worker}:8080"));
        Assignment::with_options(session, PATH, partitions, worker, options).expect("good input")
    }

    /// Starts a worker that works until it should drain.
    pub(crate) async fn start(&mut self, worker: &str) {
        let judge = self.judge.clone();
        let name = worker.to_owned();
        self.start_with(worker, move |owned| {
            let (judge, name) = (judge.clone(), name.clone());
            async move {
                judge.granted(&name, &owned);
                // The work is polled only while its hold is valid.
                while !owned.is_draining() {
                    assert!(owned.is_held(), "{name} works on {}", owned.id());
                    let pause = Duration::from_millis(100);
                    let _ = timeout(pause, owned.draining()).await;
                }
            }
        })
        .await;
    }

    /// Starts the first workers, and waits until they own all partitions, balanced to within one.
    pub(crate) async fn start_all(&mut self, workers: &[&str]) {
        for worker in workers {
            self.start(worker).await;
        }
        self.balanced(workers).await;
    }

    pub(crate) async fn start_with<F>(
        &mut self,
        worker: &str,
        work: impl Fn(Partition) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let process = self.simulation.process(worker);
        // As a service does that starts while no server answers.
        let session = Session::open_in_background(process.ensemble(), ConnectOptions::new());
        let session = session.expect("good options");
        let assignment = self.assignment(&session, worker);
        let (shutdown, asked) = oneshot::channel();
        let in_process = process.clone();
        let task = tokio::spawn(async move {
            let work = move |owned: Partition| work(owned).map(Ok::<(), Infallible>);
            let asked = async { drop(asked.await) };
            let ran = in_process.while_awake(assignment.run(asked, work)).await;
            if let Err(error) = &ran {
                // The test that finds the worker ended shows it.
                println!("{}: {error:?}", in_process.name());
            }
            session.close().await;
            ran
        });
        let running = Running {
            process,
            shutdown,
            task,
        };
        assert!(self.running.insert(worker.to_owned(), running).is_none());
    }

    pub(crate) fn process(&self, worker: &str) -> &SimulatedProcess {
        &self.running[worker].process
    }

    /// Ends a worker as a deployment does, and waits for its end.
    pub(crate) async fn end(&mut self, worker: &str) {
        let running = self.running.remove(worker).expect("it runs");
        running.shutdown.send(()).expect("it runs");
        let ended = timeout(LONG, running.task).await;
        let ended = ended.expect("in time").expect("no panic");
        ended.expect("no error");
    }

    pub(crate) fn shut_down(&mut self, worker: &str) {
        let running = self.running.remove(worker).expect("it runs");
        running.shutdown.send(()).expect("it runs");
    }

    pub(crate) fn kill(&mut self, worker: &str) {
        let running = self.running.remove(worker).expect("it runs");
        running.process.kill();
    }

    /// Waits until these workers own all partitions, balanced to within one.
    pub(crate) async fn balanced(&self, workers: &[&str]) {
        let count = self.partitions.len();
        let (least, most) = (count / workers.len(), count.div_ceil(workers.len()));
        self.until("balanced", |judge| {
            let counts = judge.counts();
            let fair = |worker: &&str| {
                let count = counts.get(*worker).copied().unwrap_or_default();
                (least..=most).contains(&count)
            };
            counts.values().sum::<usize>() == count && workers.iter().all(fair)
        })
        .await;
    }

    /// Waits until this is true of what is owned.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl FnMut(&Judge) -> bool) {
        let so = async {
            while !is_so(&self.judge) {
                self.check();
                sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(LONG, so).await.is_err() {
            let tree: String = self.tree().chars().take(5_000).collect();
            panic!("not {what}: {:?}\n{tree}", self.judge.counts());
        }
    }

    /// Fails if a worker has ended by itself.
    pub(crate) fn check(&self) {
        for (worker, running) in &self.running {
            assert!(!running.task.is_finished(), "{worker} has ended");
        }
    }

    /// Creates znodes, as a person does.
    pub(crate) fn create(&self, paths: &[&str], data: &[u8]) {
        let administrator = self.simulation.administrator();
        for path in paths {
            let created = administrator.create(path, data, CreateMode::Persistent);
            created.expect("it is new");
        }
    }

    /// The znodes, for a person to read.
    pub(crate) fn tree(&self) -> String {
        let tree = self.simulation.administrator().tree();
        let line = |node: &zookeeper_recipes_simulation::StandingNode| {
            let data = String::from_utf8_lossy(&node.data);
            let start: String = data.chars().take(150).collect();
            format!("{} {start:?}\n", node.path)
        };
        tree.iter().map(line).collect()
    }
}
