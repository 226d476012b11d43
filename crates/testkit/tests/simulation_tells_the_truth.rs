//! The same random operations on the simulation and on a real server, through the same interface:
//! each reply, each refusal, each watch's event and each count of watches must be the same.
//!
//! `SEEDS` sets how many sequences there are, `SEED` the first one's seed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::StreamExt;
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, CreateMode, Ensemble, Operation, Outcome, Permission,
    ServerSession, Stat, Watch,
};
use zookeeper_recipes_core::{ConnectOptions, ServerError, ZookeeperEnsemble};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::number;
use zookeeper_recipes_testkit::{Server, ServerOptions};

const SESSIONS: usize = 3;
const STEPS: usize = 60;
const NO_DELAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::ZERO;
/// What a server makes of the credentials `ada:secret`.
const ADA: &str = "ada:VTFFY3p38X0IKhZgzUit6nGpbgY=";

/// What one session asks.
#[derive(Clone, Debug)]
enum Ask {
    Write(Operation),
    List(String, bool),
    Get(String, bool),
    Exists(String),
    Transact(Vec<Operation>),
    GetEach(Vec<String>),
    Sync(String),
}

#[derive(Clone, Debug)]
enum Step {
    /// One session asks all of this without waiting in between.
    Ask(usize, Vec<Ask>),
    /// One of the watches is dropped.
    DropWatch(usize),
    /// A session is closed, and another session is opened.
    Reopen(usize),
}

/// Draws steps over few paths, so that they meet.
struct Script {
    rng: Rng,
}

impl Script {
    fn path(&mut self) -> String {
        let paths = [
            "/t",
            "/t/a",
            "/t/b",
            "/t/a/x",
            "/t/a/y",
            "/t/a/x/z",
            "/t/c",
            "/t/a/s-0000000001",
            "/t/s-0000000000",
            "/t/s-0000000001",
            "/t/s-0000000003",
            "/t/none/below",
        ];
        let odd = ["", "relative", "/t/", "/t//a", "/t/./a", "/t/\u{1}", "/"];
        if self.rng.u32(0..40) == 0 {
            (*self.rng.choice(&odd).unwrap()).to_owned()
        } else {
            (*self.rng.choice(&paths).unwrap()).to_owned()
        }
    }

    fn version(&mut self) -> Option<i32> {
        *self
            .rng
            .choice(&[None, None, Some(0), Some(1), Some(2)])
            .unwrap()
    }

    fn acl(&mut self) -> Vec<Acl> {
        let all = Permission::ALL;
        match self.rng.u32(0..24) {
            0 => vec![],
            1 => vec![Acl::new(all, AuthId::authed())],
            2 => vec![Acl::new(Permission::READ, AuthId::anyone())],
            3 => vec![Acl::new(all, AuthId::new("digest", ADA))],
            4 => vec![
                Acl::new(Permission::CREATE | Permission::DELETE, AuthId::anyone()),
                Acl::new(Permission::WRITE, AuthId::authed()),
            ],
            5 => vec![Acl::new(all, AuthId::new("nonsense", "x"))],
            6 => vec![Acl::new(all, AuthId::new("digest", "no-colon"))],
            _ => vec![Acl::new(all, AuthId::anyone())],
        }
    }

    fn create(&mut self) -> Operation {
        let modes = [
            CreateMode::Persistent,
            CreateMode::Persistent,
            CreateMode::Ephemeral,
            CreateMode::PersistentSequential,
            CreateMode::EphemeralSequential,
            CreateMode::Container,
        ];
        let mode = *self.rng.choice(&modes).unwrap();
        let path = match mode {
            CreateMode::PersistentSequential | CreateMode::EphemeralSequential => (*self
                .rng
                .choice(&["/t/s-", "/t/a/s-", "/t/b/s-", "/t/a/"])
                .unwrap())
            .to_owned(),
            _ => self.path(),
        };
        let data = vec![b'x'; self.rng.usize(0..4)];
        Operation::Create {
            path,
            data,
            mode,
            acl: self.acl(),
        }
    }

    fn operation(&mut self, several: bool) -> Operation {
        match self.rng.u32(0..10) {
            0..=4 => self.create(),
            5..=6 => {
                let version = if several { self.version() } else { None };
                Operation::Delete {
                    path: self.path(),
                    version,
                }
            }
            7 | 8 => Operation::SetData {
                path: self.path(),
                data: vec![b'y'; self.rng.usize(0..4)],
                version: self.version(),
            },
            _ => Operation::Check {
                path: self.path(),
                version: self.version(),
            },
        }
    }

