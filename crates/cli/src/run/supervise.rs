//! Running the command under a hold: renewing it at the guard, passing signals on, the terminal.

use std::pin::pin;
use std::time::Duration;

use rustix::process::{Signal, kill_current_process_group};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, timeout};
use zookeeper_recipes_core::HoldView;

use super::clock;
use super::guarded::Guarded;
use super::message::{Order, Report};
use super::signals::{Signals, ends_zkr};
use super::task::Task;
use super::terminal::Terminal;
use crate::exit::Exit;
use crate::failure::Failure;

/// A process group that nobody could continue is not stopped. This is long enough to see that.
const STOPS_WITHIN: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) enum Ending {
    /// By itself, or by a signal that was not the guard's.
    ByItself(Exit),
    /// It has not begun: it could not be started, or a signal or a failure came before.
    NotBegun(Result<Exit, Failure>),
    /// It was stopped, because another process is to hold.
    Asked,
    /// It was stopped, because the hold was lost.
    Lost,
}

/// Runs the command until it has ended, or was stopped because the hold is lost.
///
/// When the command's process is ready, the call awaits `start`, and lets the command begin then.
/// If `start` fails, or a signal comes before, the command does not begin.
///
/// The call stops the command as well when `asked` resolves, as if `--grace` were left of the hold.
pub(super) async fn supervise(
    hold: &HoldView,
    start: impl Future<Output = Result<(), Failure>>,
    asked: impl Future<Output = ()>,
    task: &Task,
    path: &str,
    signals: &mut Signals,
) -> Result<Ending, Failure> {
    let variables = [
        ("ZKR_FENCING_TOKEN", hold.fencing_token().to_string()),
        ("ZKR_NODE", hold.node_path().to_owned()),
        ("ZKR_PATH", path.to_owned()),
    ];
    let guarded = match Guarded::start(&task.command, &variables, task.grace) {
        Ok(guarded) => guarded,
        Err(error) => {
            let failure = Failure::internal("cannot start the guard", error);
            return Ok(Ending::NotBegun(Err(failure)));
        }
    };
    let running = Running {
        hold,
        guarded,
        terminal: Terminal::of_this_process(),
        phase: Phase::Prepares,
        early: Vec::new(),
        late: Vec::new(),
        lost: false,
        until: None,
    };
    running.until_ended(start, asked, task, path, signals).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Its process is being prepared.
    Prepares,
    /// Its process is ready, and waits for the order to begin.
    Ready,
    Begun,
    /// Its process is being killed before it begins.
    Refused,
}

struct Running<'a> {
    hold: &'a HoldView,
    guarded: Guarded,
    terminal: Option<Terminal>,
    phase: Phase,
    /// Signals from the time before the command began.
    early: Vec<Signal>,
    /// Signals from the time after the command was asked to stop. They mean `zkr`, too.
    late: Vec<Signal>,
    /// True once the guard stops the command.
    lost: bool,
    /// By the guard's clock, when the command has to have ended because it was asked for.
    until: Option<Duration>,
}

