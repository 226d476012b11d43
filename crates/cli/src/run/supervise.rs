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
use super::signals::Signals;
use super::task::Task;
use super::terminal::Terminal;
use crate::exit::Exit;
use crate::failure::Failure;

/// A process group that nobody could continue is not stopped. This is long enough to see that.
const STOPS_WITHIN: Duration = Duration::from_millis(100);

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself, or by a signal that was not the guard's.
    ByItself(Exit),
    /// It was stopped, because another process is to hold.
    Asked,
    /// It was stopped, because the hold was lost.
    Lost,
}

/// Runs the command until it has ended, or was stopped because the hold is lost.
///
/// The call stops the command as well when `asked` resolves, as if `--grace` were left of the hold.
pub(super) async fn supervise(
    hold: &HoldView,
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
    let guarded = Guarded::start(&task.command, &variables, task.grace);
    let guarded = guarded.map_err(|error| Failure::internal("cannot start the guard", error))?;
    let running = Running {
        hold,
        guarded,
        terminal: Terminal::of_this_process(),
        begun: false,
        early: Vec::new(),
        late: Vec::new(),
        lost: false,
        until: None,
    };
    running.until_ended(asked, task, path, signals).await
}

struct Running<'a> {
    hold: &'a HoldView,
    guarded: Guarded,
    terminal: Option<Terminal>,
    /// True once the command was ordered to begin.
    begun: bool,
    /// Signals from the time before that.
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
        asked: impl Future<Output = ()>,
        task: &Task,
        path: &str,
        signals: &mut Signals,
    ) -> Result<Ending, Failure> {
        let mut ticks = interval(task.renews_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let hold = self.hold;
        let mut asked = pin!(asked);
        let mut known_lost = false;
        let end = loop {
            tokio::select! {
                biased;
                () = hold.not_held(), if !known_lost => {
                    known_lost = true;
                    self.renew();
                }
                () = &mut asked, if self.until.is_none() && self.begun => {
                    self.until = Some(clock::now() + task.grace);
                    self.renew();
                }
                report = self.guarded.report() => match report {
                    Some(Report::Exited(code)) => break Some(exit_code(code)),
                    Some(Report::Killed(signal)) => break Some(Exit::Signal(signal)),
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
        self.ended(end)
    }

    async fn take_note(&mut self, report: Report) {
        match report {
            Report::Ready(_) => self.begin(),
            Report::Stopping => self.lost = true,
            Report::Stopped(signal) => self.stopped(signal).await,
            Report::Exited(_) | Report::Killed(_) => {}
        }
    }

    /// Lets the command begin.
    fn begin(&mut self) {
        let terminal = self.terminal.as_ref();
        if terminal.is_some_and(Terminal::is_wanted_at_once) {
            self.give_terminal();
        }
        self.renew();
        self.guarded.order(Order::Begin);
        self.begun = true;
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
        match self.begun {
            true => self.guarded.order(Order::Signal(signal.as_raw())),
            false => self.early.push(signal),
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

    /// The command has ended, or the guard has died.
    fn ended(self, end: Option<Exit>) -> Result<Ending, Failure> {
        if end.is_none() {
            self.guarded.kill();
        }
        self.take_terminal();
        if let (Some(terminal), None | Some(Exit::Signal(_))) = (&self.terminal, end) {
            terminal.restore();
        }
        self.guarded.reap();
        match end {
            _ if self.lost && self.until.is_some() && self.hold.is_held() => Ok(Ending::Asked),
            _ if self.lost => Ok(Ending::Lost),
            Some(exit) => Ok(Ending::ByItself(exit)),
            None => Err(Failure::new(
                Exit::Internal,
                "the guard process has died, so the command was killed",
            )),
        }
    }
}

fn exit_code(code: i32) -> Exit {
    // Only the lowest eight bits of a code reach the parent.
    Exit::Code(u8::try_from(code & 0xff).unwrap_or_default())
}