    fn ask(&mut self) -> Ask {
        match self.rng.u32(0..20) {
            0..=8 => Ask::Write(self.operation(false)),
            9 | 10 => Ask::List(self.path(), self.rng.bool()),
            11..=13 => Ask::Get(self.path(), self.rng.u32(0..4) > 0),
            14 | 15 => Ask::Exists(self.path()),
            16 => Ask::Sync(self.path()),
            17 => Ask::GetEach((0..self.rng.usize(0..4)).map(|_| self.path()).collect()),
            _ => {
                let count = self.rng.usize(0..5);
                Ask::Transact((0..count).map(|_| self.operation(true)).collect())
            }
        }
    }

    fn step(&mut self) -> Step {
        match self.rng.u32(0..30) {
            0 => Step::Reopen(self.rng.usize(0..SESSIONS)),
            1..=4 => Step::DropWatch(self.rng.usize(0..1000)),
            _ => {
                let session = self.rng.usize(0..SESSIONS);
                let count = *self.rng.choice(&[1, 1, 2, 4]).unwrap();
                Step::Ask(session, (0..count).map(|_| self.ask()).collect())
            }
        }
    }
}

/// A piece of a transcript. What each ensemble numbers in its own way is kept apart.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Zxid(i64),
    Session(i64),
}

type Line = Vec<Piece>;

fn text(text: impl Into<String>) -> Line {
    vec![Piece::Text(text.into())]
}

fn describe_stat(stat: &Stat) -> Line {
    if stat.is_invalid() {
        return text("no metadata");
    }
    vec![
        Piece::Text(format!(
            "version {} cversion {} aversion {} bytes {} children {} created, set, children set:",
            stat.version, stat.cversion, stat.aversion, stat.data_length, stat.num_children
        )),
        Piece::Zxid(stat.czxid),
        Piece::Zxid(stat.mzxid),
        Piece::Zxid(stat.pzxid),
        Piece::Session(stat.ephemeral_owner),
    ]
}

fn describe_failure(error: ServerError) -> Line {
    match error {
        ServerError::Refused(refusal) => text(format!("refused: {refusal:?}")),
        other => panic!("no answer on a quiet day: {other:?}"),
    }
}

fn describe_outcome(outcome: &Outcome) -> Line {
    match outcome {
        Outcome::Created(created) => {
            let mut line = text(format!("created {}", created.path));
            line.extend(describe_stat(&created.stat));
            line
        }
        Outcome::DataSet(stat) => {
            let mut line = text("set");
            line.extend(describe_stat(stat));
            line
        }
        other => text(format!("{other:?}")),
    }
}

fn describe_node(node: &(Vec<u8>, Stat)) -> Line {
    let mut line = text(String::from_utf8_lossy(&node.0));
    line.extend(describe_stat(&node.1));
    line
}

fn describe_names(mut names: Vec<String>) -> Line {
    names.sort();
    text(format!("{names:?}"))
}

/// What a reply says, and the watch that came with it.
type Told = (Line, Option<Watch>);

/// Describes a reply once it is there.
fn told<'a, T: 'a, E: 'a>(
    reply: impl Future<Output = Result<T, E>> + Send + 'a,
    failure: fn(E) -> Line,
    describe: fn(T) -> Told,
) -> BoxFuture<'a, Told> {
    reply
        .map(move |outcome| match outcome {
            Ok(done) => describe(done),
            Err(error) => (failure(error), None),
        })
        .boxed()
}

/// Asks at once; the future only waits.
fn ask<'a>(session: &'a dyn ServerSession, ask: &'a Ask) -> BoxFuture<'a, Told> {
    match ask {
        Ask::Write(operation) => ask_to_write(session, operation),
        Ask::Transact(operations) => told(
            session.transact(operations),
            |failed| {
                let mut line = text(format!("operation {:?}", failed.operation));
                line.extend(describe_failure(failed.error));
                line
            },
            |outcomes| (outcomes.iter().flat_map(describe_outcome).collect(), None),
        ),
        Ask::List(path, false) => told(session.list(path), describe_failure, |names| {
            (describe_names(names), None)
        }),
        Ask::List(path, true) => told(
            session.list_and_watch(path),
            describe_failure,
            |(names, watch)| (describe_names(names), Some(watch)),
        ),
        Ask::Get(path, false) => told(session.get(path), describe_failure, |node| {
            (describe_node(&node), None)
        }),
        Ask::Get(path, true) => told(
            session.get_and_watch(path),
            describe_failure,
            |(data, stat, watch)| (describe_node(&(data, stat)), Some(watch)),
        ),
        Ask::Exists(path) => told(
            session.exists_and_watch(path),
            describe_failure,
            |(stat, watch)| {
                let stat = stat.map_or_else(|| text("not there"), |stat| describe_stat(&stat));
                (stat, Some(watch))
            },
        ),
        Ask::GetEach(paths) => told(session.get_each(paths), describe_failure, |nodes| {
            let each = nodes.iter().flat_map(|node| match node {
                Some(node) => describe_node(node),
                None => text("not there"),
            });
            (each.collect(), None)
        }),
        Ask::Sync(path) => told(session.sync(path), describe_failure, |_| {
            (text("synced"), None)
        }),
    }
}

