//! The terminal, which belongs to one process group at a time.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, stdin, stdout};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::process::{Pid, getpgrp};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The terminal that `zkr` was started in.
///
/// The command's group is a background group at first. Such a group is stopped when it reads from
/// the terminal, and it does not get Ctrl-C. So `zkr` hands the terminal over: at the start if its
/// standard input and output are the terminal, else when the command is stopped since it reads. In
/// `zkr … | less` another program of the pipeline may need the terminal, so it is not given
/// before.
#[derive(Debug)]
pub(super) struct Terminal {
    terminal: File,
    /// The process group of `zkr`.
    own: Pid,
    settings: Option<Termios>,
}

impl Terminal {
    pub(super) fn of_this_process() -> Option<Terminal> {
        let terminal = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .ok()?;
        Some(Terminal {
            own: getpgrp(),
            settings: tcgetattr(&terminal).ok(),
            terminal,
        })
    }

    /// True if the command needs the terminal from its start.
    pub(super) fn is_wanted_at_once(&self) -> bool {
        stdin().is_terminal() && stdout().is_terminal()
    }

    /// Hands the terminal over to this group, if `zkr` has it.
    pub(super) fn give_to(&self, group: Pid) -> bool {
        self.is_of(self.own) && self.set(group)
    }

    /// Takes the terminal back from this group, if no other group has it.
    pub(super) fn take_back_from(&self, group: Pid) {
        // An error means that the group has gone.
        if tcgetpgrp(&self.terminal).is_ok_and(|of| of != group) {
            return;
        }
        self.set(self.own);
    }

    /// Brings the settings of the terminal back, which a killed command may have left changed.
    pub(super) fn restore(&self) {
        if let (true, Some(settings)) = (self.is_of(self.own), &self.settings) {
            // An error means that the terminal is gone.
            let _ = tcsetattr(&self.terminal, OptionalActions::Now, settings);
        }
    }

    fn is_of(&self, group: Pid) -> bool {
        tcgetpgrp(&self.terminal).is_ok_and(|of| of == group)
    }

    fn set(&self, group: Pid) -> bool {
        // The system stops a background process that sets the group, unless it blocks the signal.
        let mut blocking = SigSet::empty();
        blocking.add(Signal::SIGTTOU);
        let before = blocking.thread_swap_mask(SigmaskHow::SIG_BLOCK);
        let set = tcsetpgrp(&self.terminal, group).is_ok();
        if let Ok(before) = before {
            // An error is not possible: the mask was in use.
            let _ = before.thread_set_mask();
        }
        set
    }
}
