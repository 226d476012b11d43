//! The handle of a simulated ensemble.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zookeeper_recipes_core::ensemble::Ensemble;
use zookeeper_recipes_core::{ConnectOptions, Error, Session};

use crate::administrator::{Administrator, standing_watches};
use crate::engine::shared::Shared;
use crate::faults::Faults;
use crate::options::SimulationOptions;
use crate::record::counters::Counters;
use crate::record::fault_met::FaultMet;
use crate::record::history::Committed;
use crate::record::trace::{Trace, TraceKind};
use crate::simulated_process::SimulatedProcess;

/// A simulated ensemble and all its clients. Cheap to clone.
///
/// See the [crate](crate) for examples.
#[derive(Clone, Debug)]
pub struct Simulation {
    shared: Arc<Shared>,
}

/// An ensemble with the default options. The call panics outside a tokio runtime.
impl Default for Simulation {
    fn default() -> Simulation {
        Simulation::new(SimulationOptions::default())
    }
}

impl Simulation {
    /// Starts an ensemble.
    ///
    /// One task on the current tokio runtime runs it, until the last handle and the last session
    /// are dropped.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn new(options: SimulationOptions) -> Simulation {
        Simulation {
            shared: Shared::start(options),
        }
    }

    /// Starts an ensemble with the default options but for what this changes: see [`new`](Self::new).
    pub fn with(change: impl FnOnce(&mut SimulationOptions)) -> Simulation {
        let mut options = SimulationOptions::default();
        change(&mut options);
        Simulation::new(options)
    }

    /// The simulation that is shared by these.
    #[cfg(feature = "embedded")]
    pub(crate) fn of(shared: &Arc<Shared>) -> Simulation {
        Simulation {
            shared: Arc::clone(shared),
        }
    }

    /// The ensemble, as the process of this name reaches it.
    ///
    /// The same name is the same process: all its sessions sleep and are cut off together.
    pub fn ensemble(&self, process: &str) -> Arc<dyn Ensemble> {
        self.process(process).ensemble()
    }

    /// Opens a session of the process of this name, with the default options.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] if no server opens a session.
    pub async fn session(&self, process: &str) -> Result<Session, Error> {
        Session::open(self.ensemble(process), ConnectOptions::new()).await
    }

    /// The process of this name.
    pub fn process(&self, name: &str) -> SimulatedProcess {
        let (id, clock) = self.shared.with(|world| {
            let id = world.process(name);
            (id, world.processes[id].clock)
        });
        SimulatedProcess {
            clock,
            shared: Arc::clone(&self.shared),
            id,
            name: name.to_owned(),
            chroot: "/".to_owned(),
        }
    }

    /// The handle that breaks servers, sessions and requests.
    pub fn faults(&self) -> Faults {
        Faults {
            shared: Arc::clone(&self.shared),
        }
    }

    /// The handle of an administrator, who reads and changes the tree.
    pub fn administrator(&self) -> Administrator {
        Administrator {
            shared: Arc::clone(&self.shared),
        }
    }

    /// The trace of the simulation, for a person to read.
    pub fn trace(&self) -> Trace {
        self.shared
            .with(|world| world.servers.kernel.recorder.snapshot())
    }

    /// Waits until the simulation exceeds a [limit](SimulationOptions::limits), and returns which.
    ///
    /// The simulation continues.
    pub async fn exceeds_its_limits(&self) -> String {
        let mut exceeded = self
            .shared
            .with(|world| world.servers.kernel.gauge.exceeded());
        loop {
            if let Some(text) = exceeded.borrow_and_update().clone() {
                return text;
            }
            if exceeded.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Writes a line of the test's own into the trace.
    pub fn remark(&self, text: impl Into<String>) {
        let text = text.into();
        self.shared
            .with(|world| world.kernel().trace(TraceKind::Remark, None, 0, || text));
    }

    /// The changes that the ensemble has committed, oldest first.
    pub fn history(&self) -> Vec<Committed> {
        self.shared.with(|world| world.servers.history.clone())
    }

    /// Calls `observer` with each change when it is committed, before any client is notified.
    ///
    /// It replaces the observer that was set before.
    pub fn on_commit(&self, observer: impl Fn(&Committed) + Send + Sync + 'static) {
        self.shared
            .with(|world| world.servers.commit_observer = Some(Arc::new(observer)));
    }

    /// Calls `observer` with each fault that meets a client's connection, when it happens.
    ///
    /// It replaces the observer that was set before. The observer must not call the simulation.
    pub fn on_fault(&self, observer: impl Fn(&FaultMet) + Send + Sync + 'static) {
        self.shared
            .with(|world| world.servers.fault_observer = Some(Arc::new(observer)));
    }

    /// The counts of requests, notifications, transactions and watches.
    pub fn counters(&self) -> Counters {
        self.shared.with(|world| {
            let watches = standing_watches(world).len();
            Counters {
                watches,
                ..world.servers.kernel.counters.clone()
            }
        })
    }

    /// The time since the simulation began.
    ///
    /// The clock of the [`Ensemble`] returns it in every process, unless their clocks
    /// [drift](SimulationOptions::clock_drift).
    pub fn now(&self) -> Duration {
        self.shared.now()
    }

    /// The time by the servers' clock, which `ctime` and `mtime` of a znode show.
    ///
    /// Every simulation begins at the same time, so that a seed replays.
    pub fn system_time(&self) -> SystemTime {
        let began = self.shared.with(|world| world.servers.began_at);
        UNIX_EPOCH + Duration::from_millis(began.unsigned_abs()) + self.now()
    }
}