fn ask_to_write<'a>(
    session: &'a dyn ServerSession,
    operation: &'a Operation,
) -> BoxFuture<'a, Told> {
    match operation {
        Operation::Create {
            path,
            data,
            mode,
            acl,
        } => told(
            session.create(path, data, *mode, acl),
            describe_failure,
            |created| (describe_outcome(&Outcome::Created(created)), None),
        ),
        Operation::Delete { path, .. } => told(session.delete(path), describe_failure, |()| {
            (text("deleted"), None)
        }),
        _ => told(
            session.transact(std::slice::from_ref(operation)),
            |failed| describe_failure(failed.error),
            |outcomes| (outcomes.iter().flat_map(describe_outcome).collect(), None),
        ),
    }
}

/// One of the two ensembles, and what was seen of it.
struct Witness {
    ensembles: Vec<Arc<dyn Ensemble>>,
    sessions: Vec<Arc<dyn ServerSession>>,
    /// The sessions' ids, in the order in which they were opened.
    known: Vec<i64>,
    watches: Vec<(String, Watch)>,
    lines: Vec<Line>,
}

impl Witness {
    async fn new(ensembles: Vec<Arc<dyn Ensemble>>) -> Witness {
        let mut witness = Witness {
            ensembles,
            sessions: Vec::new(),
            known: Vec::new(),
            watches: Vec::new(),
            lines: Vec::new(),
        };
        for each in 0..SESSIONS {
            let session = witness.open(each).await;
            witness.sessions.push(session);
        }
        let acl = [Acl::new(Permission::ALL, AuthId::anyone())];
        witness.sessions[0]
            .create("/t", b"", CreateMode::Persistent, &acl)
            .await
            .unwrap();
        witness
    }

    async fn open(&mut self, at: usize) -> Arc<dyn ServerSession> {
        let session = self.ensembles[at].connect().await.unwrap();
        self.known.push(session.id().0);
        session
    }

    async fn take(&mut self, number: usize, step: &Step) {
        match step {
            Step::Ask(at, asks) => {
                let session = Arc::clone(&self.sessions[*at]);
                let replies: Vec<_> = asks.iter().map(|each| ask(&*session, each)).collect();
                for (each, reply) in asks.iter().zip(replies) {
                    let (mut line, watch) = reply.await;
                    line.insert(0, Piece::Text(format!("{number} session {at} {each:?} =>")));
                    self.lines.push(line);
                    if let Some(watch) = watch {
                        self.watches
                            .push((format!("{number} {each:?} of session {at}"), watch));
                    }
                }
            }
            Step::DropWatch(which) => {
                if !self.watches.is_empty() {
                    let which = which % self.watches.len();
                    self.lines
                        .push(text(format!("{number} drop {}", self.watches[which].0)));
                    drop(self.watches.remove(which));
                }
            }
            Step::Reopen(at) => {
                let mut states = self.sessions[*at].states();
                let opened = self.open(*at).await;
                drop(std::mem::replace(&mut self.sessions[*at], opened));
                while let Some(state) = states.next().await {
                    if let ConnectionState::Ended(end) = state {
                        self.lines
                            .push(text(format!("{number} reopen {at}: {end:?}")));
                        break;
                    }
                }
            }
        }
        // A read on every session: what it sees, its watches have told before.
        for session in &self.sessions {
            drop(session.list("/").await);
        }
        let mut standing = Vec::new();
        for (label, mut watch) in std::mem::take(&mut self.watches) {
            match (&mut watch).now_or_never() {
                Some(event) => self
                    .lines
                    .push(text(format!("{number} {label}: {event:?}"))),
                None => standing.push((label, watch)),
            }
        }
        self.watches = standing;
    }

