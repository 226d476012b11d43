//! A worker: one life after the other under the same id, each of which ends in some way.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use zookeeper_recipes_assignment::{Assignment, Partition};
use zookeeper_recipes_core::{Error, Session};
use zookeeper_recipes_simulation::{SimulatedProcess, block_this_task};

use super::fleet::{Fleet, PATH, ledger_of};
use super::traits::Hang;
use crate::contender::{commit, guarded};
use crate::holding::Holding;
use crate::ledger::Ledger;
use crate::process::connect_options;

/// The interval between two looks of the work.
const LOOK: Duration = Duration::from_millis(100);

/// How long work blocks at most, if its worker does not hang.
pub(crate) const LONGEST_BLOCK: Duration = Duration::from_secs(5);

/// How a life of a worker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// By `shutdown`.
    Shutdown,
    /// Its future is dropped.
    Dropped,
    /// Its session is closed.
    Closed,
    /// Its process is killed.
    Killed,
    /// By `shutdown`, at the end of the run.
    Last,
}

/// How a life of a worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lived {
    AsItShould,
    /// It has found a record of the partitions that cannot be read.
    Refused,
}

/// Runs a worker to the end of its last life.
///
/// The process exists from the call on, before any fault can hit it.
pub(crate) fn run<'a>(
    fleet: &'a Fleet<'a>,
    name: String,
    rng: Rng,
) -> impl Future<Output = ()> + use<'a> {
    let process = fleet.setting.simulation.process(&name);
    live(fleet, name, process, rng)
}

async fn live(fleet: &Fleet<'_>, name: String, mut process: SimulatedProcess, mut rng: Rng) {
    sleep(Duration::from_millis(rng.u64(0..=1_000))).await;
    for life in 0_u32.. {
        let lasts = Duration::from_millis(rng.u64(1_000..=15_000));
        let until = Instant::now() + lasts;
        let endings = [
            Ending::Shutdown,
            Ending::Dropped,
            Ending::Closed,
            Ending::Killed,
        ];
        // A further life in another process would heal the fault that hits a process for good.
        let is_hit = !fleet.workers.contains(&name);
        let is_last = is_hit || until >= fleet.setting.quiet_from || rng.u8(..4) == 0;
        let ending = match is_last {
            true => Ending::Last,
            false => endings[rng.usize(..endings.len())],
        };
        let life = Life {
            fleet,
            who: format!("{name}.{life}"),
            id: &name,
            ending,
            until,
        };
        let lived = process.while_awake(life.live(&process, rng.fork()));
        match ending {
            Ending::Last => {
                // The life is dropped after the kill: a killed worker lets go of nothing before.
                let mut lived = pin!(lived);
                let lived = tokio::select! {
                    biased;
                    () = fleet.until_dead(&name) => return process.kill(),
                    lived = lived.as_mut() => lived,
                };
                if lived == Lived::AsItShould || is_hit {
                    return;
                }
            }
            Ending::Killed => {
                let mut lived = pin!(lived);
                tokio::select! {
                    biased;
                    () = sleep_until(until) => {}
                    _ = lived.as_mut() => {}
                }
                fleet.remark(format!("{name} is killed"));
                process.kill();
            }
            _ => {
                lived.await;
            }
        }
        sleep(Duration::from_millis(rng.u64(0..=3_000))).await;
        process = fleet.setting.simulation.process(&name);
    }
}

/// One life of a worker.
struct Life<'a> {
    fleet: &'a Fleet<'a>,
    who: String,
    id: &'a str,
    ending: Ending,
    until: Instant,
}

