//! The processes of the workers.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use zookeeper_recipes_interop::{Referee, Report};
use zookeeper_recipes_suite::TICK;

pub(crate) const PATH: &str = "/app/queues";
pub(crate) const PARTITIONS: usize = 6;
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(100);

/// The workers, by their ids.
pub(crate) struct Workers {
    connect_string: String,
    pub(crate) referee: Referee,
    running: BTreeMap<&'static str, Child>,
}

impl Workers {
    pub(crate) fn new(connect_string: String) -> Workers {
        Workers {
            connect_string,
            referee: Referee::listen(1).expect("a free port"),
            running: BTreeMap::new(),
        }
    }

    pub(crate) fn start(&mut self, id: &'static str) {
        let child = Command::new(env!("CARGO_BIN_EXE_worker"))
            .args([&*self.connect_string, PATH, self.referee.address()])
            .args([SESSION_TIMEOUT, TICK].map(|time| time.as_millis().to_string()))
            .args([&PARTITIONS.to_string(), id])
            .stdin(Stdio::piped())
            .spawn();
        let before = self.running.insert(id, child.expect("it starts"));
        assert!(before.is_none(), "{id} runs");
    }

    /// Kills a worker (SIGKILL), and waits until its process has ended.
    pub(crate) fn kill(&mut self, id: &str) {
        let mut child = self.running.remove(id).expect("it runs");
        child.kill().expect("it can be killed");
        child.wait().expect("it can be waited for");
    }

    /// Shuts a worker down, and waits for its end.
    pub(crate) async fn end(&mut self, id: &str) {
        let mut child = self.running.remove(id).expect("it runs");
        let input = child.stdin.as_mut().expect("it is piped");
        input.write_all(b"end\n").expect("it reads");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = child.try_wait().expect("it can be waited for") {
                return assert!(status.success(), "{id}: {status}");
            }
            assert!(Instant::now() < deadline, "{id} does not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Stops a worker (SIGSTOP).
    pub(crate) fn stop(&self, id: &str) {
        let process = self.process(id);
        kill_process(process, Signal::STOP).expect("it can be stopped");
        let stopped = waitid(WaitId::Pid(process), WaitIdOptions::STOPPED);
        stopped.expect("it is stopped");
        self.referee.stopped(id);
    }

    /// Lets a worker continue (SIGCONT).
    pub(crate) fn resume(&self, id: &str) {
        self.referee.continues(id);
        kill_process(self.process(id), Signal::CONT).expect("it continues");
    }

    fn process(&self, id: &str) -> Pid {
        Pid::from_child(&self.running[id])
    }

    /// Waits until this is true of the owners. The test fails if a worker ends, or if the referee
    /// has seen a broken promise.
    pub(crate) async fn until(
        &mut self,
        what: &str,
        is_so: impl Fn(&BTreeMap<String, String>) -> bool,
    ) -> Report {
        let deadline = Instant::now() + PATIENCE;
        loop {
            for (id, child) in &mut self.running {
                let ended = child.try_wait().expect("it can be waited for");
                assert!(ended.is_none(), "{id} has ended: {ended:?}");
            }
            let report = self.referee.report();
            assert_eq!(report.violations, [""; 0]);
            if is_so(&report.owners) {
                return report;
            }
            assert!(Instant::now() < deadline, "not {what}: {:?}", report.owners);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until these workers own all partitions, balanced to within one.
    pub(crate) async fn balanced(&mut self, workers: &[&str]) {
        let fair = PARTITIONS / workers.len()..=PARTITIONS.div_ceil(workers.len());
        let what = format!("balanced among {workers:?}");
        self.until(&what, |owners| {
            let of = |worker: &&str| owners.values().filter(|it| it == worker).count();
            let is_fair = workers.iter().all(|worker| fair.contains(&of(worker)));
            owners.len() == PARTITIONS && is_fair
        })
        .await;
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            // An error means that it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
