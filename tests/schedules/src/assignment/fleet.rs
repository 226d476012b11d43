//! What the participants of a run of the assignment share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::time::sleep;
use zookeeper_recipes_assignment::AssignmentOptions;

use super::traits::{Hang, PARTITIONS, Traits};
use crate::lasting_faults::LastingFaults;
use crate::ledger::Ledger;
use crate::place::Place;
use crate::schedule::Schedule;
use crate::setting::Setting;

/// Where the assignment is.
pub(crate) const PATH: &str = "/recipe/under-test";

/// The locks of the [partitions](PARTITIONS).
pub(crate) const PLACES: [Place; 5] = [
    place("/recipe/under-test/locks/p0", "/guarded-p0"),
    place("/recipe/under-test/locks/p1", "/guarded-p1"),
    place("/recipe/under-test/locks/p2", "/guarded-p2"),
    place("/recipe/under-test/locks/p3", "/guarded-p3"),
    place("/recipe/under-test/locks/p4", "/guarded-p4"),
];

const fn place(path: &'static str, guarded: &'static str) -> Place {
    Place { path, guarded }
}

/// The workers of a run, and what is known of them.
pub(crate) struct Fleet<'a> {
    pub(crate) setting: Setting,
    /// The ledger of each partition.
    pub(crate) ledgers: &'a [Arc<Ledger>],
    /// The ids of the workers that no lasting fault hits, which are the names of their processes.
    pub(crate) workers: Vec<String>,
    /// How many workers a lasting fault hits.
    pub(crate) hit: usize,
    pub(crate) times: Times,
    pub(crate) max_moves: usize,
    pub(crate) traits: Traits,
    /// True while the worker that [hangs](Traits::hangs) does.
    pub(crate) hung: watch::Sender<bool>,
    /// True once somebody has written a record of the partitions that cannot be read.
    pub(crate) has_broken_record: AtomicBool,
    pub(crate) ends: watch::Sender<bool>,
    /// The worker that dies while nothing else goes wrong.
    pub(crate) dies: watch::Sender<Option<String>>,
    /// How often work has begun or ended.
    pub(crate) stirs: Arc<AtomicU64>,
}

/// The times of the options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) grace: Duration,
    pub(crate) warm: Duration,
    pub(crate) move_within: Duration,
    pub(crate) drain_at_most: Duration,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(setting: Setting, ledgers: &'a [Arc<Ledger>], rng: &mut Rng) -> Fleet<'a> {
        let schedule = &setting.schedule;
        let hit = schedule.lasting.as_ref();
        let workers: Vec<String> = (0..schedule.processes).map(|it| format!("p{it}")).collect();
        let traits = Traits::draw(&workers, rng);
        setting.simulation.remark(format!("{traits:?}"));
        Fleet {
            ledgers,
            workers,
            hung: watch::channel(traits.hangs.is_some()).0,
            traits,
            hit: hit.map_or(0, LastingFaults::processes),
            times: draw_times(schedule, rng),
            max_moves: [1, 3, 32][rng.usize(..3)],
            has_broken_record: AtomicBool::new(false),
            ends: watch::channel(false).0,
            dies: watch::channel(None).0,
            stirs: Arc::default(),
            setting,
        }
    }

    /// The options of a worker.
    pub(crate) fn options(&self, worker: &str) -> AssignmentOptions {
        let warm = self.times.warm;
        let mut options = AssignmentOptions::new()
            .max_moves(self.max_moves)
            .grace(self.times.grace)
            .move_within(self.times.move_within)
            .drain_at_most(self.times.drain_at_most);
        if let Some(about) = self.traits.workers.get(worker) {
            options = options.capacity(about.capacity);
            if let Some(zone) = &about.zone {
                options = options.zone(zone);
            }
        }
        match self.traits.hang(worker) {
            Some(Hang::GivesNone) => return options.drain_at_most(Duration::MAX),
            Some(Hang::TakesNone) => {
                let hung = self.hung.subscribe();
                let hangs = move |_| {
                    let mut hung = hung.clone();
                    async move { drop(hung.wait_for(|hung| !hung).await) }
                };
                return options.warm(hangs);
            }
            Some(Hang::Blocks) | None => {}
        }
        match warm.is_zero() {
            true => options,
            false => options.warm(move |_| sleep(warm)),
        }
    }

    pub(crate) fn remark(&self, text: impl Into<String>) {
        self.setting.simulation.remark(text);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.ledgers.iter().all(|ledger| ledger.is_clean())
    }

    /// Waits until a promise is broken.
    pub(crate) async fn until_broken(&self) {
        while self.is_clean() {
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// The owner of each partition that is owned now.
    pub(crate) fn owners(&self) -> BTreeMap<&'static str, String> {
        let owner = |(partition, ledger): (&&'static str, &Arc<Ledger>)| {
            let (who, _) = ledger.holders().into_iter().next_back()?;
            let (worker, _) = who.split_once('.')?;
            Some((*partition, worker.to_owned()))
        };
        PARTITIONS
            .iter()
            .zip(self.ledgers)
            .filter_map(owner)
            .collect()
    }

    /// Waits until this worker dies while nothing else goes wrong.
    pub(crate) async fn until_dead(&self, worker: &str) {
        let mut dies = self.dies.subscribe();
        // The sender lives longer than this future.
        let _ = dies.wait_for(|dies| dies.as_deref() == Some(worker)).await;
    }
}

/// The ledger of a partition.
pub(crate) fn ledger_of<'a>(ledgers: &'a [Arc<Ledger>], partition: &str) -> Option<&'a Ledger> {
    let index = PARTITIONS.iter().position(|it| *it == partition)?;
    Some(&ledgers[index])
}

fn draw_times(schedule: &Schedule, rng: &mut Rng) -> Times {
    let timeout = schedule.options.session_timeout;
    let mut milliseconds = |from: u64, to: u64| Duration::from_millis(rng.u64(from..=to));
    let warm = milliseconds(1, 2_000);
    let (drain_at_most, more) = (milliseconds(500, 4_000), milliseconds(1_000, 20_000));
    Times {
        grace: [Duration::ZERO, Duration::ZERO, timeout, timeout * 3][rng.usize(..4)],
        warm: if rng.bool() { Duration::ZERO } else { warm },
        // Faults alone make no move late.
        move_within: drain_at_most + Duration::from_secs(30) + more,
        drain_at_most,
    }
}