impl Running<'_> {
    async fn until_ended(
        mut self,
        start: impl Future<Output = Result<(), Failure>>,
        asked: impl Future<Output = ()>,
        task: &Task,
        path: &str,
        signals: &mut Signals,
    ) -> Result<Ending, Failure> {
        let mut ticks = interval(task.renews_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let hold = self.hold;
        let (mut start, mut asked) = (pin!(start), pin!(asked));
        let mut known_lost = false;
        let mut why = None;
        let end = loop {
            tokio::select! {
                biased;
                _ = hold.ended(), if !known_lost => {
                    known_lost = true;
                    self.renew();
                }
                () = &mut asked, if self.until.is_none() && self.phase == Phase::Begun => {
                    self.until = Some(clock::now() + task.grace);
                    self.renew();
                }
                started = &mut start, if self.phase == Phase::Ready => match started {
                    Ok(()) if self.ended_early().is_none() => self.begin(),
                    Ok(()) => self.refuse(),
                    Err(failure) => {
                        self.refuse();
                        why = Some(failure);
                    }
                },
                report = self.guarded.report() => match report {
                    Some(Report::Exited(code)) => break Some(exit_code(code)),
                    Some(Report::Killed(signal)) => break Some(Exit::Signal(signal)),
                    Some(Report::NotStarted(code)) => {
                        self.phase = Phase::Refused;
                        break Some(exit_code(code));
                    }
                    Some(report) => self.take_note(report).await,
                    None => break None,
                },
                signal = signals.next() => self.heard(signal),
                _ = ticks.tick() => {
                    if self.guarded.continue_if_stopped() {
                        let problem = "the guard process was stopped, and is continued";
                        Failure::new(Exit::Internal, format!("{path}: {problem}")).print();
                    }
                    self.renew();
                }
            }
        };
        if self.lost {
            signals.keep(std::mem::take(&mut self.late));
        }
        self.ended(end, why)
    }

    async fn take_note(&mut self, report: Report) {
        match report {
            Report::Ready(_) if self.ended_early().is_some() => self.refuse(),
            Report::Ready(_) => self.phase = Phase::Ready,
            Report::Stopping => self.lost = true,
            Report::Stopped(signal) => self.stopped(signal).await,
            Report::Exited(_) | Report::Killed(_) | Report::NotStarted(_) => {}
        }
    }

    /// The signal by which `zkr` ends before the command begins.
    fn ended_early(&self) -> Option<i32> {
        let is_end = |signal: &&Signal| ends_zkr(**signal);
        self.early.iter().find(is_end).map(|signal| signal.as_raw())
    }

    /// Kills the process that was to become the command.
    fn refuse(&mut self) {
        self.phase = Phase::Refused;
        self.guarded.order(Order::Until(Duration::ZERO));
        self.guarded.order(Order::Begin);
    }

    fn begin(&mut self) {
        let terminal = self.terminal.as_ref();
        if terminal.is_some_and(Terminal::is_wanted_at_once) {
            self.give_terminal();
        }
        self.renew();
        self.guarded.order(Order::Begin);
        self.phase = Phase::Begun;
        for signal in std::mem::take(&mut self.early) {
            self.pass_on(signal);
        }
    }

    /// Reports to the guard until when the command may run.
    fn renew(&self) {
        self.guarded.renew(self.hold, self.until);
    }

    fn heard(&mut self, signal: Signal) {
        if self.lost || self.until.is_some() {
            self.late.push(signal);
        }
        self.pass_on(signal);
    }

    fn pass_on(&mut self, signal: Signal) {
        match self.phase {
            Phase::Begun => self.guarded.order(Order::Signal(signal.as_raw())),
            _ => self.early.push(signal),
        }
    }

    fn give_terminal(&self) -> bool {
        let pair = self.terminal.as_ref().zip(self.guarded.group());
        pair.is_some_and(|(terminal, group)| terminal.give_to(group))
    }

    fn take_terminal(&self) {
        if let Some((terminal, group)) = self.terminal.as_ref().zip(self.guarded.group()) {
            terminal.take_back_from(group);
        }
    }

    /// The command was stopped: since it needs the terminal, or by Ctrl-Z, or by another process.
    async fn stopped(&mut self, signal: i32) {
        let needs_terminal = [Signal::TTIN, Signal::TTOU]
            .map(Signal::as_raw)
            .contains(&signal);
        let by_terminal = needs_terminal || signal == Signal::TSTP.as_raw();
        // If the hold is lost, the guard ends the command, also if a signal has stopped it.
        if self.lost || !by_terminal || self.terminal.is_none() {
            return;
        }
        if !(needs_terminal && self.give_terminal()) {
            self.stop_too().await;
            self.give_terminal();
        }
        self.pass_on(Signal::CONT);
    }

    /// Stops `zkr` too, so that the shell sees the stop. The call returns when `zkr` continues.
    ///
    /// Nobody renews the hold meanwhile. After a long stop, the guard has killed the command.
    async fn stop_too(&mut self) {
        self.take_terminal();
        let Ok(mut continued) = signal(SignalKind::from_raw(Signal::CONT.as_raw())) else {
            return;
        };
        // An error is not possible: the group of this process exists.
        let _ = kill_current_process_group(Signal::TSTP);
        let _ = timeout(STOPS_WITHIN, continued.recv()).await;
        self.renew();
    }

    /// The command has ended, or the guard has died. `why` the command did not begin, if it is known.
    fn ended(self, end: Option<Exit>, why: Option<Failure>) -> Result<Ending, Failure> {
        if end.is_none() {
            self.guarded.kill();
        }
        self.take_terminal();
        if let (Some(terminal), None | Some(Exit::Signal(_))) = (&self.terminal, end) {
            terminal.restore();
        }
        let early = self.ended_early().map(Exit::Signal);
        self.guarded.reap();
        let ended = end.ok_or_else(|| {
            let problem = "the guard process has died, so the command was killed";
            Failure::new(Exit::Internal, problem)
        });
        match ended {
            _ if self.phase != Phase::Begun => Ok(Ending::NotBegun(match (why, early) {
                (Some(failure), _) => Err(failure),
                (None, Some(signal)) => Ok(signal),
                (None, None) => ended,
            })),
            _ if self.lost && self.until.is_some() && self.hold.is_held() => Ok(Ending::Asked),
            _ if self.lost => Ok(Ending::Lost),
            ended => ended.map(Ending::ByItself),
        }
    }
}

fn exit_code(code: i32) -> Exit {
    // Only the lowest eight bits of a code reach the parent.
    Exit::Code(u8::try_from(code & 0xff).unwrap_or_default())
}
