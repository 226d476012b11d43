//! The guard process: starts the command, and kills it if `zkr` does not renew the hold in time.
//!
//! `zkr` reports to the guard, over a socket, until when the hold lasts. The guard stops the
//! command's process group before that instant, unless `zkr` renews the hold. If `zkr` dies, the
//! socket ends, and the guard kills the group at once. So neither a killed nor a stopped `zkr`
//! leaves a command running while another process holds.
//!
//! The guard does not help if it is stopped itself, or if the machine is. When it continues, it
//! looks at the clock first.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group,
    test_kill_process_group, waitid,
};

use super::clock;
use super::descriptor;
use super::itself::itself;
use super::message::{Order, Report, line, message};
use super::signals;
use super::switch::{Blow, Switch};
use crate::exit::Exit;
use crate::failure::Failure;

/// The guard looks at the clock and at `zkr` at least so often.
///
/// A timer does not count the time in which the machine sleeps, and the clock does.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// How often the guard looks whether processes that it has killed have ended.
const LOOKS_FOR_THE_END_EVERY: Duration = Duration::from_millis(1);

struct Guard {
    zkr: UnixStream,
    parent: Option<Pid>,
    group: Pid,
    /// True once the process has become the command, false once it has failed to.
    became: Option<bool>,
    /// The signals that came before. They would end the process before it is the command.
    early: Vec<i32>,
    /// True once the user was told that the command cannot be signalled.
    has_complained: bool,
    switch: Switch,
}

enum News {
    Ordered(Order),
    /// The socket has ended: `zkr` has died.
    Deserted,
    /// The command's process has become the command, or has failed to.
    Became(bool),
    Command(Report),
}

/// Starts the command, and guards it until it has ended.
///
/// The standard input is the socket to `zkr`. The command's standard input comes over it.
pub(crate) fn guard(grace: Duration, command: &[OsString]) -> Result<Exit, Failure> {
    let failed = |error| Failure::internal("the guard process", error);
    // Before the threads begin, which take over what is blocked.
    signals::block();
    let parent = getppid();
    let zkr = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let zkr = UnixStream::from(zkr);
    let stdin = descriptor::receive(&zkr).map_err(failed)?;
    let (group, becomes) = start(stdin, command).map_err(failed)?;
    let (sender, news) = channel();
    let orders = zkr.try_clone().map_err(failed)?;
    let to_orders = sender.clone();
    let to_start = sender.clone();
    thread::spawn(move || take_orders(orders, &to_orders));
    thread::spawn(move || follow_start(becomes, &to_start));
    thread::spawn(move || follow_command(group, &sender));
    let mut guard = Guard {
        zkr,
        parent,
        group,
        became: None,
        early: Vec::new(),
        has_complained: false,
        // Until the first order, the hold is not known to last.
        switch: Switch::new(Duration::ZERO, grace),
    };
    let end = match guard.begin(&news) {
        Some(end) => end,
        None => guard.watch(&news),
    };
    guard.report(end);
    Ok(Exit::Done)
}

/// Starts the process that becomes the command, in a process group of its own.
///
/// Its standard input is a socket, over which the command's standard input comes.
fn start(stdin: OwnedFd, command: &[OsString]) -> io::Result<(Pid, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let id = getpid().as_raw_nonzero().to_string();
    let child = itself("start")?
        .args(["--guard", &id, "--"])
        .args(command)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .process_group(0)
        .spawn()?;
    descriptor::send(&ours, stdin)?;
    // The process is not reaped before the guard ends: its id stays the group's.
    Ok((Pid::from_child(&child), ours))
}

fn take_orders(zkr: UnixStream, news: &Sender<News>) {
    for line in BufReader::new(zkr).lines() {
        let Some(order) = line.ok().and_then(|line| message(&line)) else {
            break;
        };
        if news.send(News::Ordered(order)).is_err() {
            return;
        }
    }
    // An error means that the guard ends anyway.
    let _ = news.send(News::Deserted);
}

/// Reports when the process has become the command, or has failed to.
///
/// The socket ends when the process becomes the command, or ends. A byte before is its failure.
fn follow_start(mut becomes: UnixStream, news: &Sender<News>) {
    let has_failed = matches!(becomes.read(&mut [0]), Ok(1..));
    // An error means that the guard ends anyway.
    let _ = news.send(News::Became(!has_failed));
}

/// Reports when the command was stopped and when it has ended. The thread does not reap the
/// command.
fn follow_command(command: Pid, news: &Sender<News>) {
    loop {
        let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        let status = match waitid(WaitId::Pid(command), options) {
            Ok(Some(status)) => status,
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            // Nobody else reaps the command.
            Err(error) => unreachable!("the command cannot be awaited: {error}"),
        };
        let report = if let Some(code) = status.exit_status() {
            Report::Exited(code)
        } else if let Some(signal) = status.terminating_signal() {
            Report::Killed(signal)
        } else {
            // This takes the news of the stop, so that the next wait sees the next change.
            let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
            let _ = waitid(WaitId::Pid(command), options);
            Report::Stopped(status.stopping_signal().unwrap_or_default())
        };
        let ended = !matches!(report, Report::Stopped(_));
        if news.send(News::Command(report)).is_err() || ended {
            return;
        }
    }
}