    /// The transcript, with zxids as their rank among all those seen, and sessions by number.
    fn transcript(&self) -> Vec<String> {
        let zxids: BTreeSet<i64> = self
            .lines
            .iter()
            .flatten()
            .filter_map(|piece| match piece {
                Piece::Zxid(zxid) => Some(*zxid),
                _ => None,
            })
            .collect();
        let ranks: BTreeMap<i64, usize> = zxids
            .into_iter()
            .enumerate()
            .map(|(rank, zxid)| (zxid, rank))
            .collect();
        let line = |line: &Line| {
            let pieces: Vec<String> = line
                .iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text.clone(),
                    Piece::Zxid(zxid) => format!("#{}", ranks[zxid]),
                    Piece::Session(0) => "of nobody".to_owned(),
                    Piece::Session(session) => {
                        format!(
                            "of {:?}",
                            self.known.iter().position(|known| known == session)
                        )
                    }
                })
                .collect();
            pieces.join(" ")
        };
        self.lines.iter().map(line).collect()
    }
}

/// "3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on …", as numbers.
fn version(told: &str) -> (u32, u32, u32) {
    let mut numbers = told
        .split(['.', '-', ','])
        .map(|number| number.parse().unwrap());
    let mut next = || numbers.next().unwrap();
    (next(), next(), next())
}

/// The number of watches on a real server.
async fn watches(server: &Server) -> u64 {
    server.monitor().await.unwrap().watches
}

/// The two transcripts, up to where they are the same no longer.
fn compare(seed: u64, real: &Witness, simulated: &Witness) {
    let (real, simulated) = (real.transcript(), simulated.transcript());
    for (at, (right, wrong)) in real.iter().zip(&simulated).enumerate() {
        assert_eq!(
            right,
            wrong,
            "seed {seed}: a real server (left) and the simulation (right), after\n{}",
            real[..at].join("\n")
        );
    }
    let same = real.len().min(simulated.len());
    assert_eq!(
        real[same..],
        simulated[same..],
        "seed {seed}: more of one of them, after\n{}",
        real[..same].join("\n")
    );
}

#[tokio::test]
async fn every_reply_and_every_event_is_a_real_servers() {
    let server = Server::start(ServerOptions::new()).await.unwrap();
    let root = ZookeeperEnsemble::new(&server.connect_string(), ConnectOptions::new()).unwrap();
    let root = root.connect().await.unwrap();
    let anyone = [Acl::new(Permission::ALL, AuthId::anyone())];
    let version = version(&server.status().await.unwrap().version);
    let first = number("SEED").unwrap_or(1);
    for seed in first..first + number("SEEDS").unwrap_or(12) {
        let chroot = format!("/seed-{seed}");
        root.create(&chroot, b"", CreateMode::Persistent, &anyone)
            .await
            .unwrap();
        let real: Vec<Arc<dyn Ensemble>> = (0..SESSIONS)
            .map(|at| {
                let options = match at {
                    0 => ConnectOptions::new().auth("digest", "ada:secret"),
                    _ => ConnectOptions::new(),
                };
                let address = format!("{}{chroot}", server.connect_string());
                Arc::new(ZookeeperEnsemble::new(&address, options).unwrap()) as Arc<dyn Ensemble>
            })
            .collect();
        let simulation = Simulation::new(SimulationOptions {
            seed,
            network_delay: NO_DELAY,
            commit_delay: NO_DELAY,
            version,
            ..Default::default()
        });
        simulation
            .administrator()
            .create(&chroot, b"", CreateMode::Persistent)
            .unwrap();
        let simulated: Vec<Arc<dyn Ensemble>> = (0..SESSIONS)
            .map(|at| {
                let process = simulation.process(&format!("p{at}")).with_chroot(&chroot);
                match at {
                    0 => process.with_credentials("digest", "ada:secret").ensemble(),
                    _ => process.ensemble(),
                }
            })
            .collect();
        let mut real = Witness::new(real).await;
        let mut simulated = Witness::new(simulated).await;
        let mut script = Script {
            rng: Rng::with_seed(seed),
        };
        for number in 0..STEPS {
            let step = script.step();
            real.take(number, &step).await;
            simulated.take(number, &step).await;
            compare(seed, &real, &simulated);
            // A server takes a closed session's watches off soon after, not before it answers.
            let simulated_watches = simulation.counters().watches() as u64;
            let same = async {
                while watches(&server).await != simulated_watches {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            if tokio::time::timeout(Duration::from_secs(2), same)
                .await
                .is_err()
            {
                panic!(
                    "seed {seed}, after step {number} {step:?}: {} watches are set, not {:?}",
                    watches(&server).await,
                    simulation.administrator().watches()
                );
            }
        }
        drop((real, simulated));
        // The next sequence counts its watches from none again.
        while watches(&server).await > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}
