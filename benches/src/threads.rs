//! What the threads of this process have done, as Linux counts it.

use std::fs;
use std::ops::Sub;
use std::time::Duration;

/// The sum over all threads of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads {
    /// How often a thread has gone to sleep.
    pub switches: u64,
    pub processor: Duration,
}

impl Threads {
    /// The counts until now. Zero if the system does not count.
    pub fn now() -> Threads {
        let mut sum = Threads::default();
        for task in fs::read_dir("/proc/self/task")
            .into_iter()
            .flatten()
            .flatten()
        {
            let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let switches = read("status").lines().find_map(|line| {
                line.strip_prefix("voluntary_ctxt_switches:")?
                    .trim()
                    .parse()
                    .ok()
            });
            sum.switches += switches.unwrap_or(0_u64);
            let ran = read("schedstat");
            let nanos = ran.split_whitespace().next().and_then(|it| it.parse().ok());
            sum.processor += Duration::from_nanos(nanos.unwrap_or(0));
        }
        sum
    }
}

impl Sub for Threads {
    type Output = Threads;

    fn sub(self, before: Threads) -> Threads {
        Threads {
            switches: self.switches.saturating_sub(before.switches),
            processor: self.processor.saturating_sub(before.processor),
        }
    }
}
