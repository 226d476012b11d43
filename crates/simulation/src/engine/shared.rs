//! The shared state of a simulation, and the one task that runs it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::kernel::whole_milliseconds;
use super::step::Step;
use crate::client::world::World;
use crate::options::SimulationOptions;

#[derive(Debug)]
pub(crate) struct Shared {
    world: Mutex<World>,
    start: Instant,
    changed: Arc<Notify>,
}

impl Shared {
    pub(crate) fn start(options: SimulationOptions) -> Arc<Shared> {
        let shared = Arc::new(Shared {
            world: Mutex::new(World::new(options)),
            start: Instant::now(),
            changed: Arc::new(Notify::new()),
        });
        tokio::spawn(drive(
            Arc::downgrade(&shared),
            Arc::clone(&shared.changed),
            shared.start,
        ));
        shared
    }

    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Looks at the world or changes it, then lets the tasks know.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.lock();
        let now = world.now();
        world.kernel().gauge.count(now);
        let result = change(&mut world);
        finish(world);
        self.changed.notify_one();
        result
    }

    /// Does all that is due, at once and in this thread.
    #[cfg(feature = "embedded")]
    pub(crate) fn do_what_is_due(&self) {
        while matches!(self.step(), Step::Noticed) {}
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = world.kernel();
        kernel.now = kernel.now.max(whole_milliseconds(self.start.elapsed()));
        world
    }

    fn step(&self) -> Step {
        let mut world = self.lock();
        let step = world.step();
        finish(world);
        step
    }
}

/// Unlocks the world, then does the work that was left.
fn finish(mut world: MutexGuard<'_, World>) {
    let effects = std::mem::take(&mut world.kernel().effects);
    drop(world);
    for effect in effects {
        effect();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// The one task of a simulation. It ends when the last handle is dropped.
async fn drive(shared: Weak<Shared>, changed: Arc<Notify>, start: Instant) {
    loop {
        let step = match shared.upgrade() {
            Some(shared) => shared.step(),
            None => return,
        };
        match step {
            // One thing at a time: the tasks that were woken run before the next thing happens.
            Step::Noticed => tokio::task::yield_now().await,
            Step::Wait(None) => changed.notified().await,
            Step::Wait(Some(at)) => {
                tokio::select! {
                    biased;
                    () = changed.notified() => {}
                    () = tokio::time::sleep_until(start + at) => {}
                }
            }
        }
    }
}