impl Life<'_> {
    async fn live(&self, process: &SimulatedProcess, mut rng: Rng) -> Lived {
        let (fleet, options) = (self.fleet, connect_options(&self.fleet.setting));
        fleet.remark(format!("{} begins, to end {:?}", self.who, self.ending));
        let session = Session::open_in_background(process.ensemble(), options);
        let session = session.expect("the options are good");
        let partitions = fleet.traits.recorded();
        let assignment =
            Assignment::with_options(&session, PATH, partitions, self.id, fleet.options(self.id));
        let assignment = assignment.expect("good input");
        let seed = rng.u64(..);
        let worker = Arc::new(self.work());
        let work = move |owned: Partition| {
            let (worker, token) = (worker.clone(), owned.fencing_token().get());
            let rng = Rng::with_seed(seed ^ token.unsigned_abs());
            async move {
                worker.work(owned, rng).await;
                Ok::<(), Infallible>(())
            }
        };
        let run = assignment.run(self.shutdown(), work);
        let ended = match self.ending {
            Ending::Dropped => timeout_at(self.until, run).await.unwrap_or_else(|_| {
                let ledger = &fleet.setting.ledger;
                ledger.count(|figures| figures.aborted += 1);
                Ok(())
            }),
            Ending::Closed => {
                let closed = session.clone();
                let close = async {
                    sleep_until(self.until).await;
                    closed.close().await;
                };
                tokio::join!(biased; run, close).0
            }
            _ => run.await,
        };
        let mut lived = Lived::AsItShould;
        match ended {
            Err(Error::NoSession { .. }) if self.ending == Ending::Closed => {}
            Ok(()) if self.ending != Ending::Closed => {}
            Err(Error::InvalidInput(_)) if fleet.has_broken_record.load(Ordering::Relaxed) => {
                lived = Lived::Refused;
            }
            ended => {
                let text = format!("{}: {ended:?}", self.who);
                let promise = "a worker runs until it is shut down or its session is closed";
                fleet.setting.violated(promise, text);
            }
        }
        fleet.remark(format!("{} has ended, {lived:?}", self.who));
        session.close().await;
        lived
    }

    fn work(&self) -> Work {
        let fleet = self.fleet;
        Work {
            who: self.who.clone(),
            ledgers: fleet.ledgers.to_vec(),
            hangs: fleet.traits.hang(self.id),
            hung: fleet.hung.subscribe(),
            late: fleet.times.move_within,
            stirs: fleet.stirs.clone(),
            quiet_from: fleet.setting.quiet_from,
        }
    }

    async fn shutdown(&self) {
        match self.ending {
            Ending::Shutdown => sleep_until(self.until).await,
            Ending::Last => {
                let mut ends = self.fleet.ends.subscribe();
                // The sender lives longer than this future.
                let _ = ends.wait_for(|ends| *ends).await;
            }
            _ => pending().await,
        }
    }
}

/// What the work of one life of a worker needs.
struct Work {
    who: String,
    ledgers: Vec<Arc<Ledger>>,
    hangs: Option<Hang>,
    hung: watch::Receiver<bool>,
    /// A move that lasts for longer is late.
    late: Duration,
    stirs: Arc<AtomicU64>,
    quiet_from: Instant,
}

impl Work {
    /// Work of a random kind: it ends at once or slowly, ignores that it should, or returns early.
    async fn work(&self, owned: Partition, mut rng: Rng) {
        let Some(ledger) = ledger_of(&self.ledgers, owned.id()) else {
            let text = format!("{} owns {}", self.who, owned.id());
            let promise = "a partition that is not recorded is not owned";
            return self.ledgers[0].violated(promise, text);
        };
        let begun = Begun::new(&self.stirs);
        let holding = Holding::of_another(ledger, &self.who, 1, &owned.view());
        let gives_none = self.hangs == Some(Hang::GivesNone);
        // Nothing drops the work of a worker that gives none.
        let kind = if gives_none { 3 } else { rng.u8(..8) };
        let early = Instant::now() + Duration::from_millis(rng.u64(1..20_000));
        loop {
            if !owned.is_held() {
                let text = format!("{}: {:?}", self.who, owned.view());
                ledger.violated("work on a partition is polled only while it is owned", text);
            }
            let hangs = gives_none && *self.hung.borrow();
            self.block(kind, &mut rng).await;
            match kind {
                0 if (early..self.quiet_from).contains(&Instant::now()) => break,
                1 => {}
                2 if owned.is_draining() => {
                    sleep(Duration::from_millis(rng.u64(0..1_500))).await;
                    break;
                }
                _ if owned.is_draining() && !hangs => break,
                _ => {}
            }
            if rng.u8(..20) == 0 {
                let write = guarded(ledger.place(), &owned.view(), 1);
                commit(ledger, &self.who, write, holding.number()).await;
                // The write may find that the session is over. The next look is in another poll.
                yield_now().await;
            }
            match kind {
                _ if kind == 1 || hangs => sleep(LOOK).await,
                // A timeout means that the work continues.
                _ => drop(timeout(LOOK, owned.draining()).await),
            }
        }
        drop(begun);
    }
}

impl Work {
    /// Blocks for a while. Until the end of it nothing drops the work, though its hold may be lost.
    async fn block(&self, kind: u8, rng: &mut Rng) {
        let for_long = self.hangs == Some(Hang::Blocks) && *self.hung.borrow();
        let at_times = kind == 4 && Instant::now() < self.quiet_from && rng.u8(..10) == 0;
        let lasts = match for_long {
            true => self.late * 2,
            false if at_times => LONGEST_BLOCK * rng.u32(1..=100) / 100,
            false => return,
        };
        block_this_task(lasts);
        yield_now().await;
    }
}

/// Work that has begun. Dropped, it has ended.
struct Begun<'a>(&'a AtomicU64);

impl<'a> Begun<'a> {
    fn new(stirs: &'a AtomicU64) -> Begun<'a> {
        stirs.fetch_add(1, Ordering::Relaxed);
        Begun(stirs)
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