/// Makes this process the parent of the command's orphans, where the system can.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // An error means that an older parent reaps them.
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

impl Guard {
    /// Waits until the process is ready, and lets it become the command when `zkr` says so.
    ///
    /// The call returns how the process ended, if the process never became ready.
    fn begin(&mut self, news: &Receiver<News>) -> Option<Report> {
        for news in news {
            match news {
                News::Command(Report::Stopped(_)) => {
                    self.report(Report::Ready(self.group.as_raw_nonzero().get()));
                }
                News::Command(end) => return Some(end),
                News::Ordered(Order::Until(instant)) => self.switch.lasts(instant),
                News::Ordered(Order::Signal(_)) => {}
                News::Ordered(Order::Begin) => break,
                News::Became(became) => self.became = Some(became),
                News::Deserted => {
                    self.switch.lasts(Duration::ZERO);
                    break;
                }
            }
        }
        // A hold that is over, or a dead zkr, must not begin the command.
        if self.switch.due(clock::now()).is_none() {
            self.send(Signal::CONT);
        } else {
            self.report(Report::Stopping);
            self.send(Signal::KILL);
        }
        None
    }

    /// Guards the command until it has ended.
    ///
    /// From the first signal on, the guard adopts the command's orphans: the first process of a
    /// container may reap them late, and until then they count as part of the group.
    fn watch(&mut self, news: &Receiver<News>) -> Report {
        let mut ended = None;
        loop {
            if let Some((end, became)) = ended.zip(self.became) {
                return match end {
                    Report::Exited(code) if !became => Report::NotStarted(code),
                    end => end,
                };
            }
            let now = clock::now();
            match self.switch.due(now) {
                Some(Blow::Stop) => {
                    adopt_orphans();
                    self.report(Report::Stopping);
                    self.send(Signal::TERM);
                    // A stopped command takes the signal only when it continues.
                    self.send(Signal::CONT);
                }
                Some(Blow::Kill) => {
                    adopt_orphans();
                    self.send(Signal::KILL);
                    self.report(Report::Stopping);
                }
                None => {}
            }
            match news.recv_timeout(self.switch.quiet(now).min(LOOKS_EVERY)) {
                Ok(News::Ordered(Order::Until(instant))) => self.switch.lasts(instant),
                Ok(News::Ordered(Order::Begin)) => {}
                Ok(News::Ordered(Order::Signal(number))) if self.became.is_none() => {
                    self.early.push(number);
                }
                Ok(News::Ordered(Order::Signal(number))) => self.pass_on(number),
                Ok(News::Became(became)) => {
                    self.became = Some(became);
                    for number in std::mem::take(&mut self.early) {
                        self.pass_on(number);
                    }
                }
                Ok(News::Deserted) | Err(RecvTimeoutError::Disconnected) => {
                    self.switch.lasts(Duration::ZERO);
                }
                Ok(News::Command(report @ Report::Stopped(_))) => self.report(report),
                Ok(News::Command(end)) => {
                    if self.switch.has_struck() {
                        self.end_group();
                    }
                    // Its end of the socket has ended with it.
                    ended = Some(end);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if getppid() != self.parent {
                self.switch.lasts(Duration::ZERO);
            }
        }
    }

    /// Kills what is left of the group, and waits for its end for as long as the hold lasts.
    ///
    /// `zkr` may release the hold as soon as it knows that the command has ended.
    fn end_group(&mut self) {
        self.send(Signal::KILL);
        // A process counts until it is reaped. An error means that it was.
        let _ = waitid(WaitId::Pid(self.group), WaitIdOptions::EXITED);
        // Nothing reports the end of a process that is no child of this one.
        while clock::now() < self.switch.until() {
            match test_kill_process_group(self.group) {
                Ok(()) => {}
                Err(Errno::PERM) => self.complain(),
                Err(_) => break,
            }
            // An error means that no process of the group is a child of this one.
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            while let Ok(Some(_)) = waitid(WaitId::Pgid(Some(self.group)), ended) {}
            thread::sleep(LOOKS_FOR_THE_END_EVERY);
        }
    }

    fn pass_on(&mut self, number: i32) {
        if let Some(signal) = Signal::from_named_raw(number) {
            self.send(signal);
        }
    }

    /// Sends a signal to all processes of the command's group.
    fn send(&mut self, signal: Signal) {
        // Any other error means that no process is left that the signal could reach.
        if kill_process_group(self.group, signal) == Err(Errno::PERM) {
            self.complain();
        }
    }

    /// Says once that the command cannot be signalled. `zkr` may have died.
    fn complain(&mut self) {
        if !std::mem::replace(&mut self.has_complained, true) {
            let problem = "the command has become another user, so it cannot be signalled: it runs \
                           on, also after the hold is lost";
            Failure::new(Exit::Internal, problem).print();
        }
    }

    fn report(&mut self, report: Report) {
        // An error means that zkr has died, which the other direction of the socket reports.
        let _ = self.zkr.write_all(line(&report).as_bytes());
    }
}
