//! Contenders that never rest, and how fast a lock passes among them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use zookeeper_recipes_core::Recipe;

use crate::testbed::Testbed;

/// Contenders that acquire, release at once, and begin anew.
///
/// The contenders go on between the measurements, so that no measurement sees how a queue fills or
/// empties.
#[derive(Debug)]
pub struct Contention {
    shared: Arc<Shared>,
    contenders: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    measured: Mutex<Option<Measured>>,
}

#[derive(Debug)]
struct Measured {
    acquisitions_left: u64,
    /// When the first acquisition was made. The later ones are counted.
    began: Option<Instant>,
    done: oneshot::Sender<Duration>,
}

impl Contention {
    /// Starts a contender for each recipe, and returns when each of them has held once.
    pub fn begin(testbed: &Testbed, recipes: Vec<Box<dyn Recipe>>) -> Contention {
        let shared = Arc::<Shared>::default();
        let mut contenders = JoinSet::new();
        let mut had_a_turn = Vec::new();
        for recipe in recipes {
            let shared = shared.clone();
            let (first, has_held) = oneshot::channel();
            had_a_turn.push(has_held);
            let contend = async move {
                let mut first = Some(first);
                while !shared.stopped.load(Ordering::Relaxed) {
                    let hold = recipe.acquire().await.expect("it is its turn at last");
                    shared.acquired();
                    if let Some(first) = first.take() {
                        // No one receives this if another contender has failed.
                        let _ = first.send(());
                    }
                    hold.release().await.expect("it has been held until now");
                }
            };
            contenders.spawn_on(contend, testbed.runtime().handle());
        }
        testbed.runtime().block_on(async {
            for turn in had_a_turn {
                turn.await.expect("every contender has its turn");
            }
        });
        Contention { shared, contenders }
    }

    /// How long this number of acquisitions takes, by all contenders together.
    pub async fn measure(&self, acquisitions: u64) -> Duration {
        let (done, took) = oneshot::channel();
        *self.shared.measured() = Some(Measured {
            acquisitions_left: acquisitions,
            began: None,
            done,
        });
        took.await.expect("the contenders go on")
    }

    /// Stops the contenders, each after its turn.
    pub fn end(self, testbed: &Testbed) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        testbed.runtime().block_on(self.contenders.join_all());
    }
}

impl Shared {
    fn measured(&self) -> std::sync::MutexGuard<'_, Option<Measured>> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acquired(&self) {
        let mut slot = self.measured();
        let Some(measured) = &mut *slot else { return };
        let Some(began) = measured.began else {
            measured.began = Some(Instant::now());
            return;
        };
        measured.acquisitions_left = measured.acquisitions_left.saturating_sub(1);
        if measured.acquisitions_left == 0 {
            let took = began.elapsed();
            if let Some(measured) = slot.take() {
                // No one receives this if the measurement was given up.
                let _ = measured.done.send(took);
            }
        }
    }
}
