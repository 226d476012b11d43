//! The processes, and the referee that hears them.

use std::collections::BTreeMap;
use std::env;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use zookeeper_recipes_assignment::Session;
use zookeeper_recipes_interop::{Referee, Report};

use crate::order::Order;

/// How long a condition may take to come true while the ensemble serves, and how long a process may
/// take to end.
const PATIENCE: Duration = Duration::from_secs(100);

/// How long a condition may take in all. On a busy machine the members elect leaders that lose their
/// followers again, and nobody can be granted anything meanwhile.
const LONGEST: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) struct Processes {
    connect_string: String,
    referee: Referee,
    /// Shows if the ensemble serves.
    observer: Session,
    running: BTreeMap<&'static str, Child>,
}

impl Processes {
    pub(crate) fn new(connect_string: String, observer: Session) -> anyhow::Result<Processes> {
        Ok(Processes {
            connect_string,
            referee: Referee::listen(1)?,
            observer,
            running: BTreeMap::new(),
        })
    }

    pub(crate) fn start(&mut self, id: &'static str) -> anyhow::Result<()> {
        let child = Command::new(env::current_exe()?)
            .args(["worker", &*self.connect_string, self.referee.address(), id])
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        self.running.insert(id, child.context("it does not start")?);
        Ok(())
    }

    /// Kills a process (SIGKILL), and waits until it has ended.
    pub(crate) async fn kill(&mut self, id: &str) -> anyhow::Result<()> {
        let mut child = self.running.remove(id).context("it does not run")?;
        Ok(child.kill().await?)
    }

    pub(crate) async fn order(&mut self, id: &str, order: Order) -> anyhow::Result<()> {
        let child = self.running.get_mut(id).context("it does not run")?;
        let input = child.stdin.as_mut().context("it has no input")?;
        let line = format!("{}\n", order.line());
        Ok(input.write_all(line.as_bytes()).await?)
    }

    /// Shuts a process down, and waits for its end.
    pub(crate) async fn end(&mut self, id: &str) -> anyhow::Result<()> {
        self.order(id, Order::End).await?;
        let mut child = self.running.remove(id).context("it does not run")?;
        // The process ends with its input, too.
        let _input = child.stdin.take();
        let status = timeout(PATIENCE, child.wait()).await;
        let status = status.with_context(|| format!("{id} does not end"))??;
        ensure!(status.success(), "{id}: {status}");
        Ok(())
    }

    /// Stops a process (SIGSTOP).
    pub(crate) fn stop(&self, id: &str) -> anyhow::Result<()> {
        self.signal("-STOP", id)?;
        self.referee.stopped(id);
        Ok(())
    }

    /// Lets a process continue (SIGCONT).
    pub(crate) fn resume(&self, id: &str) -> anyhow::Result<()> {
        self.referee.continues(id);
        self.signal("-CONT", id)
    }

    fn signal(&self, signal: &str, id: &str) -> anyhow::Result<()> {
        let process = self.running.get(id).and_then(Child::id);
        let process = process.context("it does not run")?;
        let mut command = std::process::Command::new("kill");
        let status = command.args([signal, &process.to_string()]).status()?;
        ensure!(status.success(), "kill {signal}: {status}");
        Ok(())
    }

    pub(crate) fn report(&self) -> Report {
        self.referee.report()
    }

    /// Waits until this is true of what the processes have reported.
    pub(crate) async fn until(
        &mut self,
        what: &str,
        is_so: impl Fn(&Report) -> bool,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        let (mut served, mut last) = (Duration::ZERO, began);
        loop {
            for (id, child) in &mut self.running {
                let ended = child.try_wait()?;
                ensure!(ended.is_none(), "{id} has ended: {ended:?}");
            }
            let report = self.report();
            let violations = report.violations.join("\n");
            ensure!(violations.is_empty(), "promises are broken:\n{violations}");
            if is_so(&report) {
                return Ok(());
            }
            let now = Instant::now();
            if self.observer.is_connected() {
                served += now - last;
            }
            last = now;
            let waited = now - began;
            ensure!(
                served < PATIENCE && waited < LONGEST,
                "not {what} after {waited:.0?}, in which the ensemble served for {served:.0?}: {:?}, \
                 grants {:?}",
                report.owners,
                report.grants
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
