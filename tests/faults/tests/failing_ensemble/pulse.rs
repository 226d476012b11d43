//! How late the runtime is: the measure of a machine that has too much to do.

use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;

const INTERVAL: Duration = Duration::from_millis(20);

/// A task that looks how late it is, again and again.
pub(crate) struct Pulse {
    worst: watch::Receiver<Duration>,
    task: JoinHandle<()>,
}

impl Pulse {
    pub(crate) fn start() -> Pulse {
        let (sender, worst) = watch::channel(Duration::ZERO);
        let task = tokio::spawn(async move {
            loop {
                let due = Instant::now() + INTERVAL;
                tokio::time::sleep_until(due.into()).await;
                let late = due.elapsed();
                sender.send_if_modified(|worst| {
                    let worse = late > *worst;
                    *worst = late.max(*worst);
                    worse
                });
            }
        });
        Pulse { worst, task }
    }

    /// The longest that it was ever late.
    pub(crate) fn stop(self) -> Duration {
        self.task.abort();
        *self.worst.borrow()
    }
}
