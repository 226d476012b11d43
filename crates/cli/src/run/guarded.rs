//! The command as `zkr` sees it: by its guard process.

use std::ffi::OsString;
use std::io::{self, stdin};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use zookeeper_recipes_core::HoldView;

use super::clock;
use super::descriptor;
use super::itself::itself;
use super::message::{Order, Report, line, message};

pub(super) struct Guarded {
    guard: Child,
    orders: OwnedWriteHalf,
    reports: Lines<BufReader<OwnedReadHalf>>,
    /// The process group of the command, once it is there.
    group: Option<Pid>,
}

impl Guarded {
    /// Starts a guard, which prepares the command's process.
    ///
    /// The guard has a process group of its own, so that signals of the terminal do not reach it.
    pub(super) fn start(
        command: &[OsString],
        variables: &[(&str, String)],
        grace: Duration,
    ) -> io::Result<Guarded> {
        let (ours, theirs) = UnixStream::pair()?;
        let guard = itself("guard")?
            .arg("--grace-nanoseconds")
            .arg(grace.as_nanos().to_string())
            .arg("--")
            .args(command)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .process_group(0)
            .spawn()?;
        descriptor::send(&ours, stdin())?;
        ours.set_nonblocking(true)?;
        let (reports, orders) = tokio::net::UnixStream::from_std(ours)?.into_split();
        Ok(Guarded {
            guard,
            orders,
            reports: BufReader::new(reports).lines(),
            group: None,
        })
    }

    /// The process group of the command, once it is there.
    pub(super) fn group(&self) -> Option<Pid> {
        self.group
    }

    /// The next report of the guard. `None` if the guard has died.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no report is lost.
    pub(super) async fn report(&mut self) -> Option<Report> {
        let line = self.reports.next_line().await.ok().flatten()?;
        let report = message(&line)?;
        if let Report::Ready(id) = report {
            self.group = Pid::from_raw(id);
        }
        Some(report)
    }

    /// Reports to the guard until when the hold lasts, or this instant of its clock if that is
    /// earlier.
    pub(super) fn renew(&self, hold: &HoldView, max_hold: Option<Duration>) {
        // The clock is read first, so that the instant is never too late.
        let now = clock::now();
        let until = match hold.remaining() {
            Duration::ZERO => Duration::ZERO,
            remaining => now + remaining,
        };
        self.order(Order::Until(max_hold.map_or(until, |most| until.min(most))));
    }

    pub(super) fn order(&self, order: Order) {
        // An error means that the guard has died, which the next report says. If the guard was
        // stopped for so long that the socket is full, it looks at the clock first when it
        // continues.
        let _ = self.orders.try_write(line(&order).as_bytes());
    }

    /// Continues the guard if it was stopped. True if it was.
    ///
    /// A stopped guard would neither stop the command in time nor report that it has ended.
    pub(super) fn continue_if_stopped(&self) -> bool {
        let guard = Pid::from_child(&self.guard);
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        // An error means that the guard has died, which the next report says.
        matches!(waitid(WaitId::Pid(guard), stopped), Ok(Some(_)))
            && kill_process(guard, Signal::CONT).is_ok()
    }

    /// Kills the command, if the guard has died and cannot do so.
    pub(super) fn kill(&self) {
        if let Some(group) = self.group {
            // An error means that no process of the group is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Waits until the guard has ended, which it does after its last report.
    pub(super) fn reap(mut self) {
        // An error means that it was reaped before.
        let _ = self.guard.wait();
    }
}
