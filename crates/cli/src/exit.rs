//! The exit codes of `zkr`, all in one place.

use std::process::ExitCode;

/// What the documentation of the command line says about exit codes.
pub(crate) const HELP: &str = "\
Exit codes:
  the command's own, or 128+N if signal N ended it
  0    done
  1    deadlocks: sessions wait for each other; locks --fail-if-older: a
       contender waits for longer
  64   the arguments, the connect string, the chroot or the path are wrong
  69   no server could be reached, or none answered
  70   an error of zkr itself or of the machine
  73   serve, dev-server: another process has the port
  75   --try: another contender holds; evict: declined, no such holder, or the
       contender is gone
  76   doctor --thorough: the servers break a promise
  77   no permission, or the server refused the credentials
  80   --timeout: the lock was not acquired in time, lead does not lead, or the
       candidate of --transfer-to does not lead yet
  81   the hold was lost or transferred; the command was stopped before another
       process could hold
  126  the command was found, and cannot be started
  127  the command was not found
  128+N  signal N ended zkr while it waited
--conflict-exit-code sets another code for --try, --timeout, and once with a taken slot.";

/// Why `zkr` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// What the user has asked for was found: a deadlock, or a wait that is too long.
    Found,
    /// The arguments, the connect string, the chroot or the path are wrong.
    Usage,
    /// No server could be reached, or none answered.
    Unavailable,
    /// An error of `zkr` itself or of the machine.
    Internal,
    /// Another process has the port of the server.
    PortInUse,
    /// Another contender holds, and the user did not want to wait.
    Conflict,
    /// The servers break a promise that the recipes need.
    BrokenPromise,
    /// The access control list forbids it, or the server refused the credentials.
    NoPermission,
    /// The time to wait is over.
    TimedOut,
    /// The hold, or the place in the queue, was lost.
    Lost,
    /// The code that the command ended with, or that the user chose.
    #[cfg_attr(not(unix), expect(dead_code))]
    Code(u8),
    /// A signal ended `zkr` or the command.
    Signal(i32),
}

impl Exit {
    /// The number that the calling process sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Found => 1,
            Exit::Usage => 64,
            Exit::Unavailable => 69,
            Exit::Internal => 70,
            Exit::PortInUse => 73,
            Exit::Conflict => 75,
            Exit::BrokenPromise => 76,
            Exit::NoPermission => 77,
            Exit::TimedOut => 80,
            Exit::Lost => 81,
            Exit::Code(code) => code,
            Exit::Signal(number) => u8::try_from(number).unwrap_or_default().wrapping_add(128),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
#[path = "../tests/unit/exit.rs"]
mod tests;
